//! Lines that wait for one another: when they are written, and what becomes of them
//! where the file takes only some.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::FromRawFd as _;

use expect_test::expect;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::journal::file::SETTLED;
use crate::journal::tests::{open_in, open_to_keep, read, record};

/// A journal in which every line that may wait does, however slow the test is.
fn patient(mut journal: Journal) -> Arc<Journal> {
    journal.wait_together(Duration::MAX);
    Arc::new(journal)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime")
}

fn take(journal: &Arc<Journal>, call: usize, about: About) -> Option<Pending> {
    let taken = journal.take(&record(call).line(), about);
    taken.expect("it is written or waits")
}

fn calls(journal: &Journal) -> String {
    read(&fs::read(journal.path()).expect("a file"))
}

#[test]
fn lines_of_one_turn_are_written_when_it_is_over() {
    let folder = TempDir::new().expect("a folder");
    let journal = patient(open_in(&folder, u64::MAX));
    runtime().block_on(async {
        // The first is alone, as far as is known.
        assert!(take(&journal, 1, About::Before).is_none());
        let two = take(&journal, 2, About::Before).expect("it waits");
        let three = take(&journal, 3, About::Before).expect("it waits");
        assert_eq!(calls(&journal), "call 1");
        three.written().await.expect("written");
        assert_eq!(calls(&journal), "call 1, call 2, call 3");
        two.written().await.expect("written");

        assert!(take(&journal, 1, About::After).is_none());
        let two = take(&journal, 2, About::After).expect("it waits");
        assert_eq!(calls(&journal), "call 1, call 2, call 3, call 1");
        // Nobody else is under way, so this one takes the other along.
        assert!(take(&journal, 3, About::After).is_none());
        expect!["call 1, call 2, call 3, call 1, call 2, call 3"].assert_eq(&calls(&journal));
        two.written().await.expect("written");
        // A call that is alone waits for nobody, however soon it comes.
        for call in 4..8 {
            assert!(take(&journal, call, About::Before).is_none());
            assert!(take(&journal, call, About::After).is_none());
        }
    });
}

#[test]
fn calls_that_do_not_follow_one_another_do_not_wait() {
    let folder = TempDir::new().expect("a folder");
    let mut journal = open_in(&folder, u64::MAX);
    journal.wait_together(Duration::ZERO);
    let journal = Arc::new(journal);
    runtime().block_on(async {
        for call in 1..=3 {
            assert!(take(&journal, call, About::Before).is_none());
        }
        for call in 1..=3 {
            assert!(take(&journal, call, About::After).is_none());
        }
    });
}

#[test]
fn a_line_that_does_not_wait_takes_those_along_that_do() {
    let folder = TempDir::new().expect("a folder");
    let journal = patient(open_in(&folder, u64::MAX));
    runtime().block_on(async {
        take(&journal, 1, About::Before);
        let two = take(&journal, 2, About::Before).expect("it waits");
        journal
            .write(&record(3).line(), About::NotSent)
            .expect("written");
        assert_eq!(calls(&journal), "call 1, call 2, call 3");
        two.written().await.expect("written");
        // So does one that is as large as all that may wait.
        let three = take(&journal, 4, About::Before).expect("it waits");
        let tool = "x".repeat(MOST_BYTES);
        let mut long = record(5);
        long.tool = &tool;
        let long = journal.take(&long.line(), About::Before).expect("written");
        assert!(long.is_none());
        three.written().await.expect("written");
        assert!(calls(&journal).ends_with("call 3, call 4, call 5"));
    });
}

#[test]
fn another_thread_is_not_waited_for() {
    let folder = TempDir::new().expect("a folder");
    let journal = patient(open_in(&folder, u64::MAX));
    runtime().block_on(async {
        take(&journal, 1, About::Before);
        let two = take(&journal, 2, About::Before).expect("it waits");
        let other = Arc::clone(&journal);
        let handle = Handle::current();
        std::thread::spawn(move || {
            let _entered = handle.enter();
            assert!(take(&other, 3, About::Before).is_none());
        })
        .join()
        .expect("no panic");
        assert_eq!(calls(&journal), "call 1, call 2, call 3");
        two.written().await.expect("written");
    });
}

#[test]
fn nothing_waits_for_whoever_is_gone() {
    let folder = TempDir::new().expect("a folder");
    let journal = patient(open_in(&folder, u64::MAX));
    // Without a runtime there is no task that could write.
    take(&journal, 1, About::Before);
    assert!(take(&journal, 2, About::Before).is_none());

    // The task goes with its runtime.
    let ended = runtime();
    let three = ended.block_on(async { take(&journal, 3, About::Before) });
    assert_eq!(calls(&journal), "call 1, call 2");
    drop(ended);
    assert_eq!(calls(&journal), "call 1, call 2, call 3");
    let three = three.expect("it waited");
    runtime().block_on(three.written()).expect("written");

    runtime().block_on(async {
        // The first of a group is dropped, and the others are written all the same.
        let four = take(&journal, 4, About::Before).expect("it waits");
        let five = take(&journal, 5, About::Before).expect("it waits");
        drop(four);
        assert_eq!(calls(&journal), "call 1, call 2, call 3, call 4, call 5");
        five.written().await.expect("written");
    });
}

#[test]
fn a_group_that_fills_the_file_is_taken_as_far_as_there_is_room() {
    let folder = TempDir::new().expect("a folder");
    let bytes = record(1).line().len() as u64;
    let journal = patient(open_in(&folder, 4 * bytes));
    runtime().block_on(async {
        take(&journal, 1, About::Before);
        journal.before(&record(2).line()).expect("written");
        take(&journal, 1, About::After);
        // One has room; the rest has not.
        let three = take(&journal, 3, About::Before).expect("it waits");
        let four = take(&journal, 4, About::Before).expect("it waits");
        let after = take(&journal, 2, About::After).expect("it waits");
        let five = take(&journal, 5, About::Before).expect("it waits");
        three.written().await.expect("there is room");
        for refused in [four, five] {
            let error = refused.written().await.expect_err("it is full");
            assert!(matches!(error, JournalError::Full { .. }), "{error}");
        }
        drop(after);
        assert_eq!(calls(&journal), "call 1, call 2, call 1, call 3");
        // What is kept goes first, and else nothing goes.
        journal.before(&record(6).line()).expect_err("it is full");
        fs::rename(journal.path(), folder.path().join("old")).expect("moved");
        // Call 3 is under way alone: those that were refused do not count.
        assert!(take(&journal, 3, About::After).is_none());
        assert!(take(&journal, 7, About::Before).is_none());
        assert_eq!(calls(&journal), "call 2, call 3, call 7");
    });
}

#[test]
fn a_group_goes_on_in_the_next_file() {
    let folder = TempDir::new().expect("a folder");
    let bytes = record(1).line().len() as u64;
    let journal = patient(open_to_keep(&folder, 3 * bytes, 9, Duration::ZERO));
    runtime().block_on(async {
        let taken: Vec<_> = (1..=8)
            .filter_map(|call| take(&journal, call, About::Before))
            .collect();
        assert_eq!(taken.len(), 7);
        for pending in taken {
            pending.written().await.expect("written");
        }
    });
    let names = ["ledger.jsonl", "ledger.jsonl.1", "ledger.jsonl.2"];
    let kept = names.map(|name| read(&fs::read(folder.path().join(name)).expect(name)));
    expect![[r#"
        call 7, call 8
        call 4, call 5, call 6
        call 1, call 2, call 3"#]]
    .assert_eq(&kept.join("\n"));

    // A file that may not be pushed out yet takes them all the same.
    let folder = TempDir::new().expect("a folder");
    let journal = patient(open_to_keep(&folder, bytes, 1, SETTLED));
    runtime().block_on(async {
        let taken: Vec<_> = (1..=4)
            .filter_map(|call| take(&journal, call, About::Before))
            .collect();
        for pending in taken {
            pending.written().await.expect("written");
        }
    });
    assert_eq!(calls(&journal), "call 2, call 3, call 4");
}

#[test]
fn of_a_group_that_is_cut_off_the_whole_lines_count() {
    let folder = TempDir::new().expect("a folder");
    let mut journal = open_in(&folder, u64::MAX);
    // A pipe takes a part of what is more than it holds, as a disk that fills up.
    let mut ends = [0; 2];
    // SAFETY: pipe2 writes two descriptors, which nobody else has, to the array.
    let [mut reading, writing] = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK), 0);
        ends.map(|end| File::from_raw_fd(end))
    };
    // SAFETY: fcntl with these arguments reads no memory of ours.
    let holds = unsafe { libc::fcntl(ends[1], libc::F_GETPIPE_SZ) };
    let holds = usize::try_from(holds).expect("a size");
    assert_eq!(holds, MOST_BYTES, "a pipe is as large as a group");
    journal
        .state
        .get_mut()
        .expect("no panic")
        .file
        .replace(writing);
    let journal = patient(journal);
    let tool = "x".repeat(10_000);
    let line = |call: usize| {
        let mut long = record(call);
        long.tool = &tool;
        long.line()
    };
    let each = line(10).len();
    runtime().block_on(async {
        // Emptied, so that the group finds all of the pipe.
        take(&journal, 1, About::Before);
        let mut sink = vec![0; holds];
        assert_eq!(
            reading.read(&mut sink).expect("read"),
            record(1).line().len()
        );
        let mut waiting = Vec::new();
        let mut call = 10;
        let last = loop {
            match journal.take(&line(call), About::Before) {
                Ok(Some(pending)) => waiting.push(pending),
                Ok(None) => panic!("the pipe took more than it holds"),
                Err(error) => break error,
            }
            call += 1;
        };
        let error = last.to_string();
        assert!(error.ends_with("cannot be written: it took a part of what was written only"));
        assert_eq!(waiting.len(), holds / each);
        for pending in waiting {
            pending.written().await.expect("it was written whole");
        }
        let mut taken = vec![0; holds];
        let bytes = reading.read(&mut taken).expect("read");
        assert_eq!(bytes, holds);
        // What comes next begins on a line of its own.
        journal.before(&record(2).line()).expect("written");
        let bytes = reading.read(&mut sink).expect("read");
        taken.extend_from_slice(&sink[..bytes]);
        let torn = holds % each;
        let all = read(&taken);
        assert!(
            all.ends_with(&format!("call {}, {torn} torn, call 2", call - 1)),
            "{all}"
        );
    });
}

#[test]
fn a_file_that_takes_nothing_refuses_the_whole_group() {
    let folder = TempDir::new().expect("a folder");
    let mut journal = open_in(&folder, u64::MAX);
    let full = File::options()
        .append(true)
        .open("/dev/full")
        .expect("a device");
    let journal = {
        journal.before(&record(1).line()).expect("written");
        journal
            .state
            .get_mut()
            .expect("no panic")
            .file
            .replace(full);
        patient(journal)
    };
    runtime().block_on(async {
        journal
            .take(&record(2).line(), About::Before)
            .expect_err("it is full");
        let waiting: Vec<_> = (3..6)
            .filter_map(|call| take(&journal, call, About::Before))
            .collect();
        assert_eq!(waiting.len(), 3);
        for pending in waiting {
            let error = pending.written().await.expect_err("it is full").to_string();
            assert!(error.contains("No space left on device"), "{error}");
        }
    });
}

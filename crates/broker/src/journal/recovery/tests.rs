//! Lines that stand beside a journal's file when its process is gone, and what else may lie
//! there.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::super::tests::{open_in, read, record};
use super::super::{Journal, JournalOptions};
use crate::moment::Moment;

/// A folder with a ledger.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn journal(&self) -> Journal {
        open_in(&self.folder, u64::MAX)
    }

    /// The files beside the ledger, by what stands behind its name.
    fn beside(&self) -> Vec<String> {
        let files = fs::read_dir(self.folder.path())
            .expect("a folder")
            .flatten();
        let names = files.map(|file| file.file_name().into_string().expect("text"));
        let mut names: Vec<String> = names
            .filter_map(|name| Some(name.strip_prefix("ledger.jsonl.")?.to_owned()))
            .collect();
        names.sort();
        names
    }

    /// What a process that is killed now would leave beside the ledger, as `name`.
    fn left_as(&self, name: &str) {
        let [wal] = &self.beside()[..] else {
            panic!("{:?}", self.beside())
        };
        let wal = self.path(&format!("ledger.jsonl.{wal}"));
        fs::copy(wal, self.path(&format!("ledger.jsonl.{name}"))).expect("copied");
    }

    fn check(&self, name: &str, expected: Expect) {
        expected.assert_eq(&read(&fs::read(self.path(name)).expect(name)));
    }
}

/// Notes lines, which nothing moves to the file: the runtime gets no time for it.
fn note(journal: &Journal, calls: std::ops::Range<usize>) {
    for call in calls {
        journal
            .write(&record(call).line(), Moment::now())
            .expect("noted");
    }
}

#[tokio::test]
async fn lines_stand_beside_the_file_until_it_takes_them() {
    let bench = Bench::new();
    let journal = bench.journal();
    assert_eq!(bench.beside(), [""; 0]);
    note(&journal, 1..4);
    bench.check("ledger.jsonl", expect![""]);
    let [wal] = &bench.beside()[..] else {
        panic!("{:?}", bench.beside())
    };
    let known = fs::metadata(bench.path(&format!("ledger.jsonl.{wal}"))).expect("a file");
    assert_eq!(known.permissions().mode() & 0o777, 0o600);
    // In its time.
    while fs::metadata(journal.path()).expect("a file").len() == 0 {
        tokio::task::yield_now().await;
    }
    bench.check("ledger.jsonl", expect!["call 1, call 2, call 3"]);
    // And again, as long as some come, and after a while in which none did.
    for calls in [4..5, 5..6] {
        let before = fs::metadata(journal.path()).expect("a file").len();
        note(&journal, calls);
        while fs::metadata(journal.path()).expect("a file").len() == before {
            tokio::task::yield_now().await;
        }
        while journal.shared.lock().is_moving() {
            tokio::task::yield_now().await;
        }
    }
    note(&journal, 6..7);
    journal.catch_up();
    let six = expect!["call 1, call 2, call 3, call 4, call 5, call 6"];
    bench.check("ledger.jsonl", six);
    note(&journal, 7..8);
    drop(journal);
    let seven = expect!["call 1, call 2, call 3, call 4, call 5, call 6, call 7"];
    bench.check("ledger.jsonl", seven);
    assert_eq!(bench.beside(), [""; 0]);
}

#[test]
fn a_runtime_that_ends_moves_what_it_was_to_move() {
    let bench = Bench::new();
    let journal = bench.journal();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().expect("a runtime");
    runtime.block_on(async { note(&journal, 1..3) });
    bench.check("ledger.jsonl", expect![""]);
    drop(runtime);
    bench.check("ledger.jsonl", expect!["call 1, call 2"]);
    // And where there is none, each line is moved at once.
    note(&journal, 3..4);
    bench.check("ledger.jsonl", expect!["call 1, call 2, call 3"]);
}

#[tokio::test]
async fn many_and_long_lines_do_not_wait() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..2);
    let mut long = record(2);
    let tool = "x".repeat(20_000);
    long.tool = &tool;
    journal.write(&long.line(), Moment::now()).expect("written");
    bench.check("ledger.jsonl", expect!["call 1, call 2"]);
    note(&journal, 3..2_000);
    // What is on its way arrives.
    drop(journal.shared.lock_unlent());
    let moved = fs::metadata(journal.path()).expect("a file").len();
    let all = 2_000 * record(1_000).line().len() as u64;
    assert!(moved + 64 * 1_024 > all - 1_000, "{moved} of {all}");
}

#[tokio::test]
async fn what_is_left_comes_into_the_file_once() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..4);
    bench.left_as("wal-left");
    // That of the journal which is there is in use.
    let recovered = Journal::recover(journal.path()).expect("a ledger");
    assert_eq!((recovered.lines, recovered.left), (3, Vec::new()));
    assert_eq!(bench.beside().len(), 1);
    bench.check("ledger.jsonl", expect!["call 1, call 2, call 3"]);
    let again = Journal::recover(journal.path()).expect("a ledger");
    assert_eq!((again.lines, again.left), (0, Vec::new()));
}

/// A process may be killed anywhere in a `write`, and before it has noted that there was one.
#[tokio::test]
async fn lines_that_the_file_has_already_do_not_come_twice() {
    let line = record(1).line().len();
    for cut in 0..=3 * line {
        let bench = Bench::new();
        let journal = bench.journal();
        note(&journal, 0..1);
        journal.catch_up();
        note(&journal, 1..4);
        // As it is when it writes.
        let full = OpenOptions::new().append(true).open("/dev/full");
        let file = journal.shared.lock().file.replace(full.expect("a device"));
        journal.catch_up();
        bench.left_as("wal-left");
        journal.shared.lock().file.replace(file);
        journal.catch_up();
        let (path, file) = (journal.path().to_owned(), fs::read(journal.path()));
        drop(journal);
        let file = file.expect("a file");
        fs::write(&path, &file[..line + cut]).expect("written");
        // Whoever comes next writes behind it, or moves it aside.
        match cut % 3 {
            0 => {}
            1 => {
                // Between two renames, there may be none before it.
                fs::rename(&path, bench.path("ledger.jsonl.2")).expect("moved");
            }
            _ => {
                let mut file = File::options().append(true).open(&path).expect("a file");
                let behind = record(9).line();
                std::io::Write::write_all(&mut file, &behind).expect("written");
            }
        }
        drop(bench.journal());
        let all = ["ledger.jsonl.2", "ledger.jsonl"].map(|name| fs::read(bench.path(name)));
        let all: Vec<u8> = all.into_iter().flatten().flatten().collect();
        let mut calls: Vec<_> = read(&all)
            .split(", ")
            .filter(|piece| piece.starts_with("call"))
            .map(str::to_owned)
            .collect();
        calls.retain(|call| call != "call 9");
        assert_eq!(calls, ["call 0", "call 1", "call 2", "call 3"], "{cut}");
    }
}

/// Lines that another thread has for the file are there whenever the process is killed, and so
/// are those that come meanwhile.
#[tokio::test]
async fn lines_on_loan_come_into_the_file_once() {
    for killed in 0..3 {
        let bench = Bench::new();
        let journal = bench.journal();
        note(&journal, 0..1);
        journal.catch_up();
        note(&journal, 1..4);
        let loan = journal.shared.lock().lend().expect("lines");
        note(&journal, 4..6);
        let mut left = Vec::new();
        let kill = |now: usize, left: &mut Vec<u8>| {
            if now == killed {
                bench.left_as("wal-left");
                *left = fs::read(journal.path()).expect("a file");
            }
        };
        kill(0, &mut left);
        let taken = loan.write();
        kill(1, &mut left);
        journal.shared.lock().take_back(loan, taken);
        kill(2, &mut left);
        let path = journal.path().to_owned();
        drop(journal);
        let all = "call 0, call 1, call 2, call 3, call 4, call 5";
        assert_eq!(read(&fs::read(&path).expect("a file")), all);
        fs::write(&path, left).expect("written");
        let recovered = Journal::recover(&path).expect("a ledger");
        assert_eq!(recovered.lines, if killed == 0 { 5 } else { 2 });
        assert_eq!(read(&fs::read(&path).expect("a file")), all);
    }
}

/// What the file has taken makes room for what comes.
#[tokio::test]
async fn there_is_room_beside_the_file_as_long_as_it_takes_lines() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 0..1);
    let line = record(1_000).line();
    // Three times as much as there is room for, and never so much that it is sent for.
    for _ in 0..12 {
        let loan = journal.shared.lock().lend().expect("lines");
        for _ in 0..(32 << 10) / line.len() {
            assert!(journal.shared.lock().note(&line, true));
        }
        let taken = loan.write();
        journal.shared.lock().take_back(loan, taken);
    }
    journal.catch_up();
    let text = fs::read(journal.path()).expect("a file");
    let first = record(0).line();
    let (before, rest) = text.split_at(first.len());
    assert_eq!(
        (before, rest.len() / line.len()),
        (&*first, 12 * ((32 << 10) / line.len()))
    );
    assert!(rest.chunks(line.len()).all(|chunk| chunk == &*line));
}

/// What a file does not take of a loan comes first when it does.
#[tokio::test]
async fn a_loan_that_the_file_does_not_take_holds_up_the_next_call() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..3);
    let full = OpenOptions::new().append(true).open("/dev/full");
    let file = journal.shared.lock().file.replace(full.expect("a device"));
    let loan = journal.shared.lock().lend().expect("lines");
    note(&journal, 3..4);
    let taken = loan.write();
    journal.shared.lock().take_back(loan, taken);
    let refused = journal.write(&record(4).line(), Moment::now());
    refused.expect_err("it is full");
    journal.shared.lock().file.replace(file);
    note(&journal, 5..6);
    journal.catch_up();
    bench.check("ledger.jsonl", expect!["call 1, call 2, call 3, call 5"]);
}

/// And the next loan waits for them.
#[tokio::test]
async fn whoever_needs_the_file_waits_for_a_loan() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..3);
    let loan = journal.shared.lock().lend().expect("lines");
    let line = record(3).line();
    let more = (70 << 10) / line.len();
    for _ in 0..more {
        assert!(journal.shared.lock().note(&line, true));
    }
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            journal.catch_up();
            fs::read(journal.path()).expect("a file")
        });
        while journal.shared.lock().wanted == 0 {
            std::thread::yield_now();
        }
        bench.check("ledger.jsonl", expect![""]);
        let taken = loan.write();
        journal.shared.lock().take_back(loan, taken);
        bench.check("ledger.jsonl", expect!["call 1, call 2"]);
        assert!(!journal.shared.lock().has_many());
        assert!(!waits.is_finished());
        journal.shared.tell();
        let text = waits.join().expect("it has caught up");
        assert_eq!(text.len(), (more + 2) * line.len());
    });
    assert!(!journal.shared.lock().has_many());
    for _ in 0..more {
        assert!(journal.shared.lock().note(&line, true));
    }
    assert!(journal.shared.lock().has_many());
}

/// Nobody goes on meanwhile.
#[tokio::test]
async fn a_call_that_is_alone_lends_nothing() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..2);
    let line = record(2).line();
    let many = || {
        for _ in 0..(64 << 10) / line.len() {
            assert!(journal.shared.lock().note(&line, true));
        }
    };
    many();
    assert!(journal.shared.lock().lend_many().is_none());
    let all = fs::metadata(journal.path()).expect("a file").len();
    assert!(all > (64 << 10) - 1_000, "{all}");
    // Another one, and the end of both.
    note(&journal, 3..4);
    many();
    let loan = journal.shared.lock().lend_many().expect("lines");
    let taken = loan.write();
    journal.shared.lock().take_back(loan, taken);
    for call in [1, 3] {
        journal.write_or_wait(&record(call).line(), Moment::now());
    }
    assert_eq!(journal.shared.lock().in_flight, 0);
}

/// A `write` may take any part of what it is given.
#[tokio::test]
async fn of_a_loan_the_file_may_take_a_part() {
    let lines: Vec<u8> = (1..4)
        .flat_map(|call| record(call).line().to_vec())
        .collect();
    for cut in 0..=lines.len() {
        let bench = Bench::new();
        let journal = bench.journal();
        note(&journal, 1..4);
        let loan = journal.shared.lock().lend().expect("lines");
        note(&journal, 4..5);
        fs::write(journal.path(), &lines[..cut]).expect("written");
        journal.shared.lock().take_back(loan, Ok(cut));
        journal.catch_up();
        let text = fs::read(journal.path()).expect("a file");
        let read = read(&text);
        let calls: Vec<_> = read
            .split(", ")
            .filter(|piece| piece.starts_with("call"))
            .collect();
        assert_eq!(
            calls,
            ["call 1", "call 2", "call 3", "call 4"],
            "{cut}: {read}"
        );
    }
}

/// Not even whoever is at its end still has the lines of a journal that is gone.
#[tokio::test]
async fn a_journal_that_is_dropped_has_all_its_lines_in_the_file() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..3);
    let shared = std::sync::Arc::clone(&journal.shared);
    drop(journal);
    bench.check("ledger.jsonl", expect!["call 1, call 2"]);
    assert_eq!(bench.beside(), [""; 0]);
    drop(shared);
}

/// What another gate has deleted since takes nothing.
#[tokio::test]
async fn a_loan_to_a_file_that_was_deleted_goes_to_the_next_one() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..3);
    let loan = journal.shared.lock().lend().expect("lines");
    fs::remove_file(journal.path()).expect("deleted");
    let taken = loan.write();
    journal.shared.lock().take_back(loan, taken);
    journal.shared.lock().file.expire();
    note(&journal, 3..4);
    journal.catch_up();
    bench.check("ledger.jsonl", expect!["call 1, call 2, call 3"]);
}

/// What has the name of such a file and is none stays, and the others come in.
#[tokio::test]
async fn what_cannot_be_read_stays_and_costs_nothing_else() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..3);
    bench.left_as("wal-whole");
    drop(journal);
    fs::remove_file(bench.path("ledger.jsonl")).expect("deleted");

    let whole = fs::read(bench.path("ledger.jsonl.wal-whole")).expect("a file");
    let other = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(bench.path(&format!("ledger.jsonl.wal-{name}")), bytes).expect("written");
    };
    other("behind", &|bytes| {
        bytes[16..20].copy_from_slice(&u32::MAX.to_ne_bytes())
    });
    other("before", &|bytes| {
        bytes[20..24].copy_from_slice(&1_u32.to_ne_bytes())
    });
    other("crossed", &|bytes| {
        bytes[20..24].copy_from_slice(&(1_u32 << 16).to_ne_bytes())
    });
    other("version", &|bytes| bytes[13] = b'2');
    other("short", &|bytes| bytes.truncate(1_000));
    other("empty", &Vec::clear);
    other("claimed", &|bytes| bytes.fill(0));
    other("begun", &|bytes| bytes[..16].fill(0));
    other("noend", &|bytes| bytes[16] -= 1);
    other("zeros", &|bytes| bytes[64..].fill(0));
    other("hole", &|bytes| bytes[80..90].fill(b'\n'));
    other("compressed.gz", &|bytes| bytes.truncate(1_000));
    other("writable", &|_| {});
    let writable = bench.path("ledger.jsonl.wal-writable");
    fs::set_permissions(writable, Permissions::from_mode(0o620)).expect("changed");
    other("linked.elsewhere", &|_| {});
    let elsewhere = bench.path("elsewhere");
    fs::rename(bench.path("ledger.jsonl.wal-linked.elsewhere"), &elsewhere).expect("moved");
    symlink(&elsewhere, bench.path("ledger.jsonl.wal-symlink")).expect("linked");
    fs::hard_link(&elsewhere, bench.path("ledger.jsonl.wal-hardlink")).expect("linked");
    fs::create_dir(bench.path("ledger.jsonl.wal-folder")).expect("made");

    let recovered = Journal::recover(&bench.path("ledger.jsonl")).expect("a ledger");
    assert_eq!(recovered.lines, 2);
    bench.check("ledger.jsonl", expect!["call 1, call 2"]);
    let mut left: Vec<String> = recovered
        .left
        .iter()
        .map(|(path, reason)| {
            let name = path.extension().and_then(OsStr::to_str).expect("a name");
            format!("{name}: {reason}\n")
        })
        .collect();
    left.sort();
    expect![[r#"
        wal-before: it is damaged
        wal-behind: it is damaged
        wal-crossed: it is damaged
        wal-folder: Is a directory (os error 21)
        wal-hardlink: it is no file of this user's own
        wal-hole: it is damaged
        wal-noend: it is damaged
        wal-short: it is too short
        wal-symlink: Too many levels of symbolic links (os error 40)
        wal-version: it is of another version, or damaged
        wal-writable: it is no file of this user's own
        wal-zeros: it is damaged
    "#]]
    .assert_eq(&left.concat());
}

/// What nobody would find takes no line.
#[tokio::test]
async fn a_file_that_was_deleted_is_made_anew() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..2);
    journal.catch_up();
    let [first] = &bench.beside()[..] else {
        panic!("{:?}", bench.beside())
    };
    fs::remove_file(bench.path(&format!("ledger.jsonl.{first}"))).expect("deleted");
    note(&journal, 2..3);
    let [second] = &bench.beside()[..] else {
        panic!("{:?}", bench.beside())
    };
    assert_ne!(first, second);
    bench.left_as("wal-left");
    let recovered = Journal::recover(journal.path()).expect("a ledger");
    assert_eq!((recovered.lines, recovered.in_use), (1, 1));
    bench.check("ledger.jsonl", expect!["call 1, call 2"]);
}

#[tokio::test]
async fn a_ledger_whose_folder_was_deleted_takes_no_line() {
    let bench = Bench::new();
    let journal = bench.journal();
    note(&journal, 1..2);
    journal.catch_up();
    fs::remove_dir_all(bench.folder.path()).expect("deleted");
    journal.shared.lock().file.expire();
    let error = journal
        .write(&record(2).line(), Moment::now())
        .expect_err("no folder")
        .to_string();
    let error = error.replace(&bench.folder.path().display().to_string(), "FOLDER");
    expect![
        "ledger FOLDER/ledger.jsonl: cannot be opened: its folder FOLDER does not exist; create it"
    ]
    .assert_eq(&error);
}

/// As on file systems where claimed space may not be there.
#[tokio::test]
async fn where_no_file_can_be_made_beside_it_the_ledger_takes_each_line() {
    let bench = Bench::new();
    // With what stands behind it, it is longer than a name may be.
    let path = bench.path(&"x".repeat(250));
    let journal = Journal::open(&path, JournalOptions::default()).expect("it opens");
    note(&journal, 1..3);
    expect!["call 1, call 2"].assert_eq(&read(&fs::read(&path).expect("a file")));
}

/// A runtime that nobody drives moves nothing.
#[test]
fn lines_that_are_late_are_moved_with_the_next_one() {
    let bench = Bench::new();
    let journal = bench.journal();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().expect("a runtime");
    runtime.block_on(async { note(&journal, 1..2) });
    runtime.block_on(async { note(&journal, 2..3) });
    bench.check("ledger.jsonl", expect![""]);
    journal.shared.lock().make_late();
    runtime.block_on(async { note(&journal, 3..4) });
    bench.check("ledger.jsonl", expect!["call 1, call 2, call 3"]);
}

#[test]
fn a_ledger_that_is_not_there_is_not_made() {
    let bench = Bench::new();
    let path = bench.path("ledger.jsonl");
    let error = Journal::recover(&path).expect_err("no file").to_string();
    let error = error.replace(&bench.folder.path().display().to_string(), "FOLDER");
    expect!["ledger FOLDER/ledger.jsonl: cannot be opened: No such file or directory (os error 2)"]
        .assert_eq(&error);
    assert!(!path.exists());
}

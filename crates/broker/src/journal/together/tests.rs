//! Lines that come together, in files that take all, some or none of them.

use std::fs::{self, File};
use std::io::{Read as _, pipe};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::pin::pin;

use callgate_policy::{Because, Decision, Verdict};
use futures::future::{BoxFuture, join_all};
use futures::poll;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::journal::{Event, JournalLine, JournalOptions, JournalReader, Record};
use crate::ledger::Ledger;
use crate::ruling::Ruling;

fn line(call: usize) -> String {
    Record::new(Event::Before, "r", call, "2026-06-01T12:00:00.000Z").line()
}

fn calls(text: &[u8]) -> Vec<String> {
    let lines = JournalReader::new(text).map(|line| match line.expect("memory is read") {
        JournalLine::Record(record) => record["call"].to_string(),
        JournalLine::Torn(_) => "torn".to_owned(),
    });
    lines.collect()
}

/// A journal in a folder of its own, that may have `max_bytes`.
fn open(max_bytes: u64, keep: u32) -> (TempDir, Arc<Journal>) {
    let folder = TempDir::new().expect("a folder");
    let options = JournalOptions {
        max_bytes,
        keep,
        ..JournalOptions::default()
    };
    let journal = Journal::open(&folder.path().join("ledger"), options).expect("it opens");
    (folder, Arc::new(journal))
}

/// One that writes to something else.
fn open_to(end: impl Into<OwnedFd>) -> (TempDir, Arc<Journal>) {
    let (folder, journal) = open(u64::MAX, 0);
    let file = File::from(end.into());
    journal.state.lock().expect("no panic").file.replace(file);
    (folder, journal)
}

/// Has a journal write to what is there.
fn write_to(journal: &Journal, path: &Path) {
    let file = File::options().append(true).open(path).expect("a file");
    journal.state.lock().expect("no panic").file.replace(file);
}

/// The lines of these calls, each as far as it goes without being settled.
async fn begin(together: &Together, calls: std::ops::Range<usize>) -> Vec<Outcome<'_>> {
    let mut begun: Vec<Outcome<'_>> = Vec::new();
    for call in calls {
        let mut writing: Outcome<'_> =
            Box::pin(async move { together.write(&line(call), &mut None).await });
        assert!(poll!(&mut writing).is_pending());
        begun.push(writing);
    }
    begun
}

type Outcome<'a> = BoxFuture<'a, Result<(), JournalError>>;

#[tokio::test]
async fn lines_of_calls_that_wait_are_one_write_and_those_behind_another() {
    let (file, writes) = UnixDatagram::pair().expect("a pair");
    let (_folder, journal) = open_to(file);
    let together = Together::new(journal);
    assert!(!together.settle());
    together.write_or_wait(line(1));
    let begun = begin(&together, 2..5).await;
    assert!(together.settle());
    assert!(!together.settle());
    assert_eq!(join_all(begun).await, [Ok(()), Ok(()), Ok(())]);
    together.write_or_wait(line(5));
    // There is nobody who could go on.
    assert!(!together.settle());
    // A long line comes behind those that wait.
    together.write_or_wait(line(6));
    let long = format!("{}{}", line(7), "x".repeat(LONG));
    assert_eq!(together.write(&long, &mut None).await, Ok(()));
    together.write_or_wait(line(8));
    // Whoever ends it may leave the rest to it.
    drop(together);
    let mut buffer = vec![0; 2 * LONG];
    let mut received = Vec::new();
    writes.set_nonblocking(true).expect("a socket");
    while let Ok(bytes) = writes.recv(&mut buffer) {
        received.push(calls(&buffer[..bytes]).join(" "));
    }
    assert_eq!(received, ["1 2 3 4", "5", "6", "7 torn", "8"]);
}

#[tokio::test]
async fn a_file_that_takes_a_part_has_whole_lines_of_calls_that_go_on() {
    let (mut reader, writer) = pipe().expect("a pipe");
    // SAFETY: a number is set for a descriptor that is open.
    let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    // SAFETY: as above.
    let set = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!((room, set), (4096, 0));
    let (folder, journal) = open_to(writer);
    let together = Together::new(Arc::clone(&journal));
    let begun = begin(&together, 100..160).await;
    together.write_or_wait(line(160));
    assert!(together.settle());
    let outcomes = join_all(begun).await;
    let whole = 4096 / line(100).len();
    let (written, unwritten) = outcomes.split_at(whole);
    assert!((1..60).contains(&whole) && written.iter().all(Result::is_ok));
    for outcome in unwritten {
        let error = outcome.as_ref().expect_err("not written").to_string();
        let error = error.replace(&folder.path().display().to_string(), "FOLDER");
        assert_eq!(
            error,
            "ledger FOLDER/ledger: cannot be written: it took a part of the line only"
        );
    }
    let mut text = vec![0; 4096];
    reader.read_exact(&mut text).expect("what it took");
    // The line of the call that is over comes first, on a line of its own.
    assert_eq!(journal.write(&line(161)), Ok(()));
    drop((together, journal));
    reader.read_to_end(&mut text).expect("the rest");
    let mut expected: Vec<String> = (100..100 + whole).map(|call| call.to_string()).collect();
    expected.extend(["torn", "160", "161"].map(str::to_owned));
    assert_eq!(calls(&text), expected);
}

#[tokio::test]
async fn a_file_that_takes_nothing_gets_what_is_over_when_it_does_again() {
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("it is there");
    let (folder, journal) = open_to(full);
    let together = Together::new(Arc::clone(&journal));
    let mut begun = begin(&together, 1..4).await;
    together.write_or_wait(line(4));
    // Given up before its line is written, it has another one that says so.
    drop(begun.remove(1));
    together.write_or_wait(line(5));
    assert!(together.settle());
    let outcomes = join_all(begun).await;
    assert_eq!(outcomes.len(), 2);
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, Err(JournalError::Write { .. })))
    );
    let taking = File::options().append(true).open(journal.path());
    journal
        .state
        .lock()
        .expect("no panic")
        .file
        .replace(taking.expect("a file"));
    let mut sent = None;
    let next = pin!(together.write("{}\n", &mut sent));
    let next = poll!(next);
    assert!(next.is_pending() && together.settle());
    let text = fs::read(folder.path().join("ledger")).expect("a file");
    assert_eq!(calls(&text), ["2", "4", "5", "torn"]);
}

#[tokio::test]
async fn a_line_that_no_call_follows_is_written_when_there_is_room() {
    let (folder, journal) = open(u64::MAX, 0);
    let path = folder.path().join("ledger");
    let full = Path::new("/dev/full");
    let written = || calls(&fs::read(&path).expect("a file"));
    let ledger = Ledger::new(Some(Arc::clone(&journal)), true);
    write_to(&journal, full);
    journal.write_or_wait(line(1));
    // A run ends while there is no room, and another one when there is.
    ledger.catch_up();
    assert!(written().is_empty());
    write_to(&journal, &path);
    ledger.catch_up();
    assert_eq!(written(), ["1"]);
    write_to(&journal, full);
    journal.write_or_wait(line(2));
    journal.write_or_wait(line(3));
    write_to(&journal, &path);
    // No run ends any more.
    drop((ledger, journal));
    assert_eq!(written(), ["1", "2", "3"]);
}

#[tokio::test]
async fn a_call_that_is_given_up_has_a_line_after_it_only_if_it_has_one_before_it() {
    let (folder, journal) = open(u64::MAX, 0);
    let path = folder.path().join("ledger");
    let ledger = Ledger::new(Some(Arc::clone(&journal)), true);
    let ruling = Ruling::by_rules(Decision::new(Verdict::Allow, Because::NoRule));
    // No room for the line before the call, room for it, and given up before it is written.
    for file in [Some(Path::new("/dev/full")), Some(&path), None] {
        let mut entry = ledger.open("s_t", "s", "t", None, 2).expect("an entry");
        let mut sending = Box::pin(async { entry.sending(&ruling).await });
        assert!(poll!(&mut sending).is_pending());
        if let Some(file) = file {
            write_to(&journal, file);
            assert!(ledger.settle());
            write_to(&journal, &path);
        }
        drop(sending);
        drop(entry);
        ledger.settle();
    }
    let text = fs::read_to_string(&path).expect("a file");
    let events = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("it is JSON");
        format!("{} {}", line["call"], line["event"])
    });
    assert_eq!(
        events.collect::<Vec<_>>(),
        [
            r#"1 "notSent""#,
            r#"2 "before""#,
            r#"2 "after""#,
            r#"3 "before""#,
            r#"3 "after""#
        ]
    );
    let lines = ledger.snapshot();
    let took: Vec<_> = lines.iter().map(|line| line.took_ms.is_some()).collect();
    assert_eq!(took, [false, true, true]);
}

#[tokio::test]
async fn a_file_that_becomes_full_takes_what_has_room() {
    let bytes = line(1).len() as u64;
    let (folder, journal) = open(2 * bytes, 0);
    let together = Together::new(journal);
    let begun = begin(&together, 1..5).await;
    together.write_if_taken(&line(5));
    // Those of calls that were made have room in any case.
    together.write_or_wait(line(6));
    assert!(together.settle());
    let outcomes = join_all(begun).await;
    let full =
        |outcome: &Result<(), JournalError>| matches!(outcome, Err(JournalError::Full { .. }));
    let outcomes: Vec<_> = outcomes
        .iter()
        .map(|one| (one.is_ok(), full(one)))
        .collect();
    assert_eq!(
        outcomes,
        [(true, false), (true, false), (false, true), (false, true)]
    );
    let text = fs::read(folder.path().join("ledger")).expect("a file");
    assert_eq!(calls(&text), ["1", "2", "6"]);
}

#[tokio::test]
async fn a_full_file_is_moved_aside_between_lines() {
    let bytes = line(1).len() as u64;
    let (folder, journal) = open(2 * bytes, 1);
    let together = Together::new(journal);
    let begun = begin(&together, 1..4).await;
    assert!(together.settle());
    assert_eq!(join_all(begun).await, [Ok(()), Ok(()), Ok(())]);
    let read = |name: &str| calls(&fs::read(folder.path().join(name)).expect("a file"));
    assert_eq!(read("ledger.1"), ["1", "2"]);
    assert_eq!(read("ledger"), ["3"]);
}

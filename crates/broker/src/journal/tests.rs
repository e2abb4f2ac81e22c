//! Files that take lines, files that do not, and lines that were cut off.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::record::START;
use super::*;

fn record(call: usize) -> Record<'static> {
    let mut record = Record::new(Event::Before, "r", call, "2026-06-01T12:00:00.000Z");
    record.function = "s_t";
    record
}

fn read(text: &[u8]) -> String {
    let lines = JournalReader::new(text).map(|line| match line.expect("memory is read") {
        JournalLine::Record(record) => format!("call {}", record["call"]),
        JournalLine::Torn(bytes) => format!("{bytes} torn"),
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn open_in(folder: &TempDir, max_bytes: u64) -> Journal {
    let options = JournalOptions {
        max_bytes,
        ..JournalOptions::default()
    };
    Journal::open(&folder.path().join("ledger.jsonl"), options).expect("it opens")
}

#[test]
fn lines_are_appended_for_the_owner_alone() {
    let folder = TempDir::new().expect("a folder");
    let journal = open_in(&folder, u64::MAX);
    journal.write(&record(1)).expect("written");
    let again = open_in(&folder, u64::MAX);
    again.write(&record(2)).expect("written");
    journal.write_or_wait(&record(3));
    let text = fs::read(journal.path()).expect("a file");
    expect![[r#"call 1, call 2, call 3"#]].assert_eq(&read(&text));
    expect![[r#"
        {"v":1,"event":"before","run":"r","call":1,"time":"2026-06-01T12:00:00.000Z","function":"s_t","server":"","tool":""}
    "#]]
    .assert_eq(&record(1).line(None));
    expect![[r#"
        {"v":1,"event":"before","run":"r","call":1,"time":"2026-06-01T12:00:00.000Z","function":"s_t","server":"","tool":"","user":"token \"a\""}
    "#]]
    .assert_eq(&record(1).line(Some("token \"a\"")));
    let mode = fs::metadata(journal.path())
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_line_that_was_cut_off_costs_no_other_line() {
    let whole = |call: usize| record(call).line(None).into_bytes();
    let check = |text: &[u8], expected: Expect| expected.assert_eq(&read(text));
    for cut in 0..whole(1).len() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("ledger.jsonl");
        let torn = [whole(1), whole(2)[..cut].to_vec()].concat();
        fs::write(&path, torn).expect("written");
        let journal = open_in(&folder, u64::MAX);
        journal.write(&record(3)).expect("written");
        let text = fs::read(&path).expect("a file");
        let read = read(&text);
        assert!(
            read.starts_with("call 1, ") && read.ends_with("call 3"),
            "{cut}: {read}"
        );
        // Another process may have been writing to the same file.
        let mixed = [&whole(1)[..cut], &whole(2)].concat();
        assert!(self::read(&mixed).ends_with("call 2"), "{cut}");
    }
    check(b"", expect![""]);
    check(b"\n\n", expect![""]);
    check(b"nothing of ours\n", expect!["15 torn"]);
    check(
        b"{\"v\":2}\n[1]\n\xff\xfe",
        expect!["7 torn, 3 torn, 2 torn"],
    );
    let without_end = whole(1);
    let without_end = &without_end[..without_end.len() - 1];
    check(without_end, expect!["call 1"]);
    check(
        &[without_end, &whole(2)].concat(),
        expect!["call 1, call 2"],
    );
}

#[test]
fn no_body_can_look_like_a_record() {
    let forged = format!("{{\"x\":{START}before\"}}");
    let mut record = record(1);
    record.arguments = Some(Body {
        bytes: forged.len(),
        sha256: "",
        text: Some(&forged),
    });
    record.server = START;
    assert_eq!(record.line(None).matches(START).count(), 1);
    assert_eq!(read(record.line(None).as_bytes()), "call 1");
}

#[test]
fn a_file_that_is_full_takes_nothing_and_the_next_one_does() {
    let folder = TempDir::new().expect("a folder");
    let bytes = record(1).line(None).len() as u64;
    let journal = open_in(&folder, 2 * bytes);
    journal.write(&record(1)).expect("written");
    journal.write(&record(2)).expect("written");
    let error = journal
        .write(&record(3))
        .expect_err("it is full")
        .to_string();
    let error = error.replace(&folder.path().display().to_string(), "FOLDER");
    expect!["ledger FOLDER/ledger.jsonl: is full: 234 bytes of 234; move the file away, and the next call begins a new one"].assert_eq(&error);
    // A call that is over waits for its line, and no other goes before it.
    journal.write_or_wait(&record(4));
    fs::rename(journal.path(), folder.path().join("old")).expect("moved");
    journal.write(&record(5)).expect("written");
    let text = fs::read(journal.path()).expect("a file");
    expect!["call 4, call 5"].assert_eq(&read(&text));
    let text = fs::read(folder.path().join("old")).expect("a file");
    expect!["call 1, call 2"].assert_eq(&read(&text));
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = TempDir::new().expect("a folder");
    let mut journal = open_in(&folder, u64::MAX);
    // What a full disk answers, without one.
    let full = OpenOptions::new()
        .append(true)
        .open("/dev/full")
        .expect("a device");
    let state = journal.state.get_mut().expect("no panic");
    state.open.file = full;
    let error = journal
        .write(&record(1))
        .expect_err("it is full")
        .to_string();
    let error = error.replace(&folder.path().display().to_string(), "FOLDER");
    expect!["ledger FOLDER/ledger.jsonl: cannot be written: No space left on device (os error 28)"]
        .assert_eq(&error);
}

#[test]
fn what_is_no_file_is_not_opened() {
    let folder = TempDir::new().expect("a folder");
    let check = |path: &Path, expected: Expect| {
        let error = Journal::open(path, JournalOptions::default()).expect_err("no file");
        let error = error.to_string();
        expected.assert_eq(&error.replace(&folder.path().display().to_string(), "FOLDER"));
    };
    check(
        &folder.path().join("no/ledger.jsonl"),
        expect![
            "ledger FOLDER/no/ledger.jsonl: cannot be opened: No such file or directory (os error 2)"
        ],
    );
    check(
        folder.path(),
        expect!["ledger FOLDER: cannot be opened: Is a directory (os error 21)"],
    );
    check(
        Path::new("/dev/null"),
        expect!["ledger /dev/null: cannot be opened: it is no regular file"],
    );
}

#[test]
fn lines_of_many_threads_and_files_do_not_mix() {
    const EACH: usize = 200;
    let folder = TempDir::new().expect("a folder");
    let long = "x".repeat(9_000);
    let journals = [open_in(&folder, u64::MAX), open_in(&folder, u64::MAX)];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (journal, long) = (&journals[thread % 2], &long);
            scope.spawn(move || {
                for call in 0..EACH {
                    let mut record = record(call);
                    record.tool = long;
                    journal.write(&record).expect("written");
                }
            });
        }
    });
    let text = fs::read(journals[0].path()).expect("a file");
    let lines: Vec<_> = JournalReader::new(&text[..])
        .map(|line| line.expect("read"))
        .collect();
    assert_eq!(lines.len(), 4 * EACH);
    assert!(
        lines
            .iter()
            .all(|line| matches!(line, JournalLine::Record(_)))
    );
}

#[test]
fn any_bytes_can_be_read() {
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.extend_from_slice(START.as_bytes());
    bytes.write_all(b"\n{").expect("memory");
    assert!(read(&bytes).contains("torn"));
}

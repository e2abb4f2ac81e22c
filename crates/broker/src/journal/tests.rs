//! Files that take lines, files that do not, and lines that were cut off.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use callgate_policy::flow::{Finding, Seen, Side};
use callgate_policy::{Effect, Pattern, Rule, ServerPattern};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::file::SETTLED;
use super::record::START;
use super::*;
use crate::outcome::Outcome;

pub(super) fn record(call: usize) -> Record<'static> {
    let mut record = Record::new(Event::Before, "r", call, "2026-06-01T12:00:00.000Z");
    record.function = "s_t";
    record
}

fn text_of(record: &Record<'_>) -> String {
    String::from_utf8(record.line().to_vec()).expect("text")
}

pub(super) fn read(text: &[u8]) -> String {
    let lines = JournalReader::new(text).map(|line| match line.expect("memory is read") {
        JournalLine::Record(record) => format!("call {}", record["call"]),
        JournalLine::Torn(bytes) => format!("{bytes} torn"),
    });
    lines.collect::<Vec<_>>().join(", ")
}

pub(super) fn open_in(folder: &TempDir, max_bytes: u64) -> Journal {
    open_to_keep(folder, max_bytes, 0, SETTLED)
}

fn open_to_keep(folder: &TempDir, max_bytes: u64, keep: u32, settled: Duration) -> Journal {
    let options = JournalOptions {
        max_bytes,
        keep,
        ..JournalOptions::default()
    };
    let path = folder.path().join("ledger.jsonl");
    let journal = Journal::open(&path, options).expect("it opens");
    journal.shared.lock().bounds.settled = settled;
    journal
}

#[test]
fn lines_are_appended_for_the_owner_alone() {
    let folder = TempDir::new().expect("a folder");
    let journal = open_in(&folder, u64::MAX);
    journal
        .write(&record(1).line(), Moment::now())
        .expect("written");
    let again = open_in(&folder, u64::MAX);
    again
        .write(&record(2).line(), Moment::now())
        .expect("written");
    journal.write_or_wait(&record(3).line(), Moment::now());
    let text = fs::read(journal.path()).expect("a file");
    expect![[r#"call 1, call 2, call 3"#]].assert_eq(&read(&text));
    expect![[r#"
        {"v":1,"event":"before","run":"r","call":1,"time":"2026-06-01T12:00:00.000Z","function":"s_t","server":"","tool":""}
    "#]]
    .assert_eq(&text_of(&record(1)));
    let mut owned = record(1);
    owned.user = Some("token \"a\"");
    expect![[r#"
        {"v":1,"event":"before","run":"r","call":1,"time":"2026-06-01T12:00:00.000Z","function":"s_t","server":"","tool":"","user":"token \"a\""}
    "#]]
    .assert_eq(&text_of(&owned));
    let mode = fs::metadata(journal.path())
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_line_that_was_cut_off_costs_no_other_line() {
    let whole = |call: usize| record(call).line().to_vec();
    let check = |text: &[u8], expected: Expect| expected.assert_eq(&read(text));
    for cut in 0..whole(1).len() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("ledger.jsonl");
        let torn = [whole(1), whole(2)[..cut].to_vec()].concat();
        fs::write(&path, torn).expect("written");
        let journal = open_in(&folder, u64::MAX);
        journal
            .write(&record(3).line(), Moment::now())
            .expect("written");
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
    assert_eq!(text_of(&record).matches(START).count(), 1);
    assert_eq!(read(&record.line()), "call 1");
}

#[test]
fn a_full_file_takes_what_is_over_and_the_next_one_all() {
    let folder = TempDir::new().expect("a folder");
    let bytes = record(1).line().len() as u64;
    let journal = open_in(&folder, 2 * bytes);
    journal
        .write(&record(1).line(), Moment::now())
        .expect("written");
    journal
        .write(&record(2).line(), Moment::now())
        .expect("written");
    let error = journal
        .write(&record(3).line(), Moment::now())
        .expect_err("it is full")
        .to_string();
    let error = error.replace(&folder.path().display().to_string(), "FOLDER");
    expect!["ledger FOLDER/ledger.jsonl: is full: 234 bytes of 234; move the file away, and the next call begins a new one"].assert_eq(&error);
    // A call that was made has its line all the same, one that was not made has none.
    journal.write_if_taken(&record(6).line(), Moment::now());
    journal.write_or_wait(&record(4).line(), Moment::now());
    fs::rename(journal.path(), folder.path().join("old")).expect("moved");
    journal
        .write(&record(5).line(), Moment::now())
        .expect("written");
    let text = fs::read(journal.path()).expect("a file");
    expect!["call 5"].assert_eq(&read(&text));
    let text = fs::read(folder.path().join("old")).expect("a file");
    expect!["call 1, call 2, call 4"].assert_eq(&read(&text));
}

#[test]
fn a_file_that_was_moved_is_left_with_the_next_look() {
    let folder = TempDir::new().expect("a folder");
    let journal = open_in(&folder, u64::MAX);
    journal
        .write(&record(1).line(), Moment::now())
        .expect("written");
    fs::rename(journal.path(), folder.path().join("old")).expect("moved");
    journal.shared.lock().file.expire();
    journal
        .write(&record(2).line(), Moment::now())
        .expect("written");
    journal.shared.lock().file.expire();
    fs::remove_file(journal.path()).expect("deleted");
    journal
        .write(&record(3).line(), Moment::now())
        .expect("written");
    let text = fs::read(folder.path().join("old")).expect("a file");
    expect!["call 1"].assert_eq(&read(&text));
    let text = fs::read(journal.path()).expect("a file");
    expect!["call 3"].assert_eq(&read(&text));
}

#[test]
fn full_files_are_moved_aside_and_the_oldest_goes() {
    let folder = TempDir::new().expect("a folder");
    let bytes = record(1).line().len() as u64;
    let journal = open_to_keep(&folder, 2 * bytes, 2, Duration::ZERO);
    for call in 1..=9 {
        journal
            .write(&record(call).line(), Moment::now())
            .expect("written");
    }
    let names = ["ledger.jsonl", "ledger.jsonl.1", "ledger.jsonl.2"];
    let kept = names.map(|name| {
        let text = fs::read(folder.path().join(name)).expect(name);
        format!("{name}: {}", read(&text))
    });
    expect![[r#"
        ledger.jsonl: call 9
        ledger.jsonl.1: call 7, call 8
        ledger.jsonl.2: call 5, call 6"#]]
    .assert_eq(&kept.join("\n"));
    assert!(!folder.path().join("ledger.jsonl.3").exists());

    // No file makes room for a line that is longer than any may be.
    let mut long = record(10);
    let tool = "x".repeat(300);
    long.tool = &tool;
    let error = journal
        .write(&long.line(), Moment::now())
        .expect_err("it is too long");
    assert!(matches!(error, JournalError::Full { .. }), "{error}");
}

#[test]
fn gates_that_move_one_file_aside_lose_no_line() {
    const EACH: usize = 300;
    let folder = TempDir::new().expect("a folder");
    let most = 40 * record(1).line().len() as u64;
    let journals: Vec<_> = (0..3)
        .map(|_| open_to_keep(&folder, most, 1_000, Duration::ZERO))
        .collect();
    std::thread::scope(|scope| {
        for (gate, journal) in journals.iter().enumerate() {
            scope.spawn(move || {
                for call in 0..EACH {
                    let line = record(gate * EACH + call).line();
                    journal.write(&line, Moment::now()).expect("written");
                }
            });
        }
    });
    drop(journals);
    let mut calls = Vec::new();
    let mut files = 0;
    for file in fs::read_dir(folder.path()).expect("a folder").flatten() {
        files += 1;
        let text = fs::read(file.path()).expect("a file");
        for line in JournalReader::new(&text[..]) {
            match line.expect("read") {
                JournalLine::Record(record) => calls.push(record["call"].as_u64()),
                torn @ JournalLine::Torn(_) => panic!("{torn:?}"),
            }
        }
    }
    calls.sort_unstable();
    let all: Vec<_> = (0..3 * EACH as u64).map(Some).collect();
    assert!(calls == all, "{} of {} lines", calls.len(), all.len());
    assert!(files > 3, "{files} files");
}

#[test]
fn a_file_that_was_moved_just_now_is_not_pushed_out() {
    let folder = TempDir::new().expect("a folder");
    let bytes = record(1).line().len() as u64;
    let journal = open_to_keep(&folder, bytes, 1, SETTLED);
    for call in 1..=4 {
        journal
            .write(&record(call).line(), Moment::now())
            .expect("written");
    }
    let text = fs::read(folder.path().join("ledger.jsonl.1")).expect("a file");
    expect!["call 1"].assert_eq(&read(&text));
    let text = fs::read(journal.path()).expect("a file");
    expect!["call 2, call 3, call 4"].assert_eq(&read(&text));
}

#[test]
fn a_line_is_what_serde_makes_of_it() {
    for odd in [
        "",
        "plain",
        "\"",
        "\\",
        "\n",
        "\u{1f}",
        "\u{7f}",
        "é\u{2028}",
    ] {
        let outcome = Outcome::ToolError {
            message: odd.to_owned(),
        };
        let [from, to] = ["from", "to"].map(|server| Arc::new(Side::new(odd, server, "")));
        let flows = [Finding::new(from, to, Seen::NotCompared("too much")).record()];
        let body = Body {
            bytes: odd.len(),
            sha256: odd,
            text: Some(odd),
        };
        let mut record = Record::new(Event::NotSent, odd, 7, odd);
        record.function = odd;
        record.server = odd;
        record.tool = odd;
        record.decision = Some(odd);
        let mut rule = Rule::new(Effect::Allow, Pattern::new("a*").expect("a pattern"));
        rule.server = ServerPattern::new(odd);
        record.rule = Some(&rule);
        record.flows = Some(&flows);
        record.more_flows = 9;
        record.arguments = Some(body);
        record.outcome = Some(&outcome);
        record.took_ms = Some(8);
        record.result = Some(body);
        record.user = Some(odd);
        let mut expected = json!({
            "v": 1, "event": "notSent", "run": odd, "call": 7, "time": odd, "function": odd,
            "server": odd, "tool": odd, "decision": odd, "rule": rule.to_json().to_string(),
            "flows": [{ "from": odd, "to": odd }], "moreFlows": 9,
            "arguments": { "bytes": odd.len(), "sha256": odd, "text": odd },
            "outcome": "toolError", "message": odd, "tookMs": 8,
            "result": { "bytes": odd.len(), "sha256": odd, "text": odd }, "user": odd,
        });
        if odd.is_empty() {
            expected
                .as_object_mut()
                .expect("an object")
                .shift_remove("message");
        }
        let line = text_of(&record);
        assert_eq!(line, format!("{expected}\n"));
        let read: Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(read, expected);
    }
}

/// What lines have in common is kept for the next one.
#[test]
fn a_line_has_nothing_of_the_one_before() {
    let rules = ["a*", "b"].map(|pattern| {
        let pattern = Pattern::new(pattern).expect("a pattern");
        Rule::new(Effect::Allow, pattern)
    });
    let long = "x".repeat(3_000);
    let texts = ["", "s", "s\"", &long];
    let mut records = Vec::new();
    for function in texts {
        for (server, tool) in [(function, "s"), ("s", function), ("", "")] {
            for decision in [None, Some(function), Some("s")] {
                for rule in [None, Some(&rules[0]), Some(&rules[1])] {
                    let mut record = record(1);
                    (record.function, record.server, record.tool) = (function, server, tool);
                    (record.decision, record.rule) = (decision, rule);
                    records.push(record);
                }
            }
        }
    }
    let alone: Vec<_> = std::thread::scope(|scope| {
        let made = records.iter().map(|record| scope.spawn(|| text_of(record)));
        made.map(|made| made.join().expect("a line")).collect()
    });
    // Each after each other.
    for before in &records {
        for (after, alone) in records.iter().zip(&alone) {
            text_of(before);
            assert_eq!(text_of(after), *alone);
        }
    }
}

#[test]
fn numbers_outcomes_and_hashes_are_what_others_make_of_them() {
    let mut record = record(0);
    for number in [0, 9, 10, 4_096, u64::MAX] {
        record.call = usize::try_from(number).expect("64 bits");
        record.took_ms = Some(number);
        let line: Value = serde_json::from_slice(&record.line()).expect("it is JSON");
        assert_eq!(
            (&line["call"], &line["tookMs"]),
            (&json!(number), &json!(number))
        );
    }
    let reason = "é".to_owned();
    let outcomes = [
        Outcome::Ok,
        Outcome::Cancelled,
        Outcome::TimedOut { limit_ms: 7 },
        Outcome::Kept { reason },
    ];
    for outcome in &outcomes {
        record.outcome = Some(outcome);
        let line: Value = serde_json::from_slice(&record.line()).expect("it is JSON");
        let said = json!(outcome);
        for (key, value) in said.as_object().expect("an object") {
            assert_eq!(&line[key], value);
        }
    }
    assert_eq!(
        digest("abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert_eq!(
        digest(""),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[test]
fn no_call_is_made_while_a_full_disk_takes_no_lines() {
    let folder = TempDir::new().expect("a folder");
    let journal = open_in(&folder, u64::MAX);
    // What a full disk answers, without one.
    let full = OpenOptions::new()
        .append(true)
        .open("/dev/full")
        .expect("a device");
    let file = journal.shared.lock().file.replace(full);
    // The space beside the file was claimed before the disk was full.
    journal
        .write(&record(1).line(), Moment::now())
        .expect("noted");
    let error = journal
        .write(&record(2).line(), Moment::now())
        .expect_err("it is full")
        .to_string();
    let error = error.replace(&folder.path().display().to_string(), "FOLDER");
    expect!["ledger FOLDER/ledger.jsonl: cannot be written: No space left on device (os error 28)"]
        .assert_eq(&error);
    journal.write_if_taken(&record(3).line(), Moment::now());
    journal.write_or_wait(&record(4).line(), Moment::now());
    let long = format!("{{\"v\":1,\"event\":\"{:20000}\",\"call\":5}}\n", "");
    journal.write_or_wait(long.as_bytes(), Moment::now());
    journal.write_or_wait(&record(6).line(), Moment::now());
    assert_eq!(fs::read(journal.path()).expect("a file"), b"");

    journal.shared.lock().file.replace(file);
    journal
        .write(&record(7).line(), Moment::now())
        .expect("written");
    let text = fs::read(journal.path()).expect("a file");
    expect!["call 1, call 4, call 5, call 6, call 7"].assert_eq(&read(&text));
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
            "ledger FOLDER/no/ledger.jsonl: cannot be opened: its folder FOLDER/no does not exist; create it"
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
                    journal
                        .write(&record.line(), Moment::now())
                        .expect("written");
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

//! Calls that wait for their lines to be written, and are given up meanwhile.

use std::fs;
use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use callgate_policy::{Because, Decision, Verdict};
use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;
use crate::journal::{JournalLine, JournalOptions, JournalReader};

fn journal(folder: &TempDir, max_bytes: u64) -> Arc<Journal> {
    let options = JournalOptions {
        max_bytes,
        ..JournalOptions::default()
    };
    let path = folder.path().join("ledger.jsonl");
    let mut journal = Journal::open(&path, options).expect("it opens");
    journal.wait_together(Duration::MAX);
    Arc::new(journal)
}

fn allowed() -> Ruling {
    Ruling::by_rules(Decision {
        verdict: Verdict::Allow,
        because: Because::Reviewer("a test".to_owned()),
    })
}

fn open(ledger: &Ledger) -> Entry {
    let mut entry = ledger
        .open("s_t", "s", "t", None, 2)
        .expect("there is room");
    entry.reviewed("{}", Vec::new());
    entry
}

/// The lines of a journal: event, number and outcome.
fn lines(journal: &Journal, expected: Expect) {
    let text = fs::read(journal.path()).expect("a file");
    let lines = JournalReader::new(&text[..]).map(|line| match line.expect("read") {
        JournalLine::Record(record) => {
            let outcome = record["outcome"].as_str().unwrap_or_default();
            let took = record.get("tookMs").map_or("", |_| " after a while");
            let line = format!("{} {} {outcome}", record["event"], record["call"]);
            format!("{}{took}", line.trim_end())
        }
        JournalLine::Torn(bytes) => format!("{bytes} torn"),
    });
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[tokio::test]
async fn a_call_that_is_given_up_while_its_line_waits_has_both_lines() {
    let folder = TempDir::new().expect("a folder");
    let journal = journal(&folder, u64::MAX);
    let ledger = Ledger::new(Some(Arc::clone(&journal)));
    let [mut one, mut two, mut three] = [(); 3].map(|()| open(&ledger));
    one.sending(&allowed()).await.expect("written");
    let mut cx = Context::from_waker(Waker::noop());
    let ruling = allowed();
    {
        let mut sending = pin!(three.sending(&ruling));
        assert!(sending.as_mut().poll(&mut cx).is_pending());
        {
            // One of those that wait.
            let mut given_up = pin!(two.sending(&ruling));
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
        }
        drop(two);
        // It takes the others along.
        sending.await.expect("written");
    }
    one.close(Outcome::Ok, Some("1")).await;
    three.close(Outcome::Ok, Some("3")).await;
    lines(
        &journal,
        expect![[r#"
            "before" 1
            "before" 3
            "before" 2
            "after" 2 cancelled
            "after" 1 ok after a while
            "after" 3 ok after a while"#]],
    );
    let outcomes = ledger.snapshot().into_iter().map(|line| line.outcome);
    let expected = [Outcome::Ok, Outcome::Cancelled, Outcome::Ok];
    assert_eq!(outcomes.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_result_that_nobody_waits_for_any_more_has_its_line() {
    let folder = TempDir::new().expect("a folder");
    let journal = journal(&folder, u64::MAX);
    let ledger = Ledger::new(Some(Arc::clone(&journal)));
    let [mut one, mut two, mut three] = [(); 3].map(|()| open(&ledger));
    for entry in [&mut one, &mut two, &mut three] {
        entry.sending(&allowed()).await.expect("written");
    }
    one.close(Outcome::Ok, Some("1")).await;
    {
        let mut closing = pin!(two.close(Outcome::Ok, Some("2")));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(closing.as_mut().poll(&mut cx).is_pending());
    }
    lines(
        &journal,
        expect![[r#"
            "before" 1
            "before" 2
            "before" 3
            "after" 1 ok after a while
            "after" 2 ok after a while"#]],
    );
    drop(three);
}

#[tokio::test]
async fn a_call_whose_line_was_refused_after_it_was_given_up_was_not_sent() {
    let folder = TempDir::new().expect("a folder");
    let sized = journal(&folder, u64::MAX);
    let ledger = Ledger::new(Some(Arc::clone(&sized)));
    let mut one = open(&ledger);
    one.sending(&allowed()).await.expect("written");
    let bytes = fs::metadata(sized.path()).expect("a file").len();
    drop(one);

    let folder = TempDir::new().expect("a folder");
    let journal = journal(&folder, bytes);
    let ledger = Ledger::new(Some(Arc::clone(&journal)));
    let [mut one, mut two] = [(); 2].map(|()| open(&ledger));
    one.sending(&allowed()).await.expect("there is room");
    {
        let ruling = allowed();
        let mut sending = pin!(two.sending(&ruling));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sending.as_mut().poll(&mut cx).is_pending());
    }
    drop(two);
    fs::rename(journal.path(), folder.path().join("old")).expect("moved");
    one.close(Outcome::Ok, Some("1")).await;
    // Neither line of the second: it was not sent, and there was no room to say so.
    lines(&journal, expect![[r#""after" 1 ok after a while"#]]);
    assert_eq!(ledger.snapshot()[1].outcome, Outcome::Cancelled);
}

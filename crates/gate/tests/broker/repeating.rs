//! A call of which nobody knows whether it was made is not made again, and its error says
//! whether that would do harm, by the tool's own word.

use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{CallError, CallOptions, NobodyToAsk, ServerSpec, Servers};
use callgate_policy::Hints;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{Run, Runs as _, Target, allow_all, in_time, odd_with_env, raw, target};
use crate::unsteady::Unsteady;

/// How long a call may take that gets no answer, in milliseconds: by then the server has it, on
/// any machine.
const HANGS: u64 = 2_000;

/// What a tool says of itself, whether its server is trusted, and whether a call may be made
/// again then. Trust makes no difference: it is the script that decides.
fn rows() -> Vec<(Hints, bool, bool)> {
    let silent = Hints::default();
    let reads = Hints {
        read_only: Some(true),
        ..silent
    };
    let repeats = Hints {
        idempotent: Some(true),
        ..silent
    };
    let neither = Hints {
        read_only: Some(false),
        destructive: Some(false),
        idempotent: Some(false),
        open_world: Some(false),
    };
    let says = [
        (silent, false),
        (reads, true),
        (repeats, true),
        (neither, false),
    ];
    let trust = [false, true];
    let rows = says
        .into_iter()
        .flat_map(|(hints, retryable)| trust.map(move |trusted| (hints, trusted, retryable)));
    rows.collect()
}

/// One server, and a run in which all is allowed.
async fn begin(mut spec: ServerSpec, trusted: bool) -> (Servers, Run) {
    spec.trusted = trusted;
    let broker = in_time(Servers::connect(vec![spec], |_| {})).await;
    let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
    (broker, run)
}

/// The error of a call: its kind, and whether it may be made again.
async fn fails(run: &Run, target: Target, arguments: Value, timeout: Option<u64>) -> String {
    let options = CallOptions {
        timeout: timeout.map(Duration::from_millis),
        ..CallOptions::default()
    };
    let error = in_time(run.call(target, raw(arguments), options)).await;
    match error.expect_err("it fails") {
        CallError::Protocol {
            message, retryable, ..
        } => format!("{message}: {retryable}"),
        CallError::Timeout {
            limit, retryable, ..
        } => format!("{limit:?}: {retryable}"),
        other => panic!("{other:?}"),
    }
}

/// A call of a tool with these hints, of a server that notes it and then does this.
async fn over_stdio(row: (Hints, bool, bool), then: &str, timeout: Option<u64>, said: &str) {
    let (hints, trusted, retryable) = row;
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes");
    let path = notes.to_str().expect("a UTF-8 path");
    let (broker, run) = begin(odd_with_env("effects", &[("EFFECTS", path)]), trusted).await;
    let note = Target {
        hints,
        ..target("effects", "note")
    };
    let first = json!({ "id": "first", "then": then });
    assert_eq!(
        fails(&run, note.clone(), first, timeout).await,
        format!("{said}: {retryable}"),
        "{row:?}"
    );
    // Of what is sent, the server has this last.
    let second = run.call(note, raw(json!({ "id": "second" })), CallOptions::default());
    in_time(second).await.expect("its process id");
    in_time(broker.shut_down()).await;
    let notes = std::fs::read_to_string(notes).expect("its notes");
    assert_eq!(notes, "done first\ndone second\n", "{row:?}");
}

#[tokio::test]
async fn a_server_that_ends_during_a_call() {
    let said = "the server ended with exit code 5 during the call";
    let rows = rows().into_iter();
    join_all(rows.map(|row| over_stdio(row, "die", None, said))).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time() {
    let rows = rows().into_iter();
    join_all(rows.map(|row| over_stdio(row, "hang", Some(HANGS), "2s"))).await;
}

/// A call of a tool with these hints over HTTP, in both eras.
async fn over_http(row: (Hints, bool, bool), hangs: bool, said: &str) {
    let (hints, trusted, retryable) = row;
    for era in ["2026-07-28", "2025-11-25"] {
        let web = Unsteady::present();
        let (broker, run) = begin(web.spec(era), trusted).await;
        let count = Target {
            hints,
            ..target("web", "count")
        };
        web.breaks(!hangs);
        let timeout = hangs.then_some(HANGS);
        let first = json!({ "hang": hangs });
        assert_eq!(
            fails(&run, count.clone(), first, timeout).await,
            format!("{said}: {retryable}"),
            "{era} {row:?}"
        );
        web.breaks(false);
        // How often it was called, this time included.
        let second = run.call(count, raw(json!({})), CallOptions::default());
        let second = in_time(second).await.expect("a count");
        assert_eq!(second.get(), "2", "{era} {row:?}");
        in_time(broker.shut_down()).await;
        assert_eq!(web.asked("tools/call").len(), 2, "{era} {row:?}");
    }
}

#[tokio::test]
async fn an_endpoint_whose_answer_breaks_off() {
    let said = "the server cannot be reached: unexpected EOF during chunk size line";
    join_all(rows().into_iter().map(|row| over_http(row, false, said))).await;
}

#[tokio::test]
async fn an_endpoint_that_does_not_answer_in_time() {
    join_all(rows().into_iter().map(|row| over_http(row, true, "2s"))).await;
}

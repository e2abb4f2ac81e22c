//! Calls: answers as text, limits, definitions, ends.

use std::time::{Duration, Instant};

use callgate_policy::Definition;
use callgate_servers::{FailureKind, ServerSpec, Status, Transport};
use futures::future::{join, join_all};
use serde_json::json;

use crate::support::{answer, call, decided_call, definition, in_time, odd, one, try_call, until};

#[tokio::test]
async fn results_and_errors_are_returned() {
    let error = json!({ "code": -7, "message": "no", "data": { "a": 1 } });
    for mode in ["flaky", "flaky --modern"] {
        for (tool, arguments, expected) in [
            ("rejects", error.clone(), "no (code -7) [sent: true]"),
            ("echo", json!({ "a": [1, "b"] }), r#"{"a":[1,"b"]}"#),
            ("not_an_object", json!({}), "7"),
        ] {
            assert_eq!(answer(odd(mode), tool, arguments).await, expected);
        }
    }
}

#[tokio::test]
async fn calls_are_in_flight_together() {
    for mode in ["counter", "counter --modern"] {
        let servers = one(odd(mode)).await;
        let calls = (0..100).map(|_| call(&servers, mode, "wait", json!({ "calls": 100 })));
        for answer in in_time(join_all(calls)).await {
            assert_eq!(answer, r#"{"inFlight":100}"#);
        }
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn large_result_stays_text() {
    let servers = one(odd("big")).await;
    let bytes = 10_000_000;
    let result = in_time(try_call(&servers, "big", "blob", json!({ "bytes": bytes }))).await;
    let result = result.expect("a result");
    let text = result["content"][0]["text"].as_str();
    assert_eq!(text.map(str::len), Some(bytes));
    in_time(servers.shut_down()).await;

    let mut spec = odd("big");
    spec.max_message_bytes = 1 << 20;
    let servers = one(spec).await;
    let answer = call(&servers, "big", "blob", json!({ "bytes": 2 << 20 })).await;
    let over = "the answer is over the limit of 1 MiB";
    assert!(answer.starts_with(over), "{answer}");
    // The connection is still open.
    let answer = call(&servers, "big", "blob", json!({ "bytes": 3 })).await;
    assert_eq!(answer, "xxx");
    in_time(servers.shut_down()).await;
}

/// A server that runs this shell command for each `tools/call`; `$id` is the id of the request.
fn scripted(command: &str) -> ServerSpec {
    let script = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
        *'"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
        *'"tools/list"'*) say '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*) COMMAND ;;
        esac
    done"#;
    let say = r#"say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }; "#;
    let script = format!("{say}{}", script.replace("COMMAND", command));
    let mut spec = ServerSpec::stdio("s", "sh", ["-c", &script]);
    spec.era = "2025-11-25".parse().expect("a revision");
    spec
}

#[tokio::test]
async fn unanswered_call_reports_unusable_messages() {
    for case in r#"
        echo 'on port 3000' → no answer within 400 ms; the server wrote a message that could not be used: "on port 3000"
        for n in 1 2 3; do echo '{'; done → no answer within 400 ms; the server wrote 3 messages that could not be used, the first: "{"
        id=99; say 1 → no answer within 400 ms; the server wrote a message that could not be used: "{"jsonrpc"
        printf '\033[2J key hunter2secret\n' → no answer within 400 ms; the server wrote a message that could not be used: "\u001b[2J key [KEY]"
        echo Traceback; exit 3 → the server ended with exit code 3 during the call; the server wrote a message that could not be used: "Traceback""#
        .trim()
        .lines()
    {
        let (command, expected) = case.trim().split_once(" → ").expect(case);
        let mut spec = scripted(command);
        spec.call_timeout = Duration::from_millis(400);
        if let Transport::Stdio(stdio) = &mut spec.transport {
            let secret = "hunter2secret".to_owned();
            stdio.secrets.insert("KEY".to_owned(), secret);
        }
        let servers = one(spec).await;
        let said = call(&servers, "s", "t", json!({})).await;
        assert!(said.starts_with(expected), "{said}\n{expected}");
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn abandoned_call_is_cancelled() {
    let mut spec = odd("hang-on-call");
    spec.call_timeout = Duration::from_millis(200);
    let servers = one(spec).await;
    let hang = || call(&servers, "hang-on-call", "hang", json!({}));
    assert_eq!(hang().await, "no answer within 200 ms [sent: true]");
    let mut dropped = Box::pin(hang());
    for _ in 0..100 {
        assert!(futures::poll!(dropped.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    drop(dropped);
    let cancelled = async {
        loop {
            let count = call(&servers, "hang-on-call", "cancelled", json!({})).await;
            if count == "2" {
                return;
            }
        }
    };
    in_time(cancelled).await;
    in_time(servers.shut_down()).await;
}

#[tokio::test]
async fn caller_timeout_covers_all_rounds() {
    let (mode, limit) = ("wants-input --modern", Duration::from_millis(300));
    let servers = one(odd(mode)).await;
    let definition = definition(&servers, mode, "want");
    let again = json!({ "state": "again" });
    let made = decided_call(&servers, mode, "want", &definition, &again, Some(limit));
    let failure = made.await.expect_err("it never ends");
    assert_eq!(failure.kind, FailureKind::Timeout(limit));
    in_time(servers.shut_down()).await;
}

/// Progress restarts the idle time, and not the total time.
#[tokio::test]
async fn progress_extends_a_call() {
    for mode in ["reports", "reports --modern"] {
        let mut spec = odd(mode);
        spec.call_timeout = Duration::from_secs(2);
        spec.max_call_time = Duration::from_secs(5);
        let servers = one(spec).await;
        let began = Instant::now();
        let hold = call(&servers, mode, "hold", json!({}));
        let steps = async {
            while began.elapsed() < Duration::from_secs(3) {
                assert_eq!(call(&servers, mode, "step", json!({})).await, "done");
            }
            call(&servers, mode, "release", json!({})).await
        };
        let (held, _) = in_time(join(hold, steps)).await;
        assert_eq!(held, "done", "{mode}");
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn changed_tool_is_not_called() {
    for mode in ["changes", "changes --modern"] {
        let servers = one(odd(mode)).await;
        call(&servers, mode, "add", json!({ "name": "it" })).await;
        let find = || {
            let state = servers.list().next().expect("a server");
            let Status::Ready(list) = state.status else {
                panic!("{state:?}");
            };
            list.tools.iter().find(|tool| tool["name"] == "it").cloned()
        };
        until(&servers, |_| find().is_some()).await;
        let decided = Definition::of(&find().expect("it is listed"));
        let made = || async {
            decided_call(&servers, mode, "it", &decided, &json!({}), None)
                .await
                .map_err(|failure| failure.to_string())
        };
        assert!(made().await.is_ok());
        call(&servers, mode, "change", json!({ "name": "it" })).await;
        let is_changed = || find().is_some_and(|tool| tool["description"] == "Changed 1 times");
        until(&servers, |_| is_changed()).await;
        let failure = made().await.expect_err("it has changed");
        assert!(failure.ends_with("was done; call it again to have the new definition decided on"));
        call(&servers, mode, "remove", json!({ "name": "it" })).await;
        until(&servers, |_| find().is_none()).await;
        let failure = made().await.expect_err("it is gone");
        let gone = "its server no longer lists the tool";
        assert!(failure.starts_with(gone), "{failure}");
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn server_exit_ends_its_calls_at_once() {
    let said = answer(odd("dies-on-call"), "die", json!({})).await;
    assert_eq!(
        said,
        "the server ended with exit code 5 during the call; its last words on stderr: odd server: \
         out of luck [sent: true]"
    );
}

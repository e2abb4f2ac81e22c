//! Requests and what servers say of their own accord, without a process.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::*;
use crate::fake::{Host, agree, call, connect, result};

const OLDER: ProtocolVersion = ProtocolVersion::V_2025_11_25;
const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;

fn progress(token: &Value, progress: f64, message: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": { "progressToken": token, "progress": progress, "message": message },
    })
}

/// Has a server of this revision ask, and shows what it is answered.
async fn check_asks(version: ProtocolVersion, host: &Arc<Host>, expected: Expect) {
    let (session, link) = agree(version, Abilities::default(), host, |_| Vec::new());
    let form = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let requests = [
        ("ping", json!({})),
        ("roots/list", json!({})),
        (
            "elicitation/create",
            json!({ "message": "m", "requestedSchema": form }),
        ),
        (
            "elicitation/create",
            json!({ "mode": "url", "message": "m", "url": "https://e" }),
        ),
        ("elicitation/create", json!({ "mode": "telepathy" })),
        (
            "sampling/createMessage",
            json!({ "messages": [], "maxTokens": 1 }),
        ),
        (
            "sampling/createMessage",
            json!({ "messages": [], "tools": [] }),
        ),
        ("tools/list", json!({})),
        (
            "elicitation/create",
            json!({ "mode": "url", "message": "m", "url": "javascript:alert(1)" }),
        ),
    ];
    for (number, (method, params)) in requests.into_iter().enumerate() {
        let id = format!("q{number}");
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        session.inbox.deliver(request.to_string().as_bytes());
    }
    // The answers come from tasks; this one runs when they have.
    while session.asked.is_asking() {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    let mut sent: Vec<_> = link
        .sent()
        .into_iter()
        .map(|answer| answer.replace(r#"{"jsonrpc":"2.0","id":"#, ""))
        .collect();
    sent.sort();
    expected.assert_eq(&sent.join("\n"));
}

#[tokio::test]
async fn what_is_offered_is_answered() {
    check_asks(
        OLDER,
        &Host::able(),
        expect![[r#"
            "q0","result":{}}
            "q1","result":{"roots":[{"uri":"file:///work"}]}}
            "q2","result":{"action":"accept","content":{}}}
            "q3","result":{"action":"accept"}}
            "q4","error":{"code":-32602,"message":"this mode of elicitation was not announced"}}
            "q5","result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}}
            "q6","result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}}
            "q7","error":{"code":-32601,"message":"Method not found"}}
            "q8","error":{"code":-32602,"message":"the page is none of the web: its URL is not http or https"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_not_offered_is_declined() {
    check_asks(
        OLDER,
        &Arc::default(),
        expect![[r#"
            "q0","result":{}}
            "q1","error":{"code":-32601,"message":"Method not found"}}
            "q2","result":{"action":"decline"}}
            "q3","result":{"action":"decline"}}
            "q4","result":{"action":"decline"}}
            "q5","error":{"code":-32601,"message":"Method not found"}}
            "q6","error":{"code":-32601,"message":"Method not found"}}
            "q7","error":{"code":-32601,"message":"Method not found"}}
            "q8","result":{"action":"decline"}}"#]],
    )
    .await;
    let host = Host {
        offers: Offers {
            form: true,
            sampling: true,
            ..Offers::default()
        },
        content: json!({ "a": "no number" }),
        ..Host::default()
    };
    check_asks(
        OLDER,
        &Arc::new(host),
        expect![[r#"
            "q0","result":{}}
            "q1","error":{"code":-32601,"message":"Method not found"}}
            "q2","error":{"code":-32603,"message":"the answer does not fit the form: \"a\" is no integer"}}
            "q3","error":{"code":-32602,"message":"this mode of elicitation was not announced"}}
            "q4","error":{"code":-32602,"message":"this mode of elicitation was not announced"}}
            "q5","result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}}
            "q6","error":{"code":-32602,"message":"sampling with tools was not announced"}}
            "q7","error":{"code":-32601,"message":"Method not found"}}
            "q8","error":{"code":-32602,"message":"this mode of elicitation was not announced"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn the_newest_revision_has_no_requests_of_servers() {
    check_asks(NEWEST, &Host::able(), expect![[""]]).await;
}

#[tokio::test]
async fn before_the_handshake_only_a_ping_is_answered() {
    let (session, link) = connect(&Host::able(), |_| Vec::new());
    for (id, method) in [(1, "ping"), (2, "roots/list")] {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        session.inbox.deliver(request.to_string().as_bytes());
    }
    assert_eq!(
        link.sent(),
        [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"not before the handshake"}}"#
        ]
    );
}

#[tokio::test]
async fn a_request_that_the_server_cancels_is_not_answered() {
    let host = Arc::new(Host {
        silent: true,
        offers: Host::able().offers,
        ..Host::default()
    });
    let (session, link) = agree(OLDER, Abilities::default(), &host, |_| Vec::new());
    let deliver = |message: Value| session.inbox.deliver(message.to_string().as_bytes());
    for number in 0..20 {
        let id = format!("q{number}");
        deliver(json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create" }));
    }
    // Sixteen are worked on, and four were too many.
    assert_eq!(link.sent().len(), 4);
    assert!(session.asked.is_asking());
    for number in 0..20 {
        let params = json!({ "requestId": format!("q{number}") });
        deliver(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    while session.asked.is_asking() {
        tokio::task::yield_now().await;
    }
    assert_eq!(link.sent().len(), 4);
}

#[tokio::test]
async fn progress_is_passed_on_while_it_counts_up() {
    let host = Host::able();
    let server = |message: &Value| {
        let token = &message["params"]["_meta"]["progressToken"];
        let said = [(1.0, "a\u{1b}"), (1.0, "again"), (0.5, "back"), (2.0, "b")];
        let mut answers: Vec<_> = said.map(|(n, text)| progress(token, n, text)).into();
        answers.push(progress(&json!(99), 3.0, "somebody else's"));
        answers.push(result(message, json!("done")));
        answers
    };
    let (session, _) = agree(OLDER, Abilities::default(), &host, server);
    session.call(&call(&host)).await.expect("an answer");
    assert_eq!(
        host.heard(),
        [r#"s.t 1/None Some("a\\u{1b}")"#, r#"s.t 2/None Some("b")"#]
    );
}

#[tokio::test]
async fn a_call_without_a_sign_of_work_times_out_and_is_cancelled() {
    let host = Host::able();
    let (session, link) = agree(OLDER, Abilities::default(), &host, |_| Vec::new());
    let mut call = call(&host);
    call.patience.idle = Duration::from_millis(20);
    let failure = session.call(&call).await.expect_err("no answer");
    assert_eq!(failure.to_string(), "no answer within 20 ms");
    assert_eq!(link.sent(), ["tools/call", "notifications/cancelled"]);
    assert_eq!(link.last()["params"]["requestId"], 1);
    // Too late, and nobody's any more.
    session.inbox.deliver(br#"{"id":1,"result":{}}"#);
}

#[tokio::test]
async fn who_is_asked_knows_for_which_call() {
    let host = Host::able();
    let other = Host::able();
    let (session, _) = agree(OLDER, Abilities::default(), &other, |_| Vec::new());
    let third = Host::able();
    let (first, second) = (call(&host), call(&third));
    let mut calls: Vec<_> = vec![Box::pin(session.call(&first))];
    let ask = |id| {
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create" });
        session.inbox.deliver(ask.to_string().as_bytes());
    };
    let asked = async |host: &Host, expected: &str| {
        while host.heard().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(host.heard(), [expected]);
    };
    assert!(futures::poll!(calls.last_mut().expect("a call")).is_pending());
    ask("one");
    asked(&host, r#"s Some("t") elicits {}"#).await;
    // Whose it is cannot be told now, so it goes to neither run.
    calls.push(Box::pin(session.call(&second)));
    assert!(futures::poll!(calls.last_mut().expect("a call")).is_pending());
    ask("two");
    asked(&other, "s None elicits {}").await;
    assert!(third.heard().is_empty());
}

#[tokio::test]
async fn what_is_asked_for_at_too_great_length_is_refused() {
    let host = Host::able();
    let (session, link) = agree(OLDER, Abilities::default(), &host, |_| Vec::new());
    for (method, most) in [
        ("elicitation/create", 64 << 10),
        ("sampling/createMessage", 1 << 20),
    ] {
        let params = json!({ "message": "x".repeat(most) });
        let bytes = params.to_string().len();
        let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        session.inbox.deliver(ask.to_string().as_bytes());
        let message = format!("its params have {bytes} bytes, and {most} are the most");
        let error = json!({ "code": -32602, "message": message });
        assert_eq!(
            link.last(),
            json!({ "jsonrpc": "2.0", "id": 1, "error": error })
        );
        assert!(host.heard().is_empty());
    }
}

/// Has a server ask a model five times with a million bytes.
fn ask_at_length(session: &Session) {
    for id in 1..=5 {
        let params = json!({ "messages": [], "x": "x".repeat(1_000_000) });
        let method = "sampling/createMessage";
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        session.inbox.deliver(ask.to_string().as_bytes());
    }
}

#[tokio::test]
async fn what_is_asked_for_together_at_too_great_length_is_refused() {
    let host = Host::able();
    let (session, link) = agree(OLDER, Abilities::default(), &host, |_| Vec::new());
    let refused = r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"it asks with more than 4194304 bytes at a time"}}"#;
    for rounds in 1..=2 {
        ask_at_length(&session);
        assert_eq!(link.last().to_string(), refused);
        // What is answered is not held any more.
        while session.asked.is_asking() {
            tokio::task::yield_now().await;
        }
        assert_eq!(host.heard().len(), 4 * rounds);
    }
}

#[tokio::test]
async fn what_is_asked_for_with_too_many_values_is_refused() {
    let host = Host::able();
    let (session, link) = agree(OLDER, Abilities::default(), &host, |_| Vec::new());
    let ask = |id: u32, values: usize| {
        let params = json!({ "messages": [], "x": vec![0; values] });
        let method = "sampling/createMessage";
        let ask = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        session.inbox.deliver(ask.to_string().as_bytes());
    };
    let refused = |id: u32, code: i32, message: &str| {
        let error = json!({ "code": code, "message": message });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    };
    ask(1, 300_000);
    let many = refused(1, -32602, "its params have more than 262144 values");
    assert_eq!(link.last(), many);
    ask(2, 200_000);
    ask(3, 100_000);
    let full = refused(3, -32000, "it asks with more than 262144 values at a time");
    assert_eq!(link.last(), full);
    while session.asked.is_asking() {
        tokio::task::yield_now().await;
    }
    assert_eq!(host.heard().len(), 1);
}

/// A result's requests are held together with those that are made for themselves.
#[tokio::test]
async fn what_results_ask_for_together_at_too_great_length_is_refused() {
    let silent = Host {
        silent: true,
        offers: Host::able().offers,
        ..Host::default()
    };
    let host = Arc::new(silent);
    let params = json!({ "messages": [], "x": "x".repeat(1_000_000) });
    let requests = json!({ "k": { "method": "sampling/createMessage", "params": params } });
    let server = move |message: &Value| {
        let wants = json!({ "resultType": "input_required", "inputRequests": requests });
        vec![result(message, wants)]
    };
    let (session, _link) = agree(NEWEST, Abilities::default(), &host, server);
    let call = call(&host);
    let mut calls: Vec<_> = (0..4).map(|_| Box::pin(session.call(&call))).collect();
    for call in &mut calls {
        assert!(futures::poll!(call).is_pending());
    }
    let failure = session.call(&call).await.expect_err("there is no room");
    assert_eq!(
        failure.to_string(),
        "it asks with more than 4194304 bytes at a time; make fewer such calls at a time"
    );
    // Nobody waits for the answer any more.
    calls.pop();
    let mut next = Box::pin(session.call(&call));
    assert!(futures::poll!(&mut next).is_pending());
    assert_eq!(host.heard().len(), 5);
}

#[tokio::test]
async fn what_a_request_says_of_the_client() {
    let answer = |message: &Value| vec![result(message, json!({}))];
    let host = Host::able();
    for (version, expected) in [
        (
            OLDER,
            expect![[r#"{"_meta":{"progressToken":1},"name":"t","arguments":{}}"#]],
        ),
        (
            NEWEST,
            expect![[
                r#"{"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"callgate","version":"0.1.0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}},"name":"t","arguments":{}}"#
            ]],
        ),
    ] {
        let (session, link) = agree(version, Abilities::default(), &host, answer);
        session.call(&call(&host)).await.expect("an answer");
        expected.assert_eq(&link.last()["params"].to_string());
    }
    // Each call says what its own caller offers.
    let (session, link) = agree(NEWEST, Abilities::default(), &host, answer);
    session
        .call(&call(&Arc::default()))
        .await
        .expect("an answer");
    let capabilities =
        &link.last()["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(
        *capabilities,
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
    );
}

#[tokio::test]
async fn changes_count_where_they_were_asked_for() {
    let changed = |id: Value| {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        json!({
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": { "_meta": meta },
        })
    };
    let host = Arc::default();
    let (session, _) = agree(OLDER, Abilities::default(), &host, |_| Vec::new());
    session
        .inbox
        .deliver(changed(json!(7)).to_string().as_bytes());
    assert_eq!(session.watch_changes().borrow().tools, 1);

    let (session, _) = agree(NEWEST, Abilities::default(), &host, |_| Vec::new());
    let request = Request::new("subscriptions/listen", r#""notifications":{}"#);
    let flight = session.open(&request).expect("a flight");
    for id in [
        json!(flight.id()),
        json!(flight.id().to_string()),
        json!(99),
    ] {
        session.inbox.deliver(changed(id).to_string().as_bytes());
    }
    assert_eq!(session.watch_changes().borrow().tools, 2);
    let ended = changed(json!(flight.id()));
    drop(flight);
    session.inbox.deliver(ended.to_string().as_bytes());
    assert_eq!(session.watch_changes().borrow().tools, 2);
}

#[tokio::test]
async fn the_end_of_a_subscription_is_heard_however_its_id_is_written() {
    for as_text in [false, true] {
        let host = Arc::default();
        let (session, _) = agree(NEWEST, Abilities::default(), &host, |_| Vec::new());
        let flight = session.open(&Request::new("subscriptions/listen", ""));
        let id = flight.as_ref().expect("a flight").id();
        let shown = if as_text {
            json!(id.to_string())
        } else {
            json!(id)
        };
        let params = json!({ "requestId": shown });
        let ended = json!({ "method": "notifications/cancelled", "params": params });
        session.inbox.deliver(ended.to_string().as_bytes());
        assert!(!session.inbox.is_listening(id), "{shown}");
    }
}

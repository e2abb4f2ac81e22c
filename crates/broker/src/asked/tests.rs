//! When calls wait for what a server asks.

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::*;
use crate::fake::{Host, agree, call, result};
use crate::link::LinkError;
use crate::session::Abilities;

/// A server that answers calls, and nothing else.
fn called(message: &Value) -> Vec<Value> {
    match message["method"].as_str() {
        Some("tools/call") => vec![result(message, json!({ "content": [] }))],
        _ => Vec::new(),
    }
}

/// A server that asks for folders when it is connected to takes calls before it has
/// them.
#[tokio::test]
async fn a_call_leaves_time_to_take_in_folders() {
    let host = Host::able();
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = agree(version, Abilities::default(), &host, called);
    session.call(&call(&host)).await.expect("a result");

    let begun = Instant::now();
    let asks = br#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
    session.inbox.deliver(asks);
    session.call(&call(&host)).await.expect("a result");
    assert!(begun.elapsed() >= TAKING_IN, "{:?}", begun.elapsed());

    let sent = link.sent();
    let [first, told, second] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!([first, second], ["tools/call", "tools/call"]);
    assert!(told.contains("file:///work"), "{told}");
}

/// One that does not ask is waited for once.
#[tokio::test]
async fn a_call_leaves_time_to_ask_for_other_folders() {
    let host = Host::able();
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = agree(version, Abilities::default(), &host, called);
    let begun = Instant::now();
    session.roots_changed();
    session.call(&call(&host)).await.expect("a result");
    let waited = begun.elapsed();
    assert!(waited >= TAKING_IN, "{waited:?}");
    // Nothing is left to be waited for, and nothing begins it anew.
    let settling = std::pin::pin!(session.asked.settle(Duration::MAX));
    assert!(futures::poll!(settling).is_ready());

    // As long as a call may take, and no longer.
    session.roots_changed();
    session.asked.settle(Duration::ZERO).await;
    assert_eq!(
        link.sent(),
        [
            "notifications/roots/list_changed",
            "tools/call",
            "notifications/roots/list_changed"
        ]
    );
}

#[tokio::test]
async fn only_whoever_was_offered_folders_and_has_a_session_is_told_of_others() {
    let told = |version, caller: &Arc<Host>| {
        let (session, link) = agree(version, Abilities::default(), caller, |_| Vec::new());
        session.roots_changed();
        link.sent()
    };
    let changed = ["notifications/roots/list_changed"];
    assert_eq!(told(ProtocolVersion::V_2025_06_18, &Host::able()), changed);
    let none: [&str; 0] = [];
    assert_eq!(told(ProtocolVersion::V_2026_07_28, &Host::able()), none);
    assert_eq!(told(ProtocolVersion::V_2025_11_25, &Arc::default()), none);
}

/// Never answers.
fn silent() -> Arc<Host> {
    Arc::new(Host {
        silent: true,
        offers: Host::able().offers,
        ..Host::default()
    })
}

/// Has each one asked, or ended.
async fn run() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

/// Nobody is to answer it any more, and no later call is to wait for that.
#[tokio::test]
async fn a_question_ends_with_the_last_call_that_it_may_be_for() {
    let (gate, host) = (Host::able(), silent());
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = agree(version, Abilities::default(), &gate, |_| Vec::new());
    let mut call = call(&host);
    let mut first = Box::pin(session.call(&call));
    let mut second = Box::pin(session.call(&call));
    assert!(futures::poll!(&mut first).is_pending());
    assert!(futures::poll!(&mut second).is_pending());
    for (id, method) in [(1, "elicitation/create"), (2, "sampling/createMessage")] {
        let asks = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        session.inbox.deliver(asks.to_string().as_bytes());
    }
    run().await;
    assert_eq!(host.heard().len(), 2);
    drop(first);
    run().await;
    assert!(session.asked.is_asking());
    session.inbox.deliver(br#"{"id":2,"result":{}}"#);
    second.await.expect("a result");
    run().await;
    assert!(!session.asked.is_asking());
    let mut sent = link.sent();
    sent.sort();
    assert_eq!(
        sent,
        [
            "notifications/cancelled",
            "tools/call",
            "tools/call",
            r#"{"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"the user gave no answer"}}"#,
        ]
    );
    call.patience.idle = Duration::from_millis(20);
    let failure = session.call(&call).await.expect_err("no answer");
    assert_eq!(failure.to_string(), "no answer within 20 ms");
}

/// Its server cannot have the answer.
#[tokio::test]
async fn a_question_ends_with_its_connection() {
    let host = silent();
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = agree(version, Abilities::default(), &host, |_| Vec::new());
    let asks = br#"{"jsonrpc":"2.0","id":"x","method":"elicitation/create"}"#;
    session.inbox.deliver(asks);
    run().await;
    assert_eq!(host.heard().len(), 1);
    assert!(session.asked.is_asking());
    session.inbox.lost(LinkError::closed("it ended", true));
    session.inbox.deliver(asks);
    run().await;
    assert!(!session.asked.is_asking());
    assert_eq!(host.heard().len(), 1);
    assert_eq!(link.sent(), [""; 0]);
}

/// The first one ends when the second one is there.
#[tokio::test]
async fn a_request_with_the_id_of_one_that_was_cancelled_is_held_on_to() {
    let host = silent();
    let version = ProtocolVersion::V_2025_11_25;
    let (session, _) = agree(version, Abilities::default(), &host, |_| Vec::new());
    let asks = br#"{"jsonrpc":"2.0","id":"x","method":"elicitation/create"}"#;
    let cancels =
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#;
    session.inbox.deliver(asks);
    run().await;
    session.inbox.deliver(cancels);
    session.inbox.deliver(asks);
    run().await;
    assert_eq!(host.heard().len(), 2);
    assert!(session.asked.is_asking());
    session.inbox.deliver(cancels);
    run().await;
    assert!(!session.asked.is_asking());
}

//! When calls wait for what a server asks.

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::*;
use crate::fake::{Host, agree, call, result};
use crate::session::Abilities;

/// A server that asks for folders when it is connected to takes calls before it has
/// them.
#[tokio::test]
async fn a_call_leaves_time_to_take_in_folders() {
    let host = Host::able();
    let server = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, json!({ "content": [] }))],
        _ => Vec::new(),
    };
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = agree(version, Abilities::default(), &host, server);
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

/// The first one ends when the second one is there.
#[tokio::test]
async fn a_request_with_the_id_of_one_that_was_cancelled_is_held_on_to() {
    let silent = Host {
        silent: true,
        offers: Host::able().offers,
        ..Host::default()
    };
    let host = Arc::new(silent);
    let version = ProtocolVersion::V_2025_11_25;
    let (session, _) = agree(version, Abilities::default(), &host, |_| Vec::new());
    let asks = br#"{"jsonrpc":"2.0","id":"x","method":"elicitation/create"}"#;
    let cancels =
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#;
    // Each is asked, or ends.
    let run = async || {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    };
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

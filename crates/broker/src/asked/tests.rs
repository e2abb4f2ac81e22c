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

//! Lists and calls of a server that is a function.

use callgate_policy::Definition;
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::fake::{Host, agree, call, result};
use crate::listed::{Covered, Decided, Listed};
use crate::session::Abilities;

/// Lists the tools of a server of 2026-07-28 whose list is of this type.
async fn listed(kind: Value) -> String {
    let server = move |message: &Value| {
        let mut page = json!({ "tools": [{ "name": "t" }] });
        page["resultType"] = kind.clone();
        vec![result(message, page)]
    };
    let version = ProtocolVersion::V_2026_07_28;
    let (session, _link) = agree(version, Abilities::default(), &Host::able(), server);
    let connection = Connection::new(session, None);
    match connection.list_tools(Duration::from_secs(20)).await {
        Ok(listing) => format!("{} tools", listing.tools.len()),
        Err(failure) => failure.to_string(),
    }
}

#[tokio::test]
async fn an_empty_cursor_is_one_since_2026_07_28() {
    for (version, expected) in [
        (ProtocolVersion::V_2025_11_25, vec!["first"]),
        (ProtocolVersion::V_2026_07_28, vec!["first", "second"]),
    ] {
        let server = |message: &Value| {
            let page = match message["params"]["cursor"].as_str() {
                Some(_) => json!({ "tools": [{ "name": "second" }] }),
                None => json!({ "tools": [{ "name": "first" }], "nextCursor": "" }),
            };
            vec![result(message, page)]
        };
        let (session, _link) = agree(version, Abilities::default(), &Host::able(), server);
        let connection = Connection::new(session, None);
        let listing = connection.list_tools(Duration::from_secs(20)).await;
        let tools = listing.expect("a list").tools;
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
        let expected: Vec<_> = expected.into_iter().map(Some).collect();
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn a_list_of_another_type_is_none() {
    assert_eq!(listed(json!("complete")).await, "1 tools");
    // As servers of older revisions have it.
    assert_eq!(listed(Value::Null).await, "1 tools");
    for kind in ["input_required", "task"] {
        let expected = "the answer is malformed: its resultType is none of such a request";
        assert_eq!(listed(json!(kind)).await, expected);
    }
    let expected = "the answer is malformed: its resultType is none that clients know";
    assert_eq!(listed(json!("partial")).await, expected);
}

/// A server's refusal of a call for its headers.
fn mismatch(message: &Value) -> Value {
    let error = json!({ "code": -32020, "message": "HeaderMismatch" });
    json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })
}

/// What is known of a server with one tool.
fn ready(tool: &Value) -> Ready {
    Ready {
        tools: vec![tool.clone()],
        protocol_version: String::new(),
        server_info: None,
        instructions: None,
        warnings: Vec::new(),
        fresh_for: None,
        ttl: None,
    }
}

#[tokio::test]
async fn a_call_whose_tool_has_changed_says_what_it_took() {
    let before = json!({ "name": "t" });
    let server = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![mismatch(message)],
        _ => {
            let tool = json!({ "name": "t", "description": "Now." });
            let list = json!({ "resultType": "complete", "tools": [tool] });
            vec![result(message, list)]
        }
    };
    let (version, host) = (ProtocolVersion::V_2026_07_28, Host::able());
    let (session, _link) = agree(version, Abilities::default(), &host, server);
    let listed = Listed::new(None);
    listed.take(ready(&before), Covered::default());
    let definition = Definition::of(&before);
    let call = Call {
        decided: Some(Decided {
            definition: definition.hash(),
            listed: &listed,
        }),
        ..call(&host)
    };
    let began = Instant::now();
    let called = Connection::new(session, None).call(&call).await;
    let Err(Failure::Changed {
        gone: false,
        sent: false,
        spent,
    }) = called
    else {
        panic!("{called:?}");
    };
    assert!(!spent.is_zero() && spent <= began.elapsed(), "{spent:?}");
}

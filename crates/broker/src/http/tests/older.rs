//! Revision 2025-06-18, and how a server that speaks nothing newer is found out.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use futures::FutureExt;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::{Request, Server};
use super::{Client, call, in_time, keep, result_of};
use crate::caller::NoCaller;
use crate::fake::Host;
use crate::handshake::{Opening, shake};
use crate::session::Session;
use crate::spec::ServerSpec;
use callgate_auth::Redact;

/// As the revision has it: nothing but `initialize` without a session.
async fn handle(mut request: Request) {
    let method = request.method();
    let session = request.header("mcp-session-id").to_owned();
    let version = request.header("mcp-protocol-version").to_owned();
    let newer = request.header("mcp-method").to_owned();
    request
        .log
        .note(format!("{method} {session} {version} {newer}"));
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match (method.as_str(), session.as_str(), version.as_str()) {
        ("initialize", "-", "-") => {
            let params = &message["params"];
            let (wanted, offered) = (&params["protocolVersion"], &params["capabilities"]);
            request.log.note(format!("  {wanted} {offered}"));
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            });
            result_of(&mut request, "Mcp-Session-Id: s-1\r\n", result).await;
        }
        (_, "s-1", "2025-06-18") => match method.as_str() {
            "tools/list" => {
                let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
                result_of(&mut request, "", json!({ "tools": [tool] })).await;
            }
            "tools/call" => {
                let params = &message["params"];
                request.log.note(format!("  {params}"));
                result_of(&mut request, "", json!({ "content": [] })).await;
            }
            "GET" => request.answer("405 Method Not Allowed", "", "").await,
            _ => request.answer("202 Accepted", "", "").await,
        },
        _ => {
            let reason = "Bad Request: Unsupported protocol version";
            request.answer("400 Bad Request", "", reason).await;
        }
    }
}

async fn check(era: &str, expected: Expect) {
    let server = Server::start(|request| handle(request).boxed()).await;
    let mut spec = ServerSpec::http("s", server.url());
    spec.era = era.parse().expect("a revision");
    spec.caller = Host::able();
    let (kept, _changes) = keep(spec).await;
    let called = call(&kept, "t", Arc::clone(&kept.shared.spec.caller)).await;
    assert_eq!(called, r#"{"content":[]}"#);
    in_time(kept.shut_down()).await;
    expected.assert_eq(&server.log());
}

#[tokio::test]
async fn a_session_of_2025_06_18_has_nothing_newer() {
    check(
        "2025-06-18",
        expect![[r#"
        initialize - - -
          "2025-06-18" {"elicitation":{},"sampling":{},"roots":{"listChanged":true}}
        notifications/initialized s-1 2025-06-18 -
        GET s-1 2025-06-18 -
        tools/list s-1 2025-06-18 -
        tools/call s-1 2025-06-18 -
          {"_meta":{"progressToken":3},"name":"t","arguments":{}}
        DELETE s-1 2025-06-18 -
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_server_of_2025_06_18_is_found_out() {
    check(
        "auto",
        expect![[r#"
        server/discover - 2026-07-28 server/discover
        initialize - - -
          "2025-11-25" {"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}
        notifications/initialized s-1 2025-06-18 -
        GET s-1 2025-06-18 -
        tools/list s-1 2025-06-18 -
        tools/call s-1 2025-06-18 -
          {"_meta":{"progressToken":4},"name":"t","arguments":{}}
        DELETE s-1 2025-06-18 -
    "#]],
    )
    .await;
}

/// What a server that fails says of its start.
async fn start(answer: impl Fn(&str) -> (&'static str, Value) + Send + Sync + 'static) -> String {
    let answer = Arc::new(answer);
    let server = Server::start(move |mut request| {
        let answer = Arc::clone(&answer);
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let method = request.method();
            if method == "GET" {
                return request.answer("405 Method Not Allowed", "", "").await;
            }
            let (member, value) = answer(&method);
            let mut said = json!({ "jsonrpc": "2.0", "id": message["id"] });
            said[member] = value;
            request.json(&said.to_string()).await;
        }
        .boxed()
    })
    .await;
    let mut spec = ServerSpec::http("s", server.url());
    spec.max_message_bytes = 10_000;
    let broker = in_time(crate::Broker::start(vec![spec])).await;
    let state = broker.servers().next().expect("a server");
    let said = match state.status {
        crate::Status::Failed(error) => error.to_string(),
        other => format!("{other:?}"),
    };
    in_time(broker.shutdown()).await;
    said
}

#[tokio::test]
async fn a_refusal_of_the_revision_that_is_offered_is_told() {
    let said = start(|method| match method {
        "server/discover" => ("result", json!({ "supportedVersions": ["2025-11-25"] })),
        _ => (
            "error",
            json!({ "code": -32000, "message": "no more sessions" }),
        ),
    });
    expect!["server `s` did not start: it refused initialize: no more sessions (code -32000)"]
        .assert_eq(&said.await);
}

#[tokio::test]
async fn a_list_over_the_limit_says_what_to_raise() {
    let said = start(|method| match method {
        "server/discover" => ("error", json!({ "code": -32601, "message": "what?" })),
        "initialize" => (
            "result",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            }),
        ),
        _ => (
            "result",
            json!({ "tools": [{ "name": "t", "description": "x".repeat(20_000) }] }),
        ),
    });
    expect!["server `s` did not start: its answer to tools/list is malformed: it is over the limit of 10000 bytes; raise `limits.result`"].assert_eq(&said.await);
}

/// It refuses what it does not know when `initialize` has been sent already.
#[tokio::test]
async fn a_server_that_is_slow_to_refuse_what_it_does_not_know_is_agreed_with() {
    let (asked, refused) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let server = Server::start(move |mut request| {
        let (asked, refused) = (Arc::clone(&asked), Arc::clone(&refused));
        async move {
            match request.method().as_str() {
                "server/discover" => {
                    asked.notified().await;
                    request.answer("404 Not Found", "", "").await;
                    // Its client has seen it.
                    request.gone().await;
                    refused.notify_one();
                }
                "initialize" => {
                    asked.notify_one();
                    refused.notified().await;
                    let result = json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": { "tools": {} },
                        "serverInfo": { "name": "s", "version": "1" },
                    });
                    result_of(&mut request, "", result).await;
                }
                _ => request.answer("202 Accepted", "", "").await,
            }
        }
        .boxed()
    })
    .await;
    let Client { inbox, link } = Client::new(&server);
    let caller = Arc::new(NoCaller);
    let session = Session::new("s".into(), inbox, link, caller, Redact::default());
    let patience = Duration::from_millis(1);
    in_time(shake(&session, &Opening::Both, patience))
        .await
        .expect("they agree");
    let agreed = session.agreed().map(|agreed| agreed.version.clone());
    assert_eq!(agreed, Some(ProtocolVersion::V_2025_11_25));
}

/// It closes the connection, or says nothing in the answer that it begins.
#[tokio::test]
async fn a_server_that_ends_what_it_does_not_know_without_a_status_is_agreed_with() {
    for begins in [false, true] {
        let server = Server::start(move |mut request| {
            async move {
                if request.method() != "server/discover" {
                    handle(request).await;
                } else if begins {
                    request.events().await;
                }
            }
            .boxed()
        })
        .await;
        let (kept, _changes) = keep(ServerSpec::http("s", server.url())).await;
        let called = call(&kept, "t", Arc::new(NoCaller)).await;
        assert_eq!(called, r#"{"content":[]}"#);
        in_time(kept.shut_down()).await;
    }
}

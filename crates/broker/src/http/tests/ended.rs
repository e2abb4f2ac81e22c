//! Sessions that end while calls are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use futures::FutureExt;
use futures::future::join;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::{Request, Server};
use super::{call, keep, result_of};
use crate::caller::NoCaller;
use crate::spec::ServerSpec;

/// What the server has seen: how many sessions, and whether there was a call of `slow`.
#[derive(Default)]
struct Seen {
    sessions: AtomicUsize,
    slow: Notify,
}

/// A server whose first session ends with the call of `ends`, which it refuses, while it
/// works on that of `slow`, of which it says nothing.
async fn handle(mut request: Request, seen: Arc<Seen>) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match request.method().as_str() {
        "initialize" => {
            let number = seen.sessions.fetch_add(1, Ordering::Relaxed) + 1;
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            });
            let headers = format!("Mcp-Session-Id: s-{number}\r\n");
            result_of(&mut request, &headers, result).await;
        }
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            let tools = json!({ "tools": [tool("slow"), tool("ends")] });
            result_of(&mut request, "", tools).await;
        }
        "tools/call" => {
            let tool = message["params"]["name"].as_str().unwrap_or_default();
            let session = request.header("mcp-session-id").to_owned();
            request.log.note(format!("{tool} in {session}"));
            match (tool, session.as_str()) {
                ("slow", "s-1") => {
                    seen.slow.notify_one();
                    return request.gone().await;
                }
                (_, "s-1") => return request.answer("404 Not Found", "", "").await,
                _ => {}
            }
            result_of(&mut request, "", json!([tool])).await;
        }
        "GET" => request.answer("405 Method Not Allowed", "", "").await,
        _ => request.answer("202 Accepted", "", "").await,
    }
}

/// The server may have carried out what it says nothing of yet. What it refused it has not.
#[tokio::test]
async fn a_call_under_way_is_not_made_again_and_one_that_was_refused_is() {
    let seen = Arc::<Seen>::default();
    let server = Server::start({
        let seen = Arc::clone(&seen);
        move |request| handle(request, Arc::clone(&seen)).boxed()
    })
    .await;
    let mut spec = ServerSpec::http("s", server.url());
    spec.era = "2025-11-25".parse().expect("a revision");
    let (kept, _changes) = keep(spec).await;
    let slow = call(&kept, "slow", Arc::new(NoCaller));
    let ends = async {
        seen.slow.notified().await;
        call(&kept, "ends", Arc::new(NoCaller)).await
    };
    let (slow, ends) = join(slow, ends).await;
    expect!["the server has ended the session during the call"].assert_eq(&slow);
    assert_eq!(ends, r#"["ends"]"#);
    expect![[r#"
        slow in s-1
        ends in s-1
        ends in s-2
    "#]]
    .assert_eq(&server.log());
    kept.shut_down().await;
}

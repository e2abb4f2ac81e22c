//! Sessions that end while calls are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

/// Answers that a session has begun, by its number.
async fn begun(request: &mut Request, number: usize) {
    let result = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "s", "version": "1" },
    });
    let headers = format!("Mcp-Session-Id: s-{number}\r\n");
    result_of(request, &headers, result).await;
}

/// A server whose first session ends with the call of `ends`, which it refuses, while it
/// works on that of `slow`, of which it says nothing.
async fn handle(mut request: Request, seen: Arc<Seen>) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match request.method().as_str() {
        "initialize" => {
            let number = seen.sessions.fetch_add(1, Ordering::Relaxed) + 1;
            begun(&mut request, number).await;
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

/// What a server does that is replaced by another version of itself.
#[derive(Default)]
struct Replaced {
    /// Whether it speaks the newest revision, and no other.
    newest: AtomicBool,
    slow: Notify,
    /// Told when a call was refused.
    refused: Notify,
}

async fn replaced(mut request: Request, does: Arc<Replaced>) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let method = request.method();
    let version = request.header("mcp-protocol-version").to_owned();
    if matches!(
        method.as_str(),
        "initialize" | "server/discover" | "tools/call"
    ) {
        request.log.note(format!("{method} {version}"));
    }
    let newest = does.newest.load(Ordering::Relaxed);
    let (speaks, says) = match newest {
        true => ("2026-07-28", "new"),
        false => ("2025-11-25", "old"),
    };
    let result = match method.as_str() {
        "GET" => return request.answer("405 Method Not Allowed", "", "").await,
        "initialize" if !newest => json!({
            "protocolVersion": speaks,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        }),
        "notifications/initialized" => return request.answer("202 Accepted", "", "").await,
        _ if version != speaks => {
            let data = json!({ "supported": [speaks], "requested": version });
            let error = json!({ "code": -32022, "message": "m", "data": data });
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            let headers = "Content-Type: application/json\r\n";
            let body = body.to_string();
            request.answer("400 Bad Request", headers, &body).await;
            if method == "tools/call" {
                does.refused.notify_one();
            }
            return;
        }
        "server/discover" => json!({
            "supportedVersions": [speaks],
            "capabilities": { "tools": {} },
        }),
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            json!({ "tools": [tool("slow"), tool("says")] })
        }
        _ if message["params"]["name"] == "slow" => {
            does.slow.notify_one();
            does.refused.notified().await;
            json!(["slow"])
        }
        _ => json!([says]),
    };
    result_of(&mut request, "", result).await;
}

/// It goes on with the call that it has, and makes the one that it refused on the new
/// connection.
async fn check_replaced(newest: bool, expected: expect_test::Expect) {
    let does = Arc::<Replaced>::default();
    does.newest.store(newest, Ordering::Relaxed);
    let handles = Arc::clone(&does);
    let server =
        Server::start(move |request| replaced(request, Arc::clone(&handles)).boxed()).await;
    let (kept, _changes) = keep(ServerSpec::http("s", server.url())).await;
    let slow = call(&kept, "slow", Arc::new(NoCaller));
    let says = async {
        does.slow.notified().await;
        does.newest.store(!newest, Ordering::Relaxed);
        call(&kept, "says", Arc::new(NoCaller)).await
    };
    let (slow, says) = join(slow, says).await;
    assert_eq!(slow, r#"["slow"]"#);
    assert_eq!(says, if newest { r#"["old"]"# } else { r#"["new"]"# });
    expected.assert_eq(&server.log());
    kept.shut_down().await;
}

#[tokio::test]
async fn a_server_that_goes_over_to_another_revision_is_agreed_with_anew() {
    check_replaced(
        true,
        expect![[r#"
            server/discover 2026-07-28
            tools/call 2026-07-28
            tools/call 2026-07-28
            server/discover 2026-07-28
            initialize -
            tools/call 2025-11-25
        "#]],
    )
    .await;
    check_replaced(
        false,
        expect![[r#"
            server/discover 2026-07-28
            initialize -
            tools/call 2025-11-25
            tools/call 2025-11-25
            server/discover 2026-07-28
            tools/call 2026-07-28
        "#]],
    )
    .await;
}

/// A server of 2026-07-28 that refuses all calls by this status with these data, as if it had
/// gone over to another revision.
async fn refusing(status: &'static str, data: Value) -> Server {
    Server::start(move |mut request| {
        let data = data.clone();
        async move {
            let method = request.method();
            request.log.note(&method);
            if method != "tools/call" {
                let does = Arc::<Replaced>::default();
                does.newest.store(true, Ordering::Relaxed);
                return replaced(request, does).await;
            }
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let error = json!({ "code": -32022, "message": "m", "data": data });
            let error = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            let headers = "Content-Type: application/json\r\n";
            request.answer(status, headers, &error.to_string()).await;
        }
        .boxed()
    })
    .await
}

/// How often it was connected to, and called.
fn connected_and_called(server: &Server) -> (usize, usize) {
    let log = server.log();
    let count = |method: &str| log.lines().filter(|line| *line == method).count();
    (count("server/discover"), count("tools/call"))
}

const BAD_REQUEST: &str = "400 Bad Request";

/// Such as what it passes on of another server, or says of something else.
#[tokio::test]
async fn what_may_be_said_of_something_else_is_the_calls_error() {
    let older = json!({ "supported": ["2025-11-25"] });
    for (status, data) in [
        (BAD_REQUEST, json!(null)),
        (BAD_REQUEST, json!({ "supported": ["2026-07-28"] })),
        (BAD_REQUEST, json!({ "supported": ["en", "de"] })),
        (
            BAD_REQUEST,
            json!({ "supported": ["2025-11-25"], "requested": "2025-06-18" }),
        ),
        // The call may have been carried out.
        ("200 OK", older.clone()),
        ("422 Unprocessable Content", older),
    ] {
        let server = refusing(status, data.clone()).await;
        let (kept, _changes) = keep(ServerSpec::http("s", server.url())).await;
        let said = call(&kept, "says", Arc::new(NoCaller)).await;
        assert_eq!(said, "m (code -32022)", "{status} {data}");
        kept.shut_down().await;
        assert_eq!(connected_and_called(&server), (1, 1), "{status} {data}");
    }
}

/// It has just agreed on what it refuses.
#[tokio::test]
async fn a_server_that_contradicts_itself_is_connected_to_anew_once() {
    let data = json!({ "supported": ["2025-11-25"], "requested": "2026-07-28" });
    let server = refusing(BAD_REQUEST, data).await;
    let (kept, _changes) = keep(ServerSpec::http("s", server.url())).await;
    for calls in [2, 3] {
        let said = call(&kept, "says", Arc::new(NoCaller)).await;
        assert_eq!(said, "m (code -32022)");
        assert_eq!(connected_and_called(&server), (2, calls));
    }
    kept.shut_down().await;
}

/// That a session ends says nothing of the revision.
#[tokio::test]
async fn a_server_whose_session_has_just_ended_may_go_over_to_another_revision() {
    let does = Arc::<Replaced>::default();
    let server = Server::start({
        let (does, sessions) = (Arc::clone(&does), Arc::<AtomicUsize>::default());
        move |mut request| {
            let (does, sessions) = (Arc::clone(&does), Arc::clone(&sessions));
            async move {
                let method = request.method();
                let is_first = request.header("mcp-session-id") == "s-1";
                match method.as_str() {
                    "initialize" => {
                        let number = sessions.fetch_add(1, Ordering::Relaxed) + 1;
                        request.log.note(format!("begins s-{number}"));
                        begun(&mut request, number).await;
                    }
                    "tools/call" if is_first => {
                        request.log.note("ends s-1");
                        request.answer("404 Not Found", "", "").await;
                    }
                    _ => replaced(request, does).await,
                }
            }
            .boxed()
        }
    })
    .await;
    let (kept, _changes) = keep(ServerSpec::http("s", server.url())).await;
    assert_eq!(call(&kept, "says", Arc::new(NoCaller)).await, r#"["old"]"#);
    does.newest.store(true, Ordering::Relaxed);
    assert_eq!(call(&kept, "says", Arc::new(NoCaller)).await, r#"["new"]"#);
    kept.shut_down().await;
    expect![[r#"
        server/discover 2026-07-28
        begins s-1
        ends s-1
        server/discover 2026-07-28
        begins s-2
        tools/call 2025-11-25
        tools/call 2025-11-25
        server/discover 2026-07-28
        tools/call 2026-07-28
    "#]]
    .assert_eq(&server.log());
}

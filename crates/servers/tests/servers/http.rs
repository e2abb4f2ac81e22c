//! Streamable HTTP endpoints: both eras, odd answers, sessions, headers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use callgate_auth::Source;
use callgate_servers::{Http, ServerSpec, Transport};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::{self, call, in_time, one, start, states, try_call};

/// The endpoint's record of requests, and its state.
struct Seen {
    requests: Mutex<Vec<String>>,
    sessions: AtomicUsize,
    together: Barrier,
    /// True if a call was refused for its headers.
    is_refused: Mutex<bool>,
}

type Shared = Arc<Seen>;

fn reply(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind);
    response.body(body.into()).expect("a response")
}

fn json_reply(status: u16, body: &Value) -> Response {
    reply(status, "application/json", body.to_string())
}

fn ok(id: &Value, result: &Value) -> Response {
    json_reply(
        200,
        &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
    )
}

fn events(texts: &[String]) -> Response {
    let events = texts.iter().map(|text| format!("data: {text}\n\n"));
    let body: String = events.collect();
    reply(200, "text/event-stream", body)
}

async fn handle(
    State(seen): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri
        .path()
        .trim_start_matches('/')
        .replace("%22", "\"")
        .replace("%20", " ");
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (id, rpc) = (
        &message["id"],
        message["method"].as_str().unwrap_or_default().to_owned(),
    );
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("-").to_owned()
    };
    let (session, last) = (header("mcp-session-id"), header("last-event-id"));
    seen.requests.lock().expect("no panic").push(format!(
        "{method} {rpc} session={session} version={} param={} extra={}",
        header("mcp-protocol-version"),
        header("mcp-param-region"),
        header("x-extra"),
    ));
    let is_modern = path.starts_with("modern");
    if method == Method::DELETE {
        return reply(200, "text/plain", "");
    }
    if method == Method::GET {
        return match (path.as_str(), last.as_str()) {
            ("resume", "1") => {
                let result = json!({ "content": [], "structuredContent": "resumed" });
                let ids = 0..20;
                let answer =
                    |id| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                events(&ids.map(answer).collect::<Vec<_>>())
            }
            ("restarts", "-") if session == "s0" => {
                reply(200, "text/event-stream", "id: 1\nretry: 10\ndata: \n\n")
            }
            ("restarts" | "streamless", _) => reply(404, "text/plain", ""),
            _ => reply(405, "text/plain", ""),
        };
    }
    if rpc.is_empty() {
        return reply(202, "text/plain", "");
    }
    let mut tool = json!({ "name": "tool", "inputSchema": {
        "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    } });
    if path == "modern-other" && *seen.is_refused.lock().expect("no panic") {
        tool["inputSchema"]["properties"]["region"]["x-mcp-header"] = "Zone".into();
    }
    let bad = json!({ "name": "bad", "inputSchema": {
        "type": "object", "properties": { "a": { "type": "object", "x-mcp-header": "a b" } },
    } });
    match rpc.as_str() {
        "server/discover" if path == "silent" => std::future::pending().await,
        "server/discover" if path == "empty" => json_reply(200, &json!({})),
        "server/discover" if is_modern => {
            let discovery = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            });
            ok(id, &discovery)
        }
        "server/discover" => reply(404, "text/plain", "no such method"),
        "initialize" if path == "down" => reply(500, "text/plain", "secret backtrace"),
        "initialize" => {
            let number = seen.sessions.fetch_add(1, Ordering::SeqCst);
            let greeting = json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" },
            });
            let mut response = ok(id, &greeting);
            let session = format!("s{number}").parse().expect("a header");
            response.headers_mut().insert("mcp-session-id", session);
            response
        }
        "tools/list" if is_modern => {
            let tools = [tool, bad];
            ok(
                id,
                &json!({ "tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
            )
        }
        "tools/list" if path == "listless" => reply(400, "text/plain", ""),
        "tools/list" => ok(id, &json!({ "tools": [tool] })),
        "tools/call" => tool_call(&seen, &path, &message, &session).await,
        "ping" if path.starts_with("gone-") && session == "s0" => no_session(&path, id),
        _ if id.is_null() => reply(202, "text/plain", ""),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            json_reply(200, &json!({ "jsonrpc": "2.0", "id": id, "error": error }))
        }
    }
}

/// The answer of a server that has lost the session, or is busy.
fn no_session(path: &str, id: &Value) -> Response {
    if path.ends_with("-503") {
        return reply(503, "text/plain", "");
    }
    let error = json!({ "code": -32001, "message": "Session not found" });
    events(&[json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()])
}

async fn tool_call(seen: &Shared, path: &str, message: &Value, session: &str) -> Response {
    let id = &message["id"];
    let big = || "x".repeat(2 << 20);
    let answer = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let error = |code: i64| {
        let error = json!({ "code": code, "message": "headers" });
        json!({ "jsonrpc": "2.0", "id": null, "error": error })
    };
    let plain = r#"{"content":[],"structuredContent":"plain"}"#;
    let json_body = |body: String| reply(200, "application/json", body);
    match path {
        "gone-503" | "gone-event" | "busy-503" | "busy-event"
            if message["params"]["arguments"]["n"] == 2 =>
        {
            no_session(path, id)
        }
        _ if path.starts_with("refuses-") && message["params"]["arguments"]["n"] == 2 => {
            let is_old = session == "s0" || path.contains("-always-");
            if !is_old {
                return ok(id, &json!({ "structuredContent": "taken" }));
            }
            let refusal = path
                .trim_start_matches("refuses-")
                .trim_start_matches("always-");
            let (status, body) = refusal.split_once('/').expect("a body");
            let error = |id: &Value, code: i64| {
                let error = json!({ "code": code, "message": "No valid session ID provided" });
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
            };
            let body = match body {
                "no-id" => error(&Value::Null, -32000),
                "other-id" => error(&"server-error".into(), -32600),
                "own-id" => error(id, -32600),
                "answer" => error(id, -32602),
                text => text.to_owned(),
            };
            reply(status.parse().expect("a status"), "application/json", body)
        }
        "big-json" => json_body(answer(&format!(r#"{{"content":"{}"}}"#, big()))),
        "big-event" => events(&[answer(&format!(r#"{{"content":"{}"}}"#, big()))]),
        "no-type" => Response::new(answer(plain).into()),
        "no-id" => json_body(format!(r#"{{"jsonrpc":"2.0","id":null,"result":{plain}}}"#)),
        "mark-error" => {
            let error = "\u{feff}{\"error\":{\"code\":-7,\"message\":\"no\"}}";
            reply(400, "application/json", error)
        }
        _ if path.starts_with("type/") => reply(200, &decoded(path, "type/"), answer(plain)),
        _ if path.starts_with("events/") => {
            let body = format!("data: {}\n\n", answer(plain));
            reply(200, &decoded(path, "events/"), body)
        }
        "malformed" => json_body(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"boom"}}"#)),
        "no-answer" => json_body(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.to_owned()),
        "html" => reply(200, "text/html", "<html>"),
        "s500" => reply(500, "text/plain", "secret backtrace"),
        "s401" => reply(401, "text/plain", ""),
        "s400" => json_reply(400, &error(-32000)),
        "modern-same" | "modern-other" if !*seen.is_refused.lock().expect("no panic") => {
            *seen.is_refused.lock().expect("no panic") = true;
            json_reply(400, &error(-32020))
        }
        "same" | "cross" | "loop" => {
            let to = match path {
                "cross" => "http://localhost:1/plain",
                "loop" => "/loop",
                _ => "/plain",
            };
            let response = Response::builder().status(307).header("location", to);
            response.body(Body::empty()).expect("a response")
        }
        "resume" => reply(200, "text/event-stream", "id: 1\nretry: 10\ndata: \n\n"),
        "breaks-off" => events(&[]),
        "together" => {
            seen.together.wait().await;
            ok(id, &json!({ "content": [] }))
        }
        _ => {
            let echo = &message["params"];
            ok(id, &json!({ "content": [], "structuredContent": echo }))
        }
    }
}

/// The rest of a path, in which `+` stands for a space.
fn decoded(path: &str, start: &str) -> String {
    path.trim_start_matches(start).replace('+', " ")
}

async fn serve() -> (String, Shared) {
    let seen = Arc::new(Seen {
        requests: Mutex::default(),
        sessions: AtomicUsize::new(0),
        together: Barrier::new(100),
        is_refused: Mutex::new(false),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(handle).with_state(Arc::clone(&seen));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), seen)
}

fn spec(url: &str, path: &str) -> ServerSpec {
    let mut spec = ServerSpec::new(
        path,
        Transport::Http(Http {
            url: format!("{url}/{}", path.replace('"', "%22").replace(' ', "%20")),
            headers: BTreeMap::from([("X-Extra".to_owned(), Source::text("extra-secret"))]),
            oauth: None,
            ..Http::default()
        }),
    );
    spec.max_message_bytes = 1 << 20;
    spec.call_timeout = Duration::from_secs(20);
    spec
}

/// The answer to one call at a path, with its duration bounded.
async fn answer(path: &str) -> String {
    let (url, _) = serve().await;
    support::answer(spec(&url, path), "tool", json!({})).await
}

#[tokio::test]
async fn era_of_each_server_is_detected() {
    let (url, _) = serve().await;
    let paths = ["plain", "modern", "empty", "silent", "down", "listless"];
    let servers = start(paths.map(|path| spec(&url, path)).into()).await;
    let said = states(&servers).replace(&url, "URL");
    in_time(servers.shut_down()).await;
    expect_test::expect![[r#"
        plain: 2025-11-25, tools [tool]
        modern: 2026-07-28, tools [tool]
          warning: its tool 2 is dropped: the x-mcp-header annotations of "bad" are not valid
        empty: 2025-11-25, tools [tool]
        silent: 2025-11-25, tools [tool]
        server `down` did not start: URL/down did not answer as an MCP endpoint: it answers with HTTP status 500 Internal Server Error
        server `listless` did not start: URL/listless did not answer as an MCP endpoint: it answers with HTTP status 400 Bad Request
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn unusual_answers_end_their_call() {
    for case in r#"
        big-json → the answer is over the limit of 1 MiB
        big-event → the answer is over the limit of 1 MiB
        malformed → boom (code -32603) [sent: true]
        no-answer → the answer is malformed: the HTTP response to the
        html → the answer is malformed: the HTTP response to the request does not answer it (it has content type "text/html"); the server wrote a message that could not be used: "<html>"
        s500 → it answers with HTTP status 500 Internal Server Error [sent: true]
        s401 → it answers with HTTP status 401 Unauthorized [sent: false]
        s400 → headers (code -32000) [sent: true]
        cross → it redirects to http://localhost:1/plain, where credentials do not follow
        loop → it redirects more than 3 times
        same → {"
        resume → "resumed"
        breaks-off → the server ended its answer before there was one [sent: true]"#
        .trim()
        .lines()
    {
        let (path, expected) = case.trim().split_once(" → ").expect(case);
        let said = answer(path).await;
        assert!(said.starts_with(expected), "{path}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[tokio::test]
async fn unambiguous_answer_is_accepted() {
    for path in [
        "no-type",
        "no-id",
        "type/application/json,+application/json",
        "type/Application/JSON;+Charset=UTF-8;+odd",
        "type/application/json;profile=\"a,b\"",
        "type/text/plain",
        "type/application/json,+text/event-stream",
        "events/TEXT/EVENT-STREAM",
        "events/text/event-stream;+charset=utf-8,+text/event-stream",
    ] {
        assert_eq!(answer(path).await, "\"plain\"", "{path}");
    }
    assert_eq!(answer("mark-error").await, "no (code -7) [sent: true]");
}

#[tokio::test]
async fn session_is_kept_and_ended() {
    let (url, seen) = serve().await;
    let servers = one(spec(&url, "plain")).await;
    call(&servers, "plain", "tool", json!({ "region": "eu" })).await;
    in_time(servers.shut_down()).await;
    let requests = seen.requests.lock().expect("no panic").clone();
    let of = |what: &str| requests.iter().find(|it| it.starts_with(what)).cloned();
    for begins in ["POST tools/call", "GET ", "DELETE "] {
        let expected = "session=s0 version=2025-11-25 param=- extra=extra-secret";
        assert_eq!(of(begins), Some(format!("{begins} {expected}")));
    }
}

/// Restarted servers refuse old sessions in various ways. A call that may have been carried out is
/// not repeated.
#[tokio::test]
async fn refused_session_is_replaced_once() {
    let refused = "No valid session ID provided (code -32000)";
    let unknown = "Session not found (code -32001)";
    let status = |code: u16| format!("it answers with HTTP status {code}");
    let (missing, no_login, busy) = (status(404), status(401), status(503));
    for (path, said, sessions, calls) in [
        ("refuses-400/no-id", "\"taken\"", 2, 4),
        ("refuses-400/other-id", "\"taken\"", 2, 4),
        ("refuses-400/own-id", "\"taken\"", 2, 4),
        ("refuses-404/", "\"taken\"", 2, 4),
        ("refuses-422/no-id", "\"taken\"", 2, 4),
        ("refuses-401/", "\"taken\"", 2, 4),
        // A refusal in the new session is an answer.
        ("refuses-always-400/no-id", refused, 2, 4),
        ("refuses-always-404/", &missing, 2, 4),
        ("refuses-always-401/", &no_login, 2, 4),
        // Not a refusal of the session, or the call may have been carried out.
        (
            "refuses-400/answer",
            "No valid session ID provided (code -3",
            1,
            3,
        ),
        ("refuses-403/no-id", refused, 1, 3),
        ("refuses-500/no-id", refused, 1, 3),
        // The session is lost: the next call has a new one.
        ("gone-503", &busy, 2, 3),
        ("gone-event", unknown, 2, 3),
        // The session is alive.
        ("busy-503", &busy, 1, 3),
        ("busy-event", unknown, 1, 3),
    ] {
        let (url, seen) = serve().await;
        let servers = one(spec(&url, path)).await;
        let call = |n: u64| call(&servers, path, "tool", json!({ "n": n }));
        call(1).await;
        let answer = call(2).await;
        assert!(answer.starts_with(said), "{path}: {answer}");
        // The current session goes on.
        let answer = call(1).await;
        assert!(answer.starts_with("{\""), "{path}: {answer}");
        let requests = seen.requests.lock().expect("no panic").clone();
        let made = requests.iter();
        let made = made.filter(|it| it.starts_with("POST tools/call"));
        let begun = seen.sessions.load(Ordering::SeqCst);
        assert_eq!((begun, made.count()), (sessions, calls), "{path}");
        in_time(servers.shut_down()).await;
    }
}

/// Calls that were refused together go on in one new session.
#[tokio::test]
async fn refused_session_is_replaced_for_all_calls() {
    let path = "refuses-400/no-id";
    let (url, seen) = serve().await;
    let servers = one(spec(&url, path)).await;
    let calls = (0..20).map(|_| call(&servers, path, "tool", json!({ "n": 2 })));
    for said in in_time(join_all(calls)).await {
        assert_eq!(said, "\"taken\"");
    }
    assert_eq!(seen.sessions.load(Ordering::SeqCst), 2);
    in_time(servers.shut_down()).await;
}

/// A restarted server gets a new session without a call; a server without a stream does not.
#[tokio::test]
async fn session_with_lost_stream_is_replaced() {
    for (path, sessions) in [("restarts", 2), ("streamless", 1)] {
        let (url, seen) = serve().await;
        let servers = one(spec(&url, path)).await;
        let begun = || seen.sessions.load(Ordering::SeqCst);
        let replaced = async {
            while begun() < sessions {
                tokio::task::yield_now().await;
            }
        };
        in_time(replaced).await;
        call(&servers, path, "tool", json!({})).await;
        assert_eq!(begun(), sessions, "{path}");
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn arguments_are_mirrored_in_headers() {
    let (url, seen) = serve().await;
    let servers = one(spec(&url, "modern")).await;
    let arguments = json!({ "region": "eu", "n": 1 });
    let said = call(&servers, "modern", "tool", arguments).await;
    assert!(
        said.contains(r#""arguments":{"region":"eu","n":1}"#),
        "{said}"
    );
    let requests = seen.requests.lock().expect("no panic").clone();
    let expected = "POST tools/call session=- version=2026-07-28 param=eu extra=extra-secret";
    assert!(requests.contains(&expected.to_owned()), "{requests:?}");
    in_time(servers.shut_down()).await;
}

/// After a call is refused for its headers, the tools are listed again. The tool may have changed.
#[tokio::test]
async fn call_refused_for_headers_uses_newer_list() {
    let (url, _) = serve().await;
    let servers = one(spec(&url, "modern-same")).await;
    let said = call(&servers, "modern-same", "tool", json!({ "region": "eu" })).await;
    assert!(said.contains(r#""region":"eu""#), "{said}");
    in_time(servers.shut_down()).await;

    let (url, _) = serve().await;
    let servers = one(spec(&url, "modern-other")).await;
    let made = try_call(&servers, "modern-other", "tool", json!({}));
    let failure = in_time(made).await.expect_err("the tool has changed");
    let said = failure.to_string();
    assert!(
        said.starts_with("the server changed the tool's definition"),
        "{said}"
    );
    assert!(!failure.sent);
    in_time(servers.shut_down()).await;
}

#[tokio::test]
async fn hundred_calls_are_in_flight_together() {
    let (url, _) = serve().await;
    let servers = one(spec(&url, "together")).await;
    let calls = (0..100).map(|_| call(&servers, "together", "tool", json!({})));
    for said in in_time(join_all(calls)).await {
        assert_eq!(said, r#"{"content":[]}"#);
    }
    in_time(servers.shut_down()).await;
}

#[tokio::test]
async fn invalid_settings_are_reported_before_sending() {
    for (url, header, expected) in [
        ("ftp://h", "a", "its scheme is neither http nor https"),
        ("http://h", "mcp-name", "the protocol sets it itself"),
        ("http://h", "a b", "its name is not allowed"),
    ] {
        let mut bad = spec(url, "plain");
        if let Transport::Http(http) = &mut bad.transport {
            http.headers.insert(header.to_owned(), Source::text("x"));
        }
        let said = states(&start(vec![bad]).await);
        assert!(said.contains(expected), "{said}");
    }
}

//! Servers that are broken, or mean it.

use std::sync::Arc;

use expect_test::{Expect, expect};
use futures::FutureExt;
use futures::future::join;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::{Request, Server};
use super::{Client, in_time, keep, result_of};
use crate::failure::Failure;
use crate::fake::{self, Host};
use crate::spec::{ServerSpec, Transport};
use callgate_auth::Source;

/// What becomes of a request that a server answers so.
async fn check<F, A>(answer: F, expected: Expect)
where
    F: Fn(Request) -> A + Send + Sync + Copy + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let server = Server::start(move |request| answer(request).boxed()).await;
    let client = Client::speaking(&server, ProtocolVersion::V_2026_07_28);
    let shown = client.request("tools/call").await;
    let other = (server.address.port() ^ 1).to_string();
    expected.assert_eq(&shown.replace(&other, "OTHER"));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn statuses() {
    check(
        async |mut request: Request| {
            let body = r#"{"detail":"hunter2 in a trace"}"#;
            request.answer("500 Internal Server Error", "", body).await;
        },
        expect![[r#"Lost(LinkError { kind: Status(500), reason: "it answers with HTTP status 500 Internal Server Error", sent: true })"#]],
    )
    .await;
    check(
        async |mut request: Request| {
            let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"m"}}"#;
            request.answer("400 Bad Request", "", body).await;
        },
        expect![[r#"Headers(ErrorData { code: ErrorCode(-32020), message: "m", data: None }, Rounds { made: 0, waited: 0, taken: false, pages_opened: false, input: "" })"#]],
    )
    .await;
    check(
        async |mut request: Request| {
            request.answer("404 Not Found", "", r#"{"error":"hunter2"}"#).await;
        },
        expect![[r#"Lost(LinkError { kind: Status(404), reason: "it answers with HTTP status 404 Not Found", sent: true })"#]],
    )
    .await;
    check(
        async |mut request: Request| request.answer("202 Accepted", "", "").await,
        expect![[r#"Malformed("HTTP status 202 Accepted is no answer to a request")"#]],
    )
    .await;
}

#[tokio::test]
async fn bodies() {
    check(
        async |mut request: Request| {
            let headers = "Content-Type: text/html; charset=utf-8\r\n";
            request.answer("200 OK", headers, "<p>hunter2</p>").await;
        },
        expect![[
            r#"Malformed("an HTTP response with content type \"text/html\" is no MCP message")"#
        ]],
    )
    .await;
    check(
        async |mut request: Request| request.answer("200 OK", "", "").await,
        expect![[r#"Malformed("an HTTP response with no content type is no MCP message")"#]],
    )
    .await;
    check(
        async |mut request: Request| {
            let headers = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
            request.answer("200 OK", headers, "hunter2").await;
        },
        expect![[
            r#"Malformed("an HTTP response with content encoding \"gzip\" is no MCP message")"#
        ]],
    )
    .await;
    for body in ["", "hunter2", "[]", r#"{"id":7,"result":7}"#] {
        let server =
            Server::start(move |mut request| async move { request.json(body).await }.boxed()).await;
        let client = Client::speaking(&server, ProtocolVersion::V_2026_07_28);
        assert_eq!(
            client.request("tools/call").await,
            r#"Malformed("the HTTP response to the request does not answer it")"#,
            "{body}"
        );
    }
    check(
        async |mut request: Request| {
            request
                .json(r#"[{"id":1,"result":1},{"id":1,"result":2}]"#)
                .await;
        },
        expect!["1"],
    )
    .await;
    check(
        async |mut request: Request| {
            request
                .write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
                .await;
        },
        expect![[r#"Lost(LinkError { kind: Unreachable, reason: "the server cannot be reached: end of file before message length reached", sent: true })"#]],
    )
    .await;
}

#[tokio::test]
async fn bodies_without_an_end() {
    let too_large = || expect!["TooLarge(10000)"];
    check(
        async |mut request: Request| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n";
            request.write(head).await;
            request.gone().await;
        },
        too_large(),
    )
    .await;
    check(
        async |mut request: Request| {
            let head =
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n";
            request.write(head).await;
            while request.write([b' '; 1_000]).await {}
        },
        too_large(),
    )
    .await;
    check(
        async |mut request: Request| {
            request.events().await;
            request.write("data: ").await;
            while request.write([b'x'; 1_000]).await {}
        },
        too_large(),
    )
    .await;
    check(
        async |mut request: Request| {
            request.events().await;
            while request.write("data: x\n").await {}
        },
        too_large(),
    )
    .await;
    check(
        async |mut request: Request| {
            request.events().await;
            // Comments do not count, and an answer is one whatever follows it.
            for _ in 0..100 {
                request.write([b':'; 1_000]).await;
            }
            request.write("\ndata: {\"id\":1,\"result\":1}\n\n").await;
            while request.write("data: {\"id\":1,\"result\":2}\n\n").await {}
        },
        expect!["1"],
    )
    .await;
}

/// Such a stream would be read for as long as there is the connection, and taken up again: its
/// reader would be there for an answer that has come.
#[tokio::test]
async fn a_stream_whose_request_is_answered_on_another_is_closed() {
    for version in [ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25] {
        let (begun, closed) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let closes = Arc::clone(&closed);
        let server = Server::start(move |mut request| {
            let (begun, closed) = (Arc::clone(&begun), Arc::clone(&closes));
            async move {
                let is_stateless = request.header("mcp-protocol-version") == "2026-07-28";
                match request.method().as_str() {
                    "GET" if request.header("last-event-id") == "-" => {
                        return request.answer("405 Method Not Allowed", "", "").await;
                    }
                    "held" => {
                        request.events().await;
                        request
                            .write("retry: 0\nid: 1\ndata: \n\ndata: a part")
                            .await;
                        if !is_stateless {
                            // It is taken up by a GET, to which nothing is said.
                            return;
                        }
                    }
                    "GET" => {}
                    _ => {
                        begun.notified().await;
                        request.events().await;
                        for id in 1..=2 {
                            let answer = format!("data: {{\"id\":{id},\"result\":{id}}}\n\n");
                            request.write(answer).await;
                        }
                        return request.gone().await;
                    }
                }
                begun.notify_one();
                request.gone().await;
                closed.notify_one();
            }
            .boxed()
        })
        .await;
        let client = Client::speaking(&server, version);
        let answers = join(client.request("held"), client.request("answers")).await;
        assert_eq!(answers, ("1".to_owned(), "2".to_owned()));
        in_time(closed.notified()).await;
    }
}

#[tokio::test]
async fn redirects() {
    check(
        async |mut request: Request| {
            let to = "Location: https://other.example/mcp?key=hunter2\r\n";
            request.answer("307 Temporary Redirect", to, "").await;
        },
        expect![[r#"Lost(LinkError { kind: Status(307), reason: "it redirects to https://other.example/mcp, where credentials do not follow it; if that is right, make it the server's URL", sent: false })"#]],
    )
    .await;
    check(
        async |mut request: Request| {
            let port: u16 = request.header("host").rsplit(':').next().expect("a port").parse().expect("a number");
            let to = format!("Location: http://127.0.0.1:{}/mcp\r\n", port ^ 1);
            request.answer("308 Permanent Redirect", &to, "").await;
        },
        expect![[r#"Lost(LinkError { kind: Status(308), reason: "it redirects to http://127.0.0.1:OTHER/mcp, where credentials do not follow it; if that is right, make it the server's URL", sent: false })"#]],
    )
    .await;
    check(
        async |mut request: Request| {
            request.answer("302 Found", "Location: /mcp/\r\n", "").await;
        },
        expect![[r#"Lost(LinkError { kind: Status(508), reason: "it redirects more than 3 times", sent: false })"#]],
    )
    .await;
    check(
        async |mut request: Request| match request.line.as_str() {
            "POST /mcp" => {
                request
                    .answer("307 Temporary Redirect", "Location: mcp/?a=b\r\n", "")
                    .await
            }
            "POST /mcp/?a=b" if request.header("x-key") == "hunter2-hunter2" => {
                let method = request.method();
                request
                    .json(&format!(r#"{{"id":1,"result":{method:?}}}"#))
                    .await;
            }
            other => panic!("{other}"),
        },
        expect![[r#""tools/call""#]],
    )
    .await;
    check(
        async |mut request: Request| request.answer("303 See Other", "Location: /x\r\n", "").await,
        expect![[r#"Lost(LinkError { kind: Status(303), reason: "it answers with HTTP status 303 See Other", sent: true })"#]],
    )
    .await;
}

#[tokio::test]
async fn ids_of_sessions() {
    for id in ["a b", "", "gr\u{f6}\u{df}e"] {
        let server = Server::start(move |mut request| {
            async move {
                let headers = format!("Content-Type: application/json\r\nMcp-Session-Id: {id}\r\n");
                let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
                request.answer("200 OK", &headers, body).await;
            }
            .boxed()
        })
        .await;
        assert_eq!(
            Client::new(&server).request("initialize").await,
            r#"Malformed("the id of its session has characters that it must not have")"#,
            "{id:?}"
        );
    }
}

/// A command gave the header's value, its scheme with it; what the server repeats is the
/// token alone.
#[tokio::test]
async fn a_looked_up_token_that_a_server_repeats_is_not_shown() {
    let server = Server::start(|mut request| {
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let given = request.header("authorization").to_owned();
            let result = match request.method().as_str() {
                "server/discover" => json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": { "tools": {} },
                }),
                "tools/list" => json!({ "resultType": "complete", "tools": [] }),
                _ => {
                    let token = given.strip_prefix("Bearer ").expect("its scheme");
                    let said = format!("no luck with {token}, that is: {given}");
                    let error = json!({ "code": 1, "message": said, "data": [token] });
                    let id = &message["id"];
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                    return request.json(&answer.to_string()).await;
                }
            };
            result_of(&mut request, "", result).await;
        }
        .boxed()
    })
    .await;
    let mut spec = ServerSpec::http("s", server.url());
    if let Transport::Http(http) = &mut spec.transport {
        let value = Source::command(["echo", "Bearer hunter2-hunter2"]);
        http.headers_from.insert("Authorization".to_owned(), value);
    }
    let (kept, _changes) = keep(spec).await;
    let connection = kept.shared.stand.connection().expect("it is up");
    let call = fake::call(&Host::able());
    let Err(Failure::Refused(error)) = in_time(connection.call(&call)).await else {
        panic!("it is refused");
    };
    assert_eq!(
        error.message,
        "no luck with [Authorization], that is: [Authorization]"
    );
    assert_eq!(error.data, Some(json!(["[Authorization]"])));
    in_time(kept.shut_down()).await;
}

#[tokio::test]
async fn no_server_at_all() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "http://user:hunter2@{}/mcp?key=hunter2",
        listener.local_addr().expect("one")
    );
    drop(listener);
    let client = Client::with(&url, Arc::new(callgate_auth::NoAuthorization));
    expect![[r#"Lost(LinkError { kind: Unreachable, reason: "the server cannot be reached: Connection refused (os error 111)", sent: false })"#]]
        .assert_eq(&client.request("tools/call").await);
}

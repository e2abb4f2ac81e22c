//! Revision 2026-07-28.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use rmcp::model::ProtocolVersion;
use tokio::sync::Notify;

use super::server::Server;
use super::{Client, in_time};
use callgate_auth::{AuthError, Authorize, Prompt, Refused, TryAgain};

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1.0}}"#;

#[tokio::test]
async fn a_request_says_what_it_is_in_its_headers() {
    let server = Server::start(|mut request| {
        async move {
            let names = [
                "accept",
                "content-type",
                "mcp-protocol-version",
                "mcp-method",
                "mcp-name",
                "mcp-param-region",
                "mcp-session-id",
                "accept-encoding",
                "x-key",
            ];
            for name in names {
                request
                    .log
                    .note(format!("{name}: {}", request.header(name)));
            }
            request
                .answer(
                    "200 OK",
                    "Content-Type: Application/JSON; charset=utf-8\r\nMcp-Session-Id: s\r\n",
                    RESULT,
                )
                .await;
        }
        .boxed()
    })
    .await;
    let client = Client::new(&server);
    assert_eq!(client.request("server/discover").await, r#"{"a":1.0}"#);
    expect![[r#"
        accept: application/json, text/event-stream
        content-type: application/json
        mcp-protocol-version: 2026-07-28
        mcp-method: server/discover
        mcp-name: -
        mcp-param-region: -
        mcp-session-id: -
        accept-encoding: -
        x-key: hunter2-hunter2
    "#]]
    .assert_eq(&server.log());

    let client = Client::speaking(&server, ProtocolVersion::V_2026_07_28);
    let parameters = [("Mcp-Param-Region".to_owned(), "us-west1".to_owned())];
    let answer = client.request_with("tools/call", Some("größe"), &parameters);
    assert_eq!(answer.await, r#"{"a":1.0}"#);
    let log = server.log();
    let second: Vec<_> = log.lines().skip(9).collect();
    assert_eq!(
        second,
        [
            "accept: application/json, text/event-stream",
            "content-type: application/json",
            "mcp-protocol-version: 2026-07-28",
            "mcp-method: tools/call",
            "mcp-name: =?base64?Z3LDtsOfZQ==?=",
            "mcp-param-region: us-west1",
            "mcp-session-id: -",
            "accept-encoding: -",
            "x-key: hunter2-hunter2",
        ]
    );
}

#[tokio::test]
async fn a_stream_that_ends_before_its_answer_is_not_taken_up_again() {
    let server = Server::start(|mut request| {
        async move {
            request.log.note(request.method());
            request.events().await;
            request.write("id: 1\nretry: 1\ndata: \n\n").await;
        }
        .boxed()
    })
    .await;
    let client = Client::speaking(&server, ProtocolVersion::V_2026_07_28);
    expect![[r#"Lost(LinkError { kind: Unreachable, reason: "the server ended its answer before it was whole", sent: true })"#]]
        .assert_eq(&client.request("tools/call").await);
    assert_eq!(server.log(), "tools/call\n");
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_stream_and_says_no_more() {
    let closed = Arc::new(Notify::new());
    let sees = Arc::clone(&closed);
    let server = Server::start(move |mut request| {
        let closed = Arc::clone(&closed);
        async move {
            request.log.note(request.method());
            match request.method().as_str() {
                // A stream has begun, a head never ends, nothing comes.
                "a" => drop(request.events().await),
                "b" => drop(request.write("HTTP/1.1 200 OK\r\nX: ").await),
                _ => {}
            }
            closed.notify_one();
            request.gone().await;
            closed.notify_one();
        }
        .boxed()
    })
    .await;
    let client = Client::speaking(&server, ProtocolVersion::V_2026_07_28);
    for method in ["a", "b", "c"] {
        let request = Box::pin(client.request(method));
        let seen = Box::pin(sees.notified());
        let futures::future::Either::Right((_, request)) =
            in_time(futures::future::select(request, seen)).await
        else {
            panic!("it is not answered");
        };
        drop(request);
        in_time(sees.notified()).await;
    }
    assert_eq!(server.log(), "a\nb\nc\n");
}

/// It may not be cancelled, but nobody reads on.
#[tokio::test]
async fn a_discovery_that_is_given_up_closes_its_stream() {
    let closed = Arc::new(Notify::new());
    let sees = Arc::clone(&closed);
    let server = Server::start(move |mut request| {
        let closed = Arc::clone(&closed);
        async move {
            request.events().await;
            request.write("data: no message\n\n").await;
            request.gone().await;
            closed.notify_one();
        }
        .boxed()
    })
    .await;
    let client = Client::new(&server);
    let mut request = Box::pin(client.request("server/discover"));
    // Until its stream is read.
    while client.inbox.junk() == 0 {
        assert!(futures::poll!(&mut request).is_pending());
        tokio::task::yield_now().await;
    }
    drop(request);
    in_time(sees.notified()).await;
}

/// Has the tokens `t0`, `t1`, … and takes the next one at each challenge.
#[derive(Debug)]
struct Tokens {
    current: AtomicUsize,
    last: usize,
}

impl Authorize for Tokens {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        let token = format!("Bearer t{}", self.current.load(Ordering::Relaxed));
        std::future::ready(Ok(HeaderValue::from_str(&token).ok())).boxed()
    }

    fn refused<'a>(&'a self, refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        assert_eq!(refusal.www_authenticate, Some("Bearer a, Basic b"));
        let current = self.current.load(Ordering::Relaxed);
        let sent = refusal.sent.map(HeaderValue::as_bytes);
        assert_eq!(sent, Some(format!("Bearer t{current}").as_bytes()));
        let again = current < self.last;
        self.current
            .store(current + usize::from(again), Ordering::Relaxed);
        let again = if again { TryAgain::Yes } else { TryAgain::No };
        std::future::ready(Ok(again)).boxed()
    }
}

#[tokio::test]
async fn a_refused_token_is_changed_and_the_request_sent_again_twice_at_most() {
    let refusing = |accepted: &'static str| {
        Server::start(move |mut request| {
            async move {
                let token = request.header("authorization").to_owned();
                request.log.note(token.clone());
                if token == accepted {
                    return request.json(RESULT).await;
                }
                let challenge = "WWW-Authenticate: Bearer a\r\nWWW-Authenticate: Basic b\r\n";
                request.answer("401 Unauthorized", challenge, "no").await;
            }
            .boxed()
        })
    };
    let ask = async |server: &Server, last| {
        let current = AtomicUsize::new(0);
        let client = Client::with(&server.url(), Arc::new(Tokens { current, last }));
        client.link.agreed(&ProtocolVersion::V_2026_07_28);
        client.request("tools/call").await
    };
    let server = refusing("Bearer t2").await;
    assert_eq!(ask(&server, 5).await, r#"{"a":1.0}"#);
    assert_eq!(server.log(), "Bearer t0\nBearer t1\nBearer t2\n");

    let refused = expect![[
        r#"Lost(LinkError { kind: Unauthorized, reason: "it answers with HTTP status 401 Unauthorized", sent: false })"#
    ]];
    let server = refusing("Bearer t3").await;
    refused.assert_eq(&ask(&server, 5).await);
    assert_eq!(server.log(), "Bearer t0\nBearer t1\nBearer t2\n");

    let server = refusing("Bearer t1").await;
    refused.assert_eq(&ask(&server, 0).await);
    assert_eq!(server.log(), "Bearer t0\n");
}

//! Revisions with sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use rmcp::model::ProtocolVersion;
use tokio::sync::Notify;

use super::server::{Request, Server};
use super::{Client, in_time};
use crate::link::Outgoing;
use callgate_auth::{
    AuthError, AuthErrorKind, Authorize, NoAuthorization, Prompt, Refused, TryAgain,
};

pub(super) const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// Notes a request with its session, and answers `initialize`; true if that is
/// all there is to do.
pub(super) async fn begins(request: &mut Request) -> bool {
    let method = request.method();
    let session = request.header("mcp-session-id").to_owned();
    let version = request.header("mcp-protocol-version").to_owned();
    request.log.note(format!("{method} {session} {version}"));
    match method.as_str() {
        "initialize" => {
            let headers = "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n";
            let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
            request.answer("200 OK", headers, body).await;
        }
        "notifications/initialized" => {
            // Others would overtake it if it were not waited for.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            request.log.note("begun");
            request.answer("202 Accepted", "", "").await;
        }
        "notifications/cancelled" | "DELETE" => request.answer("202 Accepted", "", "").await,
        _ => return false,
    }
    true
}

/// A client in a session.
async fn in_session(server: &Server) -> Client {
    in_session_with(server, Arc::new(NoAuthorization)).await
}

pub(super) async fn in_session_with(server: &Server, authorize: Arc<dyn Authorize>) -> Client {
    let client = Client::with(&server.url(), authorize);
    assert_eq!(client.request("initialize").await, "{}");
    client.link.agreed(&ProtocolVersion::V_2025_11_25);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let message = Outgoing {
        text: note,
        method: "notifications/initialized",
        id: None,
        name: None,
        parameters: &[],
        decided: None,
    };
    in_time(client.link.send(message))
        .await
        .expect("it is taken");
    client
}

/// Makes a request, and drops it once the server has it.
async fn give_up(client: &Client, server: &Server) {
    let mut request = Box::pin(client.request("tools/call"));
    while !server.log().contains("tools/call") {
        assert!(futures::poll!(&mut request).is_pending());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_sessions_own_stream_is_there_before_the_first_request() {
    let server = Server::start(|mut request| {
        async move {
            if begins(&mut request).await {
                return;
            }
            if request.method() == "GET" {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                request.log.note("stream");
                request.events().await;
                return request.gone().await;
            }
            request.json(r#"{"jsonrpc":"2.0","id":2,"result":2}"#).await;
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    assert_eq!(client.request("tools/list").await, "2");
    in_time(client.link.close()).await;
    expect![[r#"
        initialize - -
        notifications/initialized s-1 2025-11-25
        begun
        GET s-1 2025-11-25
        stream
        tools/list s-1 2025-11-25
        DELETE s-1 2025-11-25
    "#]]
    .assert_eq(&server.log());
    assert!(client.inbox.open(None, false).is_err(), "it is closed");
}

#[tokio::test]
async fn an_answer_whose_stream_is_closed_is_fetched_where_it_broke_off() {
    let server = Server::start(|mut request| {
        async move {
            if begins(&mut request).await {
                return;
            }
            let last = request.header("last-event-id").to_owned();
            match (request.method().as_str(), last.as_str()) {
                ("GET", "-") => request.answer("405 Method Not Allowed", "", "").await,
                ("GET", "e1") => {
                    request.log.note("from e1");
                    request.events().await;
                    request.write("id: é2\nretry: 1\ndata: \n\n").await;
                    // No header can have it.
                    request.write("id: \u{1}\ndata: \n\n").await;
                }
                ("GET", "é2") => {
                    request.log.note("from é2");
                    request.events().await;
                    let message = r#"{"jsonrpc":"2.0","id":2,"result":"late"}"#;
                    request.write(format!("id: e3\ndata: {message}\n\n")).await;
                }
                _ => {
                    request.events().await;
                    request.write("id: e1\nretry: 1\ndata: \n\n").await;
                }
            }
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    assert_eq!(client.request("tools/call").await, r#""late""#);
    expect![[r#"
        initialize - -
        notifications/initialized s-1 2025-11-25
        begun
        GET s-1 2025-11-25
        tools/call s-1 2025-11-25
        GET s-1 2025-11-25
        from e1
        GET s-1 2025-11-25
        from é2
    "#]]
    .assert_eq(&server.log());
}

#[tokio::test]
async fn a_stream_of_which_nothing_comes_is_given_up() {
    let server = Server::start(|mut request| {
        async move {
            if begins(&mut request).await {
                return;
            }
            if request.header("last-event-id") == "-" && request.method() == "GET" {
                return request.answer("404 Not Found", "", "").await;
            }
            request.write(EVENTS).await;
            request.write("id: same\nretry: 0\ndata: \n\n").await;
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    expect![[r#"Lost(LinkError { kind: Unreachable, reason: "the server ended its answer before it was whole", sent: true })"#]]
        .assert_eq(&client.request("tools/call").await);
    assert_eq!(server.log().matches("GET").count(), 5, "{}", server.log());
}

#[tokio::test]
async fn a_stream_that_is_not_taken_up_again_tells_of_both() {
    let lost = async |status: &'static str, expected: expect_test::Expect| {
        let server = Server::start(move |mut request| {
            async move {
                if begins(&mut request).await {
                    return;
                }
                if request.method() == "GET" {
                    return request.answer(status, "", "").await;
                }
                request.write(EVENTS).await;
                request.write("id: one\nretry: 0\ndata: \n\n").await;
            }
            .boxed()
        })
        .await;
        let client = in_session(&server).await;
        let answer = client.request("tools/call").await;
        // The first of them is for the session's own stream.
        let tries = server.log().matches("GET").count() - 1;
        expected.assert_eq(&format!("{tries} {answer}"));
    };
    lost("405 Method Not Allowed", expect![[r#"1 Lost(LinkError { kind: Status(405), reason: "the server ended its answer before it was whole; it was not taken up again: it answers with HTTP status 405 Method Not Allowed", sent: true })"#]]).await;
    lost("503 Service Unavailable", expect![[r#"4 Lost(LinkError { kind: Status(503), reason: "the server ended its answer before it was whole; it was not taken up again: it answers with HTTP status 503 Service Unavailable", sent: true })"#]]).await;
}

/// A server may not have noticed that the last one has ended, and it may want a login.
#[tokio::test]
async fn a_stream_that_has_ended_is_opened_again_until_the_session_is_gone() {
    const TIMES: [&str; 6] = [
        "409 Conflict",
        "a stream that ends",
        "409 Conflict",
        "403 Forbidden",
        "a stream that ends",
        "404 Not Found",
    ];
    let times = std::sync::Mutex::new(TIMES.into_iter());
    let server = Server::start(move |mut request| {
        let is_get = request.method() == "GET";
        let time = is_get.then(|| times.lock().expect("no panic").next());
        async move {
            if begins(&mut request).await {
                return;
            }
            match time {
                None => request.json(r#"{"jsonrpc":"2.0","id":2,"result":2}"#).await,
                Some(None) => request.answer("405 Method Not Allowed", "", "").await,
                Some(Some("a stream that ends")) => {
                    request.events().await;
                    let message = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
                    request
                        .write(format!("retry: 1\ndata: {message}\n\n"))
                        .await;
                }
                Some(Some(status)) => request.answer(status, "", "").await,
            }
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    assert_eq!(client.request("tools/list").await, "2");
    let mut lost = client.inbox.watch_lost();
    let lost = in_time(lost.wait_for(Option::is_some)).await;
    let lost = lost.expect("the client is there").clone();
    assert_eq!(
        lost.expect("it is lost").reason,
        "the server has ended the session"
    );
    let asked = server.log().matches("GET").count();
    assert_eq!(asked, TIMES.len(), "{}", server.log());
}

#[tokio::test]
async fn a_request_that_is_given_up_is_said_to_be() {
    let (says, heard) = tokio::sync::oneshot::channel();
    let says = std::sync::Mutex::new(Some(says));
    let server = Server::start(move |mut request| {
        let cancelled = request.method() == "notifications/cancelled";
        let says = if cancelled {
            says.lock().expect("one").take()
        } else {
            None
        };
        async move {
            let body = request.body.clone();
            if begins(&mut request).await {
                says.map(|says| says.send(body));
                return;
            }
            if request.method() == "GET" {
                return request.answer("405 Method Not Allowed", "", "").await;
            }
            request.events().await;
            request.gone().await;
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    give_up(&client, &server).await;
    let said = in_time(heard).await.expect("it is said");
    assert!(said.contains(r#""requestId":2"#), "{said}");
}

#[tokio::test]
async fn what_was_given_up_is_said_to_be_before_the_session_ends() {
    let server = Server::start(|mut request| {
        async move {
            if begins(&mut request).await {
                return;
            }
            if request.method() == "GET" {
                return request.answer("405 Method Not Allowed", "", "").await;
            }
            request.gone().await;
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    give_up(&client, &server).await;
    in_time(client.link.close()).await;
    expect![[r#"
        initialize - -
        notifications/initialized s-1 2025-11-25
        begun
        GET s-1 2025-11-25
        tools/call s-1 2025-11-25
        notifications/cancelled s-1 2025-11-25
        DELETE s-1 2025-11-25
    "#]]
    .assert_eq(&server.log());
}

#[tokio::test]
async fn the_end_of_a_session_ends_all_that_is_in_flight() {
    let server = Server::start(|mut request| {
        async move {
            if begins(&mut request).await {
                return;
            }
            match request.method().as_str() {
                "GET" => request.answer("405 Method Not Allowed", "", "").await,
                "waits" => {
                    request.events().await;
                    request.gone().await;
                }
                _ => {
                    let body =
                        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"x"}}"#;
                    let headers = "Content-Type: application/json\r\n";
                    request.answer("404 Not Found", headers, body).await;
                }
            }
        }
        .boxed()
    })
    .await;
    let client = in_session(&server).await;
    let waits = client.request("waits");
    let later = async {
        while !server.log().contains("waits") {
            tokio::task::yield_now().await;
        }
        client.request("later").await
    };
    let (waits, later) = in_time(futures::future::join(waits, later)).await;
    expect![[r#"Lost(LinkError { kind: Closed, reason: "the server has ended the session", sent: true })"#]].assert_eq(&waits);
    expect![[r#"Lost(LinkError { kind: Closed, reason: "the server has ended the session", sent: false })"#]].assert_eq(&later);
    assert!(client.inbox.open(None, false).is_err(), "it is lost");
}

/// Whose authorization server does not answer the third time: for the session's own
/// stream, as the handshake takes two requests.
#[derive(Debug, Default)]
struct Ailing(AtomicUsize);

impl Authorize for Ailing {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        let answer = match self.0.fetch_add(1, Ordering::Relaxed) {
            2 => {
                let reason = "the authorization server answered 503".to_owned();
                Err(AuthError::new("s", AuthErrorKind::Renewal { reason }))
            }
            _ => Ok(Some(HeaderValue::from_static("Bearer token"))),
        };
        Box::pin(std::future::ready(answer))
    }

    fn refused<'a>(&'a self, _refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        Box::pin(std::future::ready(Ok(TryAgain::No)))
    }
}

#[tokio::test]
async fn the_sessions_own_stream_is_opened_once_its_authorization_is_well() {
    let opened = Arc::new(Notify::new());
    let server = Server::start({
        let opened = Arc::clone(&opened);
        move |mut request| {
            let opened = Arc::clone(&opened);
            async move {
                if begins(&mut request).await {
                    return;
                }
                if request.method() == "GET" {
                    assert_eq!(request.header("authorization"), "Bearer token");
                    request.events().await;
                    opened.notify_one();
                    return request.gone().await;
                }
                request.json(r#"{"jsonrpc":"2.0","id":2,"result":2}"#).await;
            }
            .boxed()
        }
    })
    .await;
    let client = in_session_with(&server, Arc::new(Ailing::default())).await;
    // The request that comes first is not held up.
    assert_eq!(client.request("tools/list").await, "2");
    in_time(opened.notified()).await;
    in_time(client.link.close()).await;
    expect![[r#"
        initialize - -
        notifications/initialized s-1 2025-11-25
        begun
        tools/list s-1 2025-11-25
        GET s-1 2025-11-25
        DELETE s-1 2025-11-25
    "#]]
    .assert_eq(&server.log());
}

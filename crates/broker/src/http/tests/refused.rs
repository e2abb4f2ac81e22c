//! What is said of a request that a server refuses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::expect;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::HeaderValue;
use tokio::sync::Notify;

use super::server::Server;
use super::sessions::{EVENTS, begins, in_session_with};
use super::{Client, discovered, in_time};
use crate::flight::Flight;
use crate::link::Outgoing;
use crate::spec::ServerSpec;
use crate::start::{Admission, start};
use callgate_auth::{AuthError, AuthErrorKind, Authorize, Grant, Prompt, Refused, TryAgain};

/// Notes who waits for what is refused.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<Prompt>>);

impl Authorize for Noting {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn refused<'a>(&'a self, refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        self.0.lock().expect("no panic").push(refusal.prompt);
        std::future::ready(Ok(TryAgain::No)).boxed()
    }
}

#[tokio::test]
async fn nobody_waits_for_the_sessions_own_stream_nor_for_its_end() {
    let server = Server::start(|mut request| {
        async move {
            let method = request.method();
            if matches!(method.as_str(), "GET" | "DELETE" | "tools/list") {
                request.log.note(method);
                return request.answer("403 Forbidden", "", "").await;
            }
            if begins(&mut request).await {
                return;
            }
            request.write(EVENTS).await;
            request.write("id: one\nretry: 0\ndata: \n\n").await;
        }
        .boxed()
    })
    .await;
    let noting = Arc::new(Noting::default());
    let client = in_session_with(&server, Arc::clone(&noting) as Arc<dyn Authorize>).await;
    for method in ["tools/list", "tools/call"] {
        let answer = client.request(method).await;
        assert!(answer.contains("403 Forbidden"), "{answer}");
    }
    in_time(client.link.close()).await;
    // Whether the call that was refused is cancelled before the next one is a matter of time.
    let log = server.log();
    let asked = log.lines().skip(3);
    let asked: Vec<&str> = asked
        .filter(|line| !line.starts_with("notifications/"))
        .collect();
    let waits = noting.0.lock().expect("no panic").clone();
    // The second GET takes up the answer to the call.
    assert_eq!(
        asked,
        [
            "GET",
            "tools/list",
            "tools/call s-1 2025-11-25",
            "GET",
            "DELETE"
        ]
    );
    let (someone, nobody) = (Prompt::Allowed, Prompt::Never);
    assert_eq!(waits, [nobody, someone, someone, nobody]);
}

/// Has a wider token once a call has asked for it, which a stream may not.
#[derive(Debug, Default)]
struct SteppingUp(AtomicBool);

impl Authorize for SteppingUp {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        let token = match self.0.load(Ordering::Relaxed) {
            true => "Bearer wide",
            false => "Bearer narrow",
        };
        std::future::ready(Ok(Some(HeaderValue::from_static(token)))).boxed()
    }

    fn refused<'a>(&'a self, refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        let stepped_up = match refusal.prompt {
            Prompt::Allowed => {
                self.0.store(true, Ordering::Relaxed);
                Ok(TryAgain::Yes)
            }
            Prompt::Never => Err(AuthError::new(
                "s",
                AuthErrorKind::InsufficientScope {
                    scope: Some("wide".to_owned()),
                    grant: Grant::AuthorizationCode,
                },
            )),
        };
        std::future::ready(stepped_up).boxed()
    }
}

#[tokio::test]
async fn the_sessions_own_stream_is_opened_once_a_call_has_what_it_lacked() {
    let opened = Arc::new(Notify::new());
    let server = Server::start({
        let opened = Arc::clone(&opened);
        move |mut request| {
            let opened = Arc::clone(&opened);
            async move {
                if begins(&mut request).await {
                    return;
                }
                let method = request.method();
                let is_wide = request.header("authorization") == "Bearer wide";
                if !is_wide && method != "tools/list" {
                    return request.answer("403 Forbidden", "", "").await;
                }
                match method.as_str() {
                    "GET" => {
                        request.events().await;
                        opened.notify_one();
                        request.gone().await;
                    }
                    "tools/list" => {
                        let answer = r#"{"jsonrpc":"2.0","id":2,"result":2}"#;
                        request.json(answer).await;
                    }
                    _ => request.json(r#"{"jsonrpc":"2.0","id":3,"result":3}"#).await,
                }
            }
            .boxed()
        }
    })
    .await;
    let client = in_session_with(&server, Arc::new(SteppingUp::default())).await;
    assert_eq!(client.request("tools/list").await, "2");
    assert_eq!(client.request("tools/call").await, "3");
    in_time(opened.notified()).await;
    in_time(client.link.close()).await;
    expect![[r#"
        initialize - -
        notifications/initialized s-1 2025-11-25
        begun
        GET s-1 2025-11-25
        tools/list s-1 2025-11-25
        tools/call s-1 2025-11-25
        tools/call s-1 2025-11-25
        GET s-1 2025-11-25
        DELETE s-1 2025-11-25
    "#]]
    .assert_eq(&server.log());
}

/// A person is asked for a login, and never makes one.
#[derive(Debug)]
struct Asking;

impl Asking {
    fn error() -> AuthError {
        AuthError::new("s", AuthErrorKind::Awaited { scope: None })
    }
}

impl Authorize for Asking {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn refused<'a>(&'a self, _refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        std::future::pending().boxed()
    }

    fn pending(&self) -> Option<AuthError> {
        Some(Self::error())
    }
}

#[tokio::test]
async fn a_login_holds_up_what_the_server_refused_and_nothing_else() {
    let server = Server::start(|mut request| {
        async move {
            let method = request.method();
            let is_refused = method == "refused";
            request.log.note(method);
            if is_refused {
                return request.answer("401 Unauthorized", "", "").await;
            }
            request.gone().await;
        }
        .boxed()
    })
    .await;
    let client = Client::with(&server.url(), Arc::new(Asking));
    let open = |method| {
        let flight = Flight::open(&client.inbox, &client.link, None, method);
        flight.expect("it is not lost")
    };
    let (mut taken, mut refused) = (open("taken"), open("refused"));
    let (taken_id, refused_id) = (taken.id(), refused.id());
    let message = |method, text, id| Outgoing {
        text,
        method,
        id: Some(id),
        name: None,
        parameters: &[],
        decided: None,
    };
    let mut sending = Box::pin(futures::future::join(
        taken.send(message("taken", r#"{"method":"taken"}"#, taken_id)),
        refused.send(message("refused", r#"{"method":"refused"}"#, refused_id)),
    ));
    let held_up = async {
        while !(server.log().contains("taken") && client.link.held_up(refused_id).is_some()) {
            assert!(futures::poll!(&mut sending).is_pending());
            tokio::task::yield_now().await;
        }
    };
    in_time(held_up).await;
    assert_eq!(client.link.held_up(refused_id), Some(Asking::error()));
    assert_eq!(client.link.held_up(taken_id), None);
    drop(sending);
    assert_eq!(client.link.held_up(refused_id), None);
}

#[tokio::test]
async fn a_list_that_cannot_be_had_at_the_start_is_not_malformed() {
    for (status, expected) in [
        (
            "503 Service Unavailable",
            expect![
                "server `s` did not start: URL did not answer as an MCP endpoint: it answers with HTTP status 503 Service Unavailable"
            ],
        ),
        (
            "401 Unauthorized",
            expect![
                "server `s` did not start: server `s` wants a login, and there is none; run `callgate auth login s`"
            ],
        ),
    ] {
        let server = Server::start(move |mut request| {
            async move {
                match request.method().as_str() {
                    "server/discover" => discovered(&mut request, serde_json::json!({})).await,
                    _ => request.answer(status, "", "").await,
                }
            }
            .boxed()
        })
        .await;
        let spec = ServerSpec::http("s", server.url());
        let error = in_time(start(&spec, &Admission::default(), None))
            .await
            .expect_err("no list");
        let said = error.to_string().replace(&server.url(), "URL");
        expected.assert_eq(&said);
    }
}

//! Lists that are asked for because calls were refused, and do not come at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use http::HeaderValue;
use serde_json::json;
use tokio::sync::watch;

use super::mirroring::{agreed, call, call_as, take_list, tool};
use super::server::{Request, Server};
use super::{Client, called_by_headers, discovered, in_time, result_of};
use callgate_auth::{AuthError, AuthErrorKind, Authorize, Prompt, Refused, TryAgain};

/// Has a login that the server takes once somebody has logged in, and waits for that.
#[derive(Debug)]
struct LoggingIn(watch::Sender<bool>);

impl LoggingIn {
    fn error() -> AuthError {
        let reason = "wants a login".to_owned();
        AuthError::new("s", AuthErrorKind::LoginRequired { reason })
    }
}

impl Authorize for LoggingIn {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        let header = self
            .0
            .borrow()
            .then(|| HeaderValue::from_static("Bearer b"));
        std::future::ready(Ok(header)).boxed()
    }

    fn refused<'a>(&'a self, _refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        let mut logged_in = self.0.subscribe();
        async move {
            Ok(match logged_in.wait_for(|is| *is).await {
                Ok(_) => TryAgain::Yes,
                Err(_) => TryAgain::No,
            })
        }
        .boxed()
    }

    fn pending(&self) -> Option<AuthError> {
        (!*self.0.borrow()).then(Self::error)
    }
}

/// A server whose calls have to name a region in a header. `list` says which header the list
/// of its tools names, or with what status it is refused, for each time it is asked for.
async fn naming_a_region_later<L>(list: L) -> Server
where
    L: Fn(usize, &Request) -> Result<Option<&'static str>, &'static str> + Send + Sync + 'static,
{
    let state = Arc::new((list, AtomicUsize::new(0)));
    Server::start(move |mut request| {
        let state = Arc::clone(&state);
        async move {
            let (list, lists) = &*state;
            match request.method().as_str() {
                "server/discover" => discovered(&mut request, json!({})).await,
                "tools/list" => match list(lists.fetch_add(1, Ordering::Relaxed), &request) {
                    Ok(header) => {
                        let tools = json!([tool("t", header)]);
                        let result = json!({ "resultType": "complete", "tools": tools });
                        result_of(&mut request, "", result).await;
                    }
                    Err(status) => request.answer(status, "", "").await,
                },
                _ => {
                    let is_right = request.header("mcp-param-region") == "us-west1";
                    called_by_headers(&mut request, is_right).await;
                }
            }
        }
        .boxed()
    })
    .await
}

/// Whoever cannot wait for it says so, and spoils nothing for those who can.
#[tokio::test]
async fn a_login_that_holds_up_the_new_list_is_no_list_for_nobody() {
    let server = naming_a_region_later(|nth, request| match nth {
        0 => Ok(None),
        _ if request.header("authorization") == "-" => Err("401 Unauthorized"),
        _ => Ok(Some("Region")),
    })
    .await;
    let person = Arc::new(LoggingIn(watch::Sender::new(false)));
    let connection = agreed(Client::with(&server.url(), Arc::clone(&person) as _)).await;
    take_list(&connection).await;
    // Whichever of them asks for the list.
    let hasty = async {
        let calls = (0..4).map(|_| call_as(&connection, None, Duration::from_millis(500)));
        let said = join_all(calls).await;
        person.0.send_replace(true);
        said
    };
    let (hasty, patient) = join(hasty, call(&connection)).await;
    assert_eq!(hasty, vec![LoggingIn::error().to_string(); 4]);
    assert_eq!(patient, r#"{"resultType":"complete","content":[]}"#);
}

/// What another call waits for is not why there is no list.
#[tokio::test]
async fn a_list_that_is_slow_while_another_call_waits_for_a_login_is_slow() {
    let (lists, calls) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let server = Server::start(move |mut request| {
        let (lists, calls) = (Arc::clone(&lists), Arc::clone(&calls));
        async move {
            match request.method().as_str() {
                "server/discover" => discovered(&mut request, json!({})).await,
                "tools/list" if lists.fetch_add(1, Ordering::Relaxed) == 0 => {
                    let tools = json!([tool("t", None)]);
                    let result = json!({ "resultType": "complete", "tools": tools });
                    result_of(&mut request, "", result).await;
                }
                "tools/list" => request.gone().await,
                _ if calls.fetch_add(1, Ordering::Relaxed) == 0 => {
                    request.answer("401 Unauthorized", "", "").await;
                }
                _ => called_by_headers(&mut request, false).await,
            }
        }
        .boxed()
    })
    .await;
    let person = Arc::new(LoggingIn(watch::Sender::new(false)));
    let connection = agreed(Client::with(&server.url(), Arc::clone(&person) as _)).await;
    take_list(&connection).await;
    let mut waits = Box::pin(call(&connection));
    in_time(async {
        while person.0.receiver_count() == 0 {
            assert!(futures::poll!(&mut waits).is_pending());
            tokio::task::yield_now().await;
        }
    })
    .await;
    let slow = call_as(&connection, None, Duration::from_millis(300)).await;
    assert_eq!(slow, "no answer within 300 ms");
    assert_eq!(waits.now_or_never(), None);
}

/// What keeps one list from coming says nothing of the next one.
#[tokio::test]
async fn a_list_that_cannot_be_had_once_is_asked_for_again() {
    let server = naming_a_region_later(|nth, _| match nth {
        0 => Ok(None),
        1 => Err("503 Service Unavailable"),
        _ => Ok(Some("Region")),
    })
    .await;
    let connection = agreed(Client::new(&server)).await;
    take_list(&connection).await;
    let (one, other) = join(call(&connection), call(&connection)).await;
    let mut said = [one, other];
    said.sort();
    // Whichever of them asks first.
    let done = r#"{"resultType":"complete","content":[]}"#;
    assert_eq!(said, ["HeaderMismatch (code -32020)", done]);
}

//! Messages that nobody waits for, and servers that do not take them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use rmcp::model::ProtocolVersion;
use tokio::sync::Notify;

use super::server::{Request, Server};
use super::{Client, in_time};
use crate::http::posts::{ANSWER_PATIENCE, MAX_ANSWERS, MOST, PATIENCE, TURNS};
use callgate_auth::{AuthError, Authorize, Prompt, Refused, TryAgain};

fn answer(client: &Client, number: usize) {
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);
    client.link.post("", None, answer);
}

fn notify(client: &Client, number: usize) {
    let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{number}"}}"#);
    let method = format!("notifications/{number}");
    client.link.post(&method, None, message);
}

/// A server that does this with each message, once it has noted it, and what it says when
/// it has so many.
async fn noting<F>(many: usize, handle: F) -> (Server, Arc<Notify>)
where
    F: Fn(Request, usize) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let (seen, all) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    let tells = Arc::clone(&all);
    let server = Server::start(move |request| {
        let number = seen.fetch_add(1, Ordering::Relaxed) + 1;
        request.log.note(request.method());
        if number == many {
            tells.notify_one();
        }
        handle(request, number)
    });
    (server.await, all)
}

/// As when a host says on a thread of its own that its folders have changed.
#[test]
fn what_is_handed_over_outside_of_the_runtime_is_sent() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (server, all, client) = runtime.block_on(async {
        let (server, all) = noting(1, |mut request, _| {
            async move { request.answer("202 Accepted", "", "").await }.boxed()
        })
        .await;
        let client = Client::speaking(&server, ProtocolVersion::V_2025_11_25);
        (server, all, client)
    });
    notify(&client, 1);
    runtime.block_on(in_time(all.notified()));
    assert_eq!(server.log(), "notifications/1\n");
}

/// Some are never answered at all, and of some the answer never ends.
#[tokio::test]
async fn a_server_that_takes_nothing_has_a_bounded_number_and_each_for_a_time() {
    let (server, all) = noting(TURNS + 1, |mut request, number| {
        async move {
            if number % 2 == 0 {
                request.events().await;
            }
            request.gone().await;
        }
        .boxed()
    })
    .await;
    let client = Client::speaking(&server, ProtocolVersion::V_2025_11_25);
    let began = Instant::now();
    for number in 0..=TURNS {
        notify(&client, number);
    }
    // The last one has its turn when another one has been given up.
    in_time(all.notified()).await;
    assert!(began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
    assert!(!client.link.is_congested(), "none of them is an answer");
}

#[tokio::test]
async fn so_many_answers_are_on_their_way_before_no_more_questions_are_taken() {
    let (server, all) = noting(MAX_ANSWERS, |mut request, number| {
        async move {
            if number == MAX_ANSWERS {
                request.gone().await;
            } else {
                request.answer("202 Accepted", "", "").await;
            }
        }
        .boxed()
    })
    .await;
    let client = Client::speaking(&server, ProtocolVersion::V_2025_11_25);
    for number in 0..MAX_ANSWERS {
        assert!(!client.link.is_congested(), "{number}");
        answer(&client, number);
    }
    assert!(client.link.is_congested());
    in_time(all.notified()).await;
    let congested = async {
        while client.link.is_congested() {
            tokio::task::yield_now().await;
        }
    };
    in_time(congested).await;
}

/// More are given up at once than may be on their way together, and a server that takes
/// them hears of those that there is room for.
#[tokio::test]
async fn messages_wait_for_their_turn_and_too_many_are_not_sent() {
    let (server, all) = noting(MOST + 1, |mut request, _| {
        async move { request.answer("202 Accepted", "", "").await }.boxed()
    })
    .await;
    let client = Client::speaking(&server, ProtocolVersion::V_2025_11_25);
    for number in 0..MOST + 7 {
        notify(&client, number);
    }
    // An answer always has room.
    answer(&client, 1);
    in_time(all.notified()).await;
    in_time(client.link.close()).await;
    let log = server.log();
    let mut seen: Vec<_> = log.lines().collect();
    seen.sort_unstable();
    let mut expected: Vec<_> = (0..MOST).map(|n| format!("notifications/{n}")).collect();
    expected.push("POST".to_owned());
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

/// Has a token for the first request once somebody has logged in, and none for others.
#[derive(Debug, Default)]
struct LoggingIn {
    asked: AtomicUsize,
    logged_in: Notify,
}

impl Authorize for LoggingIn {
    fn header(&self, _prompt: Prompt) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        async move {
            if self.asked.fetch_add(1, Ordering::Relaxed) > 0 {
                return Ok(None);
            }
            self.logged_in.notified().await;
            Ok(Some(HeaderValue::from_static("Bearer late")))
        }
        .boxed()
    }

    fn refused<'a>(&'a self, _refusal: Refused<'a>) -> BoxFuture<'a, Result<TryAgain, AuthError>> {
        std::future::ready(Ok(TryAgain::No)).boxed()
    }
}

/// Those that it does not take are given up. One for which somebody logs in is not among them.
#[tokio::test]
async fn a_server_that_takes_no_answer_is_answered_again_after_a_time() {
    let came = Arc::new(Notify::new());
    let comes = Arc::clone(&came);
    let server = Server::start(move |mut request| {
        let comes = Arc::clone(&comes);
        async move {
            if request.header("authorization") == "Bearer late" {
                comes.notify_one();
                return request.answer("202 Accepted", "", "").await;
            }
            request.gone().await;
        }
        .boxed()
    })
    .await;
    let logging_in = Arc::new(LoggingIn::default());
    let authorize = Arc::clone(&logging_in) as Arc<dyn Authorize>;
    let client = Client::with(&server.url(), authorize);
    client.link.agreed(&ProtocolVersion::V_2025_11_25);
    let began = Instant::now();
    for number in 0..MAX_ANSWERS {
        answer(&client, number);
    }
    assert!(client.link.is_congested());
    let congested = async {
        while client.link.is_congested() {
            tokio::task::yield_now().await;
        }
    };
    in_time(congested).await;
    assert!(began.elapsed() >= ANSWER_PATIENCE, "{:?}", began.elapsed());
    logging_in.logged_in.notify_one();
    in_time(came.notified()).await;
    in_time(client.link.close()).await;
}

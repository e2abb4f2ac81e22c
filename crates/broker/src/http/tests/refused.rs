//! What is said of a request that a server refuses.

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::HeaderValue;

use super::in_time;
use super::server::Server;
use super::sessions::{EVENTS, begins, in_session_with};
use crate::auth::{AuthError, Authorize, Refusal, Waits};

/// Notes who waits for what is refused.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<Waits>>);

impl Authorize for Noting {
    fn bearer(&self, _waits: Waits) -> BoxFuture<'_, Result<Option<HeaderValue>, AuthError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn challenged<'a>(&'a self, refusal: Refusal<'a>) -> BoxFuture<'a, Result<bool, AuthError>> {
        self.0.lock().expect("no panic").push(refusal.waits);
        std::future::ready(Ok(false)).boxed()
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
    let (someone, nobody) = (Waits::Someone, Waits::Nobody);
    assert_eq!(waits, [nobody, someone, someone, nobody]);
}

//! Messages that nobody waits for: notifications, answers to the server's own requests,
//! and requests that are sent off. Each has a connection of its own, so what a server that
//! does not take them can tie up is bounded in number and in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::endpoint::Exchange;
use super::link::Shared;
use crate::link::{LinkError, LinkErrorKind, Outgoing};
use callgate_auth::Prompt;

/// How many are on their way together, answers aside: each has a connection of its own. The
/// others wait for their turn.
pub(super) const TURNS: usize = 64;
/// With how many answers on their way no more of the server's own requests are answered.
/// Answers do not wait for turns, since calls may wait for them: a server that asks and does
/// not take them would have ever more.
pub(super) const MAX_ANSWERS: usize = 64;
/// How many are on their way or wait for that, beyond which only answers are taken.
pub(super) const MOST: usize = if cfg!(test) { 80 } else { 1_024 };
/// How long a server has to take one, and then to end what it says to it: nobody gives up
/// what nobody waits for.
pub(super) const PATIENCE: Duration = match cfg!(test) {
    true => Duration::from_secs(1),
    false => Duration::from_secs(20),
};

/// How long a server has to take an answer to one of its requests, each time that it is sent:
/// those that it never takes would keep it from being answered for good.
pub(super) const ANSWER_PATIENCE: Duration = match cfg!(test) {
    true => Duration::from_secs(1),
    false => Duration::from_secs(300),
};

/// Those of one link.
#[derive(Debug)]
pub(super) struct Posts {
    /// On their way, or not yet.
    many: watch::Sender<usize>,
    /// Answers among them.
    answers: AtomicUsize,
    /// What is left of [`TURNS`].
    turns: Semaphore,
}

impl Default for Posts {
    fn default() -> Self {
        Self {
            many: watch::Sender::default(),
            answers: AtomicUsize::new(0),
            turns: Semaphore::new(TURNS),
        }
    }
}

impl Posts {
    /// Whether answers would only pile up.
    pub(super) fn is_congested(&self) -> bool {
        self.answers.load(Ordering::Relaxed) >= MAX_ANSWERS
    }

    /// Prompt until there are none.
    pub(super) async fn done(&self) {
        let mut many = self.many.subscribe();
        // The sender lives as long as this.
        let _none = many.wait_for(|many| *many == 0).await;
    }

    fn take(&self, is_answer: bool) -> bool {
        self.answers
            .fetch_add(usize::from(is_answer), Ordering::Relaxed);
        self.many.send_if_modified(|many| {
            let has_room = is_answer || *many < MOST;
            *many += usize::from(has_room);
            has_room
        })
    }

    fn give_back(&self, is_answer: bool) {
        self.answers
            .fetch_sub(usize::from(is_answer), Ordering::Relaxed);
        self.many.send_modify(|many| *many -= 1);
    }
}

impl Shared {
    /// Has a message sent in a task of its own.
    pub(super) fn send_off(self: &Arc<Self>, method: &str, name: Option<&str>, message: String) {
        // They have no method. There are only so many, and a call waits for each.
        let is_answer = method.is_empty();
        if !self.posts.take(is_answer) {
            tracing::debug!(server = %self.server, method, "one message too many is not sent");
            return;
        }
        let shared = Arc::clone(self);
        let (method, name) = (method.to_owned(), name.map(str::to_owned));
        self.runtime.spawn(async move {
            let posted = shared.ended.run_until_cancelled(async {
                let _turn = match is_answer {
                    true => None,
                    false => shared.posts.turns.acquire().await.ok(),
                };
                shared.post(&method, name.as_deref(), &message).await
            });
            if let Some(Err(error)) = posted.await {
                tracing::debug!(server = %shared.server, %error, "a message was not accepted");
            }
            shared.posts.give_back(is_answer);
        });
    }

    async fn post(&self, method: &str, name: Option<&str>, message: &str) -> Result<(), LinkError> {
        let outgoing = Outgoing {
            text: message,
            method,
            id: None,
            name,
            parameters: &[],
            decided: None,
        };
        let headers = self.headers_of(&outgoing);
        let body = Bytes::copy_from_slice(message.as_bytes());
        let post = Method::POST;
        let response = if method.is_empty() {
            // An answer is part of a call, and a person may have to log in for it first.
            let exchange = Exchange {
                limit: Some(ANSWER_PATIENCE),
                ..Exchange::new(post, headers, body, Prompt::Allowed)
            };
            self.endpoint.exchange(exchange).await?
        } else {
            let exchange = Exchange::new(post, headers, body, Prompt::Never);
            let exchanged = self.endpoint.exchange(exchange);
            let late = |_| not_taken(PATIENCE);
            timeout(PATIENCE, exchanged).await.map_err(late)??
        };
        self.accepted(response).await
    }
}

/// A server does not take a message in its time.
pub(super) fn not_taken(limit: Duration) -> LinkError {
    LinkError {
        kind: LinkErrorKind::Unreachable,
        reason: format!(
            "the server does not take it within {} ms",
            limit.as_millis()
        ),
        sent: true,
    }
}

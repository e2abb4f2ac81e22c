//! Questions of a run that wait for the client's answer.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use callgate::faces::Offers;
use callgate_text::label;
use futures::future::join_all;
use parking_lot::Mutex;
use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::client::can_answer;

/// The limit of a server's key, in characters. Requests with longer keys get numbers.
const MAX_KEY: usize = 128;
/// The limit of servers' keys. Later requests get numbers.
const MAX_KEYS: usize = 1_000;
/// The begin of a key with a number.
const NUMBERED: &str = "question-";

/// The requests of one run that have no answer yet. Their number is bounded by the run's calls.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    /// By their keys in answers.
    open: Mutex<BTreeMap<String, PendingRequest>>,
    /// The servers' keys that were used.
    own_keys: Mutex<HashSet<String>>,
    /// The number of requests so far.
    count: watch::Sender<u64>,
    /// The time that each request waits.
    pub(crate) answer_time: Duration,
}

#[derive(Debug)]
struct PendingRequest {
    request: InputRequest,
    answer: oneshot::Sender<Result<TimedAnswer, NoAnswer>>,
    /// The time when a client got the request, or when it was opened.
    since: Instant,
    /// Cancelled when the request is withdrawn without an answer.
    withdrawn: CancellationToken,
    /// The request was sent to a client, which works on it.
    is_sent: bool,
    /// The request was in an answer to a client, which repeats its request.
    is_shown: bool,
}

/// An answer of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedAnswer {
    pub(crate) value: Value,
    /// The time since the client got the request.
    pub(crate) took: Duration,
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    NoClient,
    Late,
    /// The client failed, with its reason.
    Failed(String),
}

/// A request to ask, with the server's own key if it has one.
pub(crate) type NewRequest<'a> = (Option<&'a str>, InputRequest);

impl PendingRequests {
    pub(crate) fn new(answer_time: Duration) -> Self {
        Self {
            open: Mutex::default(),
            own_keys: Mutex::default(),
            count: watch::Sender::new(0),
            answer_time,
        }
    }

    /// Changes with each new request.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Opens requests at once, and waits for the answers. Dropping the future withdraws them.
    pub(crate) async fn ask(
        &self,
        requests: Vec<NewRequest<'_>>,
    ) -> Vec<Result<TimedAnswer, NoAnswer>> {
        let mut waiting = Vec::new();
        {
            let mut open = self.open.lock();
            let mut count = *self.count.borrow();
            for (key, request) in requests {
                let (answer, answered) = oneshot::channel();
                count += 1;
                let key = key.filter(|key| self.takes(key));
                let key = key.map_or_else(|| format!("{NUMBERED}{count}"), str::to_owned);
                let request = PendingRequest {
                    request,
                    answer,
                    since: Instant::now(),
                    withdrawn: CancellationToken::new(),
                    is_sent: false,
                    is_shown: false,
                };
                open.insert(key.clone(), request);
                waiting.push((Withdraw(self, key), answered));
            }
            if !waiting.is_empty() {
                self.count.send_replace(count);
            }
        }
        let answers = waiting.into_iter().map(|(withdraw, answer)| async move {
            let _withdraw = withdraw;
            match tokio::time::timeout(self.answer_time, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_dropped)) => Err(NoAnswer::NoClient),
                Err(_late) => Err(NoAnswer::Late),
            }
        });
        join_all(answers).await
    }

    /// Marks the requests that this client can answer as sent, and returns them.
    pub(crate) fn send_all(&self, client: Offers) -> Vec<(String, InputRequest)> {
        self.marked(client, |request| request.is_sent = true)
    }

    /// Cancelled when this open request is withdrawn; `None` if it is not open.
    pub(crate) fn withdrawn(&self, key: &str) -> Option<CancellationToken> {
        let open = self.open.lock();
        open.get(key).map(|request| request.withdrawn.clone())
    }

    /// Marks the requests that this client can answer as shown, and returns them by key; `None`
    /// without such requests.
    pub(crate) fn show(&self, client: Offers) -> Option<InputRequests> {
        let shown = self.marked(client, |request| request.is_shown = true);
        (!shown.is_empty()).then(|| shown.into_iter().collect())
    }

    /// True if a request is open that this client can answer.
    pub(crate) fn can_be_answered(&self, client: Offers) -> bool {
        let open = self.open.lock();
        open.values().any(|request| request.is_for(client))
    }

    /// True if a request is open that was not sent to a client.
    pub(crate) fn has_unsent(&self) -> bool {
        self.open.lock().values().any(|request| !request.is_sent)
    }

    pub(crate) fn answer(&self, key: &str, answer: Result<Value, NoAnswer>) {
        if let Some(request) = self.open.lock().remove(key) {
            request.answered(answer);
        }
    }

    /// Answers the requests for this client with [`NoAnswer::NoClient`].
    pub(crate) fn refuse(&self, client: Offers) {
        let mut open = self.open.lock();
        open.retain(|_, request| !request.is_for(client));
    }

    /// Takes the answers to open requests, and ignores others.
    pub(crate) fn answer_all(&self, responses: InputResponses) {
        let mut open = self.open.lock();
        for (key, response) in responses {
            // The client saw it, and no other client works on it.
            let is_asked = |request: &PendingRequest| request.is_shown && !request.is_sent;
            if open.get(&key).is_some_and(is_asked)
                && let Some(request) = open.remove(&key)
            {
                request.answered(Ok(response));
            }
        }
    }

    /// True if a server's own key can be used. Each is used once in the run: a late answer must not
    /// match a later request.
    fn takes(&self, key: &str) -> bool {
        let is_plain = !key.is_empty() && label(key, MAX_KEY) == key;
        let mut keys = self.own_keys.lock();
        is_plain
            && !key.starts_with(NUMBERED)
            && keys.len() < MAX_KEYS
            && keys.insert(key.to_owned())
    }

    /// Marks the requests that this client can answer, and returns them.
    fn marked(
        &self,
        client: Offers,
        mark: impl Fn(&mut PendingRequest),
    ) -> Vec<(String, InputRequest)> {
        let mut open = self.open.lock();
        let fitting = open.iter_mut().filter(|(_, it)| it.is_for(client));
        let marked = fitting.map(|(key, it)| {
            if !it.is_sent && !it.is_shown {
                it.since = Instant::now();
            }
            mark(it);
            (key.clone(), it.request.clone())
        });
        marked.collect()
    }
}

impl PendingRequest {
    /// Gives the answer to the call, unless it was cancelled.
    fn answered(self, answer: Result<Value, NoAnswer>) {
        let took = self.since.elapsed();
        let answer = answer.map(|value| TimedAnswer { value, took });
        let _ = self.answer.send(answer);
    }

    /// True if this client can answer, and no client works on it.
    fn is_for(&self, client: Offers) -> bool {
        !self.is_sent && can_answer(client, &self.request)
    }
}

/// Withdraws a request when it is dropped.
struct Withdraw<'a>(&'a PendingRequests, String);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let request = self.0.open.lock().remove(&self.1);
        if let Some(request) = request {
            request.withdrawn.cancel();
        }
    }
}

#[cfg(test)]
mod tests;

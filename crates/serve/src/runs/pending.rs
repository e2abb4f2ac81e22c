//! Questions of a run that wait for the client's answer.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::caller::Offers;
use callgate::present::label;
use futures::future::join_all;
use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::client::can_answer;

/// The longest key of a server that is kept, in bytes.
const MAX_KEY: usize = 128;
/// The most keys that are remembered. Later requests get numbers.
const MAX_KEYS: usize = 1_000;

/// The requests of one run that have no answer yet. Their number is bounded by the run's calls.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    inner: Mutex<Inner>,
    /// The number of requests so far.
    count: watch::Sender<u64>,
    /// The time that each request waits.
    pub(crate) answer_time: Duration,
}

#[derive(Debug, Default)]
struct Inner {
    count: u64,
    /// By their keys in answers, which are unique in the run.
    open: BTreeMap<String, PendingRequest>,
    /// Keys that were used in the run: a late answer must not fit another request.
    keys: HashSet<String>,
}

#[derive(Debug)]
struct PendingRequest {
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, NoAnswer>>,
    /// The request was sent to a client, which works on it.
    is_sent: bool,
    /// The request was in an answer to a client, which comes again.
    is_shown: bool,
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// No client can answer.
    NoClient,
    /// No client answered in time.
    Late,
    /// The client failed, with its reason.
    Failed(String),
}

/// A request to ask, with the server's own key if it has one.
pub(crate) type NewRequest<'a> = (Option<&'a str>, InputRequest);

impl PendingRequests {
    pub(crate) fn new(answer_time: Duration) -> Self {
        Self {
            inner: Mutex::default(),
            count: watch::Sender::new(0),
            answer_time,
        }
    }

    /// Changes with each new request.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Opens requests at once, and waits for the answers. Dropping the future withdraws them.
    pub(crate) async fn ask(&self, requests: Vec<NewRequest<'_>>) -> Vec<Result<Value, NoAnswer>> {
        let mut waiting = Vec::new();
        let count = {
            let mut inner = self.lock();
            for (key, request) in requests {
                let (key, answer) = inner.open(key, request);
                waiting.push((Withdraw(self, key), answer));
            }
            inner.count
        };
        if !waiting.is_empty() {
            self.count.send_replace(count);
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
        let mut inner = self.lock();
        let sent = inner.unsent(client).map(|(key, request)| {
            request.is_sent = true;
            (key.clone(), request.request.clone())
        });
        sent.collect()
    }

    /// The requests for a client's next answer, by key; `None` if there are none.
    pub(crate) fn show(&self, client: Offers) -> Option<InputRequests> {
        let mut inner = self.lock();
        let requests = inner.unsent(client).map(|(key, request)| {
            request.is_shown = true;
            (key.clone(), request.request.clone())
        });
        Some(requests.collect()).filter(|requests: &InputRequests| !requests.is_empty())
    }

    /// True if a request is open that this client can answer.
    pub(crate) fn can_be_answered(&self, client: Offers) -> bool {
        self.lock().unsent(client).next().is_some()
    }

    /// True if a request is open that was not sent to a client.
    pub(crate) fn has_unsent(&self) -> bool {
        self.lock().open.values().any(|request| !request.is_sent)
    }

    /// Answers one request.
    pub(crate) fn answer(&self, key: &str, answer: Result<Value, NoAnswer>) {
        if let Some(request) = self.lock().open.remove(key) {
            // A call that was cancelled does not wait any more.
            let _ = request.answer.send(answer);
        }
    }

    /// Answers the requests for this client with [`NoAnswer::NoClient`].
    pub(crate) fn refuse(&self, client: Offers) {
        self.lock()
            .open
            .retain(|_, request| !request.is_for(client));
    }

    /// Takes the answers that fit, and ignores others. A request without an answer stays open.
    pub(crate) fn answer_all(&self, responses: InputResponses) {
        let mut inner = self.lock();
        for (key, response) in responses {
            // It was shown, and no other client works on it.
            let is_asked = |request: &PendingRequest| request.is_shown && !request.is_sent;
            if inner.open.get(&key).is_some_and(is_asked)
                && let Some(request) = inner.open.remove(&key)
            {
                let _ = request.answer.send(Ok(response));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn open(
        &mut self,
        key: Option<&str>,
        request: InputRequest,
    ) -> (String, oneshot::Receiver<Result<Value, NoAnswer>>) {
        let (answer, answered) = oneshot::channel();
        self.count += 1;
        let key = self.unused_key(key);
        let request = PendingRequest {
            request,
            answer,
            is_sent: false,
            is_shown: false,
        };
        self.open.insert(key.clone(), request);
        (key, answered)
    }

    /// The server's own key, if no other request of the run had it.
    fn unused_key(&mut self, key: Option<&str>) -> String {
        let (number, is_full) = (self.count, self.keys.len() >= MAX_KEYS);
        let is_usable = |key: &&str| {
            !is_full && (1..=MAX_KEY).contains(&key.len()) && label(key, MAX_KEY) == **key
        };
        let own = key.filter(is_usable);
        let mut key = own.map_or_else(|| format!("question-{number}"), str::to_owned);
        while self.keys.contains(&key) {
            key += &format!("-{number}");
        }
        if !is_full {
            self.keys.insert(key.clone());
        }
        key
    }

    fn unsent(&mut self, client: Offers) -> impl Iterator<Item = (&String, &mut PendingRequest)> {
        let open = self.open.iter_mut();
        open.filter(move |(_, request)| request.is_for(client))
    }
}

impl PendingRequest {
    /// True if this client can answer, and no client works on it.
    fn is_for(&self, client: Offers) -> bool {
        !self.is_sent && can_answer(client, &self.request)
    }
}

/// Withdraws a request when it is dropped.
struct Withdraw<'a>(&'a PendingRequests, String);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.0.lock().open.remove(&self.1);
    }
}

#[cfg(test)]
mod tests;

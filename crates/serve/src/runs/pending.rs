//! Questions of a run that wait for the client's answer.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use callgate::faces::Offers;
use callgate_text::label;
use futures::future::join_all;
use parking_lot::Mutex;
use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::client::can_answer;

/// The limit of a server's key, in bytes. Requests with longer keys get numbers.
const MAX_KEY: usize = 128;
/// The limit of keys. Later requests get numbers.
const MAX_KEYS: usize = 1_000;

/// The requests of one run that have no answer yet. Their number is bounded by the run's calls.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    requests: Mutex<OpenRequests>,
    /// The number of requests so far.
    count: watch::Sender<u64>,
    /// The time that each request waits.
    pub(crate) answer_time: Duration,
}

#[derive(Debug, Default)]
struct OpenRequests {
    count: u64,
    /// By their keys in answers, which are unique in the run.
    by_key: BTreeMap<String, PendingRequest>,
    /// All keys of the run: a late answer must not match a later request.
    keys: HashSet<String>,
}

#[derive(Debug)]
struct PendingRequest {
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, NoAnswer>>,
    /// The request was sent to a client, which works on it.
    is_sent: bool,
    /// The request was in an answer to a client, which repeats its request.
    is_shown: bool,
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
            requests: Mutex::default(),
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
            let mut open = self.requests.lock();
            for (key, request) in requests {
                let (key, answer) = open.add(key, request);
                waiting.push((Withdraw(self, key), answer));
            }
            open.count
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
        let mut open = self.requests.lock();
        let sent = open.unsent(client).map(|(key, request)| {
            request.is_sent = true;
            (key.clone(), request.request.clone())
        });
        sent.collect()
    }

    /// Marks the requests that this client can answer as shown, and returns them by key; `None`
    /// without such requests.
    pub(crate) fn show(&self, client: Offers) -> Option<InputRequests> {
        let mut open = self.requests.lock();
        let requests = open.unsent(client).map(|(key, request)| {
            request.is_shown = true;
            (key.clone(), request.request.clone())
        });
        Some(requests.collect()).filter(|requests: &InputRequests| !requests.is_empty())
    }

    /// True if a request is open that this client can answer.
    pub(crate) fn can_be_answered(&self, client: Offers) -> bool {
        self.requests.lock().unsent(client).next().is_some()
    }

    /// True if a request is open that was not sent to a client.
    pub(crate) fn has_unsent(&self) -> bool {
        self.requests
            .lock()
            .by_key
            .values()
            .any(|request| !request.is_sent)
    }

    pub(crate) fn answer(&self, key: &str, answer: Result<Value, NoAnswer>) {
        if let Some(request) = self.requests.lock().by_key.remove(key) {
            // A cancelled call no longer waits.
            let _ = request.answer.send(answer);
        }
    }

    /// Answers the requests for this client with [`NoAnswer::NoClient`].
    pub(crate) fn refuse(&self, client: Offers) {
        self.requests
            .lock()
            .by_key
            .retain(|_, request| !request.is_for(client));
    }

    /// Takes the answers to open requests, and ignores others.
    pub(crate) fn answer_all(&self, responses: InputResponses) {
        let mut open = self.requests.lock();
        for (key, response) in responses {
            // The client saw it, and no other client works on it.
            let is_asked = |request: &PendingRequest| request.is_shown && !request.is_sent;
            if open.by_key.get(&key).is_some_and(is_asked)
                && let Some(request) = open.by_key.remove(&key)
            {
                let _ = request.answer.send(Ok(response));
            }
        }
    }
}

impl OpenRequests {
    fn add(
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
        self.by_key.insert(key.clone(), request);
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
        let open = self.by_key.iter_mut();
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
        self.0.requests.lock().by_key.remove(&self.1);
    }
}

#[cfg(test)]
mod tests;

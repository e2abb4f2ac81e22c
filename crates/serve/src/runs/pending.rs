//! Questions of a run that wait for the client's answer.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate::caller::Offers;
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
    /// The number of the last request.
    last: watch::Sender<u64>,
    /// The time that each request waits.
    pub(crate) answer_time: Duration,
}

#[derive(Debug, Default)]
struct Inner {
    count: u64,
    open: BTreeMap<u64, PendingRequest>,
    /// Keys that were used in the run: a late answer must not fit another request.
    keys: HashSet<String>,
}

#[derive(Debug)]
struct PendingRequest {
    /// The request's key in answers, unique in the run.
    key: String,
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
            last: watch::Sender::new(0),
            answer_time,
        }
    }

    /// Changes with each new request.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Opens requests at once, and waits for the answers. Dropping the future withdraws them.
    pub(crate) async fn ask(&self, requests: Vec<NewRequest<'_>>) -> Vec<Result<Value, NoAnswer>> {
        let waiting: Vec<_> = {
            let mut inner = self.lock();
            let opened = requests
                .into_iter()
                .map(|(key, request)| inner.open(key, request));
            opened
                .map(|(number, answer)| (Withdraw(self, number), answer))
                .collect()
        };
        if let Some((Withdraw(_, last), _)) = waiting.last() {
            self.last.send_replace(*last);
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
    pub(crate) fn send_all(&self, client: Offers) -> Vec<(u64, InputRequest)> {
        let mut inner = self.lock();
        let numbers = inner.unsent(client);
        let sent = numbers.into_iter().filter_map(|number| {
            let request = inner.open.get_mut(&number)?;
            request.is_sent = true;
            Some((number, request.request.clone()))
        });
        sent.collect()
    }

    /// The requests for a client's next answer, by key; `None` if there are none.
    pub(crate) fn show(&self, client: Offers) -> Option<InputRequests> {
        let mut inner = self.lock();
        let numbers = inner.unsent(client);
        let requests = numbers.iter().filter_map(|number| {
            let request = inner.open.get_mut(number)?;
            request.is_shown = true;
            Some((request.key.clone(), request.request.clone()))
        });
        (!numbers.is_empty()).then(|| requests.collect())
    }

    /// True if a request is open that this client can answer.
    pub(crate) fn can_be_answered(&self, client: Offers) -> bool {
        !self.lock().unsent(client).is_empty()
    }

    /// True if a request is open that was not sent to a client.
    pub(crate) fn has_unsent(&self) -> bool {
        self.lock().open.values().any(|request| !request.is_sent)
    }

    /// Answers one request.
    pub(crate) fn answer(&self, number: u64, answer: Result<Value, NoAnswer>) {
        if let Some(request) = self.lock().open.remove(&number) {
            // A call that was cancelled does not wait any more.
            let _ = request.answer.send(answer);
        }
    }

    /// Answers the requests for this client with [`NoAnswer::NoClient`].
    pub(crate) fn refuse(&self, client: Offers) {
        let numbers = self.lock().unsent(client);
        for number in numbers {
            self.answer(number, Err(NoAnswer::NoClient));
        }
    }

    /// Takes the answers that fit, and ignores others. A request without an answer stays open.
    pub(crate) fn answer_all(&self, mut responses: InputResponses) {
        let mut inner = self.lock();
        let open: Vec<u64> = inner.open.keys().copied().collect();
        for number in open {
            if let Some(response) = inner.response(number, &mut responses)
                && let Some(request) = inner.open.remove(&number)
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
    ) -> (u64, oneshot::Receiver<Result<Value, NoAnswer>>) {
        let (answer, answered) = oneshot::channel();
        self.count += 1;
        let number = self.count;
        let request = PendingRequest {
            key: self.unused_key(key, number),
            request,
            answer,
            is_sent: false,
            is_shown: false,
        };
        self.open.insert(number, request);
        (number, answered)
    }

    /// The server's own key, if no other request of the run had it.
    fn unused_key(&mut self, key: Option<&str>, number: u64) -> String {
        let is_full = self.keys.len() >= MAX_KEYS;
        let own = key.filter(|key| !is_full && (1..=MAX_KEY).contains(&key.len()));
        let mut key = own.map_or_else(|| format!("question-{number}"), str::to_owned);
        while self.keys.contains(&key) {
            key += &format!("-{number}");
        }
        if !is_full {
            self.keys.insert(key.clone());
        }
        key
    }

    /// The numbers of the open requests that this client can answer and no client works on.
    fn unsent(&self, client: Offers) -> Vec<u64> {
        let fits =
            |request: &PendingRequest| !request.is_sent && can_answer(client, &request.request);
        let open = self.open.iter().filter(|(_, request)| fits(request));
        open.map(|(number, _)| *number).collect()
    }

    /// The answer to this request, if it was shown and no other client works on it.
    fn response(&self, number: u64, responses: &mut InputResponses) -> Option<Value> {
        let request = self.open.get(&number)?;
        let is_asked = request.is_shown && !request.is_sent;
        is_asked.then(|| responses.remove(&request.key)).flatten()
    }
}

/// Withdraws a request when it is dropped.
struct Withdraw<'a>(&'a PendingRequests, u64);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.0.lock().open.remove(&self.1);
    }
}

#[cfg(test)]
mod tests;

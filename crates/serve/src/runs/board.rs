//! What a run wants of its client, until somebody takes it there and answers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::client::Can;

/// The longest key of a server's that is kept, in bytes.
const MOST_KEY_BYTES: usize = 128;
/// How many keys are remembered. Beyond, each has its number in it.
const MOST_KEYS: usize = 1_000;
/// How many wishes are remembered that went away while a client was to come
/// again for them. The oldest go first.
const MOST_MISSED: usize = 1_000;

/// The wishes of one run that nobody has answered. Bounded by the calls that may
/// be under way.
#[derive(Debug)]
pub(crate) struct Board {
    wishes: Mutex<Wishes>,
    /// The number of the last wish.
    last: watch::Sender<u64>,
    answer_time: Duration,
}

#[derive(Debug, Default)]
struct Wishes {
    count: u64,
    open: BTreeMap<u64, Wish>,
    /// Keys that there were before, so that an answer that comes late is none to
    /// something else.
    keys: HashSet<String>,
    /// Those that a client has a state for, and that are gone without an answer
    /// that came with a state.
    missed: BTreeSet<u64>,
}

#[derive(Debug)]
struct Wish {
    /// What it is called in answers that ask for it. No other wish of the run is.
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, Unanswered>>,
    /// Whether a client was sent the request, and is at it.
    is_asked: bool,
    /// Whether a client has a state to come again with for it.
    is_given: bool,
}

/// Why a wish has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// There is nobody who could.
    Nobody,
    /// Nobody did in time.
    Late,
    /// The client could not do it, and said why.
    Failed(String),
}

/// Why answers to what was shown are not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// All of it was answered before.
    Used,
    /// It is wanted, and whoever answers did not announce that it can.
    Unannounced,
}

/// Something to put on a board: the key that a server has for it, if it has one,
/// and what is asked for.
pub(crate) type Wanted<'a> = (Option<&'a str>, InputRequest);

impl Board {
    /// A board on which each wish waits for so long.
    pub(crate) fn new(answer_time: Duration) -> Self {
        Self {
            wishes: Mutex::default(),
            last: watch::Sender::new(0),
            answer_time,
        }
    }

    /// How long a wish waits for its answer.
    pub(crate) fn answer_time(&self) -> Duration {
        self.answer_time
    }

    /// Hears of each wish.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Puts all of this up at once, and waits for the answers. Dropping it takes
    /// it down.
    pub(crate) async fn wish(&self, wanted: Vec<Wanted<'_>>) -> Vec<Result<Value, Unanswered>> {
        let (last, waiting): (Option<u64>, Vec<_>) = {
            let mut wishes = self.lock();
            let waiting = wanted.into_iter().map(|(key, request)| {
                let (number, answered) = wishes.put_up(key, request);
                let board = self;
                (TakeDown { board, number }, answered)
            });
            let waiting = waiting.collect();
            (wishes.open.keys().next_back().copied(), waiting)
        };
        if let Some(last) = last {
            self.last.send_replace(last);
        }
        let answers = waiting.into_iter().map(|(down, answered)| async move {
            let _down = down;
            match tokio::time::timeout(self.answer_time, answered).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_dropped)) => Err(Unanswered::Nobody),
                Err(_late) => Err(Unanswered::Late),
            }
        });
        join_all(answers).await
    }

    /// Takes what this client is to be sent as requests.
    pub(crate) fn take(&self, can: Can) -> Vec<(u64, InputRequest)> {
        let mut wishes = self.lock();
        let open = wishes.open.iter_mut();
        let taken = open.filter(|(_, wish)| !wish.is_asked && can.answer(&wish.request));
        taken
            .map(|(number, wish)| {
                wish.is_asked = true;
                (*number, wish.request.clone())
            })
            .collect()
    }

    /// What there is for a client's next answers, by number and by key; `None` if
    /// there is nothing.
    pub(crate) fn show(&self, can: Can) -> Option<(Vec<u64>, InputRequests)> {
        let wishes = self.lock();
        let shown = wishes
            .open
            .iter()
            .filter(|(_, wish)| !wish.is_asked && can.answer(&wish.request));
        let (numbers, requests): (Vec<u64>, InputRequests) = shown
            .map(|(number, wish)| (*number, (wish.key.clone(), wish.request.clone())))
            .unzip();
        (!numbers.is_empty()).then_some((numbers, requests))
    }

    /// Takes note that a client is given a state to come again with for these.
    /// Whether one of them is wanted still, so that there is something to come for.
    pub(crate) fn give(&self, numbers: &[u64]) -> bool {
        let mut wishes = self.lock();
        let mut is_wanted = false;
        for number in numbers {
            if let Some(wish) = wishes.open.get_mut(number)
                && !wish.is_asked
            {
                wish.is_given = true;
                is_wanted = true;
            }
        }
        is_wanted
    }

    /// Whether a client has a state with which nobody has answered: it may come
    /// again, be it for the end of the run.
    pub(crate) fn has_given(&self) -> bool {
        let wishes = self.lock();
        !wishes.missed.is_empty() || wishes.open.values().any(|wish| wish.is_given)
    }

    /// Whether something is wanted that no client is at.
    pub(crate) fn wants(&self) -> bool {
        self.lock().open.values().any(|wish| !wish.is_asked)
    }

    /// Hands over one answer.
    pub(crate) fn answer(&self, number: u64, answer: Result<Value, Unanswered>) {
        let wish = self.lock().take_down(number);
        if let Some(wish) = wish {
            // A call that was cancelled meanwhile waits for nothing.
            let _gone = wish.answer.send(answer);
        }
    }

    /// Says of what is shown that there is nobody to answer.
    pub(crate) fn refuse(&self, can: Can) {
        let mut wishes = self.lock();
        let open = wishes.open.iter();
        let refused = open.filter(|(_, wish)| !wish.is_asked && can.answer(&wish.request));
        let refused: Vec<u64> = refused.map(|(number, _)| *number).collect();
        for number in refused {
            if let Some(wish) = wishes.take_down(number) {
                let _gone = wish.answer.send(Err(Unanswered::Nobody));
            }
        }
    }

    /// Hands over the answers that came with a state for these. What has none
    /// stays, to be asked for again. Where all that nobody has answered is gone, or
    /// another client is at it, the answers are for nothing: whoever came hears what
    /// has become of the run.
    ///
    /// # Errors
    ///
    /// [`Untaken`], and no answer is handed over.
    pub(crate) fn answer_given(
        &self,
        numbers: &[u64],
        can: Can,
        mut responses: InputResponses,
    ) -> Result<(), Untaken> {
        let mut wishes = self.lock();
        let open = numbers.iter().filter_map(|number| wishes.open.get(number));
        let mut free = open.filter(|wish| !wish.is_asked).peekable();
        if free.peek().is_none() {
            let has_no_answer =
                |number| wishes.missed.contains(number) || wishes.open.contains_key(number);
            return match numbers.iter().any(has_no_answer) {
                true => Ok(()),
                false => Err(Untaken::Used),
            };
        }
        if !free.any(|wish| can.answer(&wish.request)) {
            return Err(Untaken::Unannounced);
        }
        for number in numbers {
            if let Some(response) = wishes.response(*number, &mut responses)
                && let Some(wish) = wishes.open.remove(number)
            {
                let _gone = wish.answer.send(Ok(response));
            }
        }
        Ok(())
    }

    /// Hands over those of the answers that fit; others are nothing (the tasks
    /// extension has it so).
    pub(crate) fn answer_any(&self, mut responses: InputResponses) {
        let mut wishes = self.lock();
        let open: Vec<u64> = wishes.open.keys().copied().collect();
        for number in open {
            if let Some(response) = wishes.response(number, &mut responses)
                && let Some(wish) = wishes.take_down(number)
            {
                let _gone = wish.answer.send(Ok(response));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wishes> {
        // Nothing is left half done where a panic could come.
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wishes {
    fn put_up(
        &mut self,
        key: Option<&str>,
        request: InputRequest,
    ) -> (u64, oneshot::Receiver<Result<Value, Unanswered>>) {
        let (answer, answered) = oneshot::channel();
        self.count += 1;
        let number = self.count;
        let wish = Wish {
            key: self.key(key, number),
            request,
            answer,
            is_asked: false,
            is_given: false,
        };
        self.open.insert(number, wish);
        (number, answered)
    }

    /// The server's own key where no other wish has it or had it.
    fn key(&mut self, own: Option<&str>, number: u64) -> String {
        let own = own.filter(|own| (1..=MOST_KEY_BYTES).contains(&own.len()));
        let mut key = own.map_or_else(|| format!("question-{number}"), str::to_owned);
        let is_full = self.keys.len() >= MOST_KEYS;
        if is_full && own.is_some() {
            key.push_str(&format!("-{number}"));
        }
        let is_open = |key: &str| self.open.values().any(|wish| wish.key == key);
        while self.keys.contains(&key) || is_open(&key) {
            key.push_str(&format!("-{number}"));
        }
        if !is_full {
            self.keys.insert(key.clone());
        }
        key
    }

    /// The answer to this one that is among them, unless another client is at it.
    fn response(&self, number: u64, responses: &mut InputResponses) -> Option<Value> {
        let wish = self.open.get(&number).filter(|wish| !wish.is_asked)?;
        responses.remove(&wish.key)
    }

    /// Takes one down that is not answered with a state. Whoever has a state for it
    /// may come all the same.
    fn take_down(&mut self, number: u64) -> Option<Wish> {
        let wish = self.open.remove(&number)?;
        if wish.is_given {
            self.missed.insert(number);
            if self.missed.len() > MOST_MISSED {
                self.missed.pop_first();
            }
        }
        Some(wish)
    }
}

/// Takes a wish down that nobody waits for any more.
struct TakeDown<'a> {
    board: &'a Board,
    number: u64,
}

impl Drop for TakeDown<'_> {
    fn drop(&mut self) {
        self.board.lock().take_down(self.number);
    }
}

#[cfg(test)]
mod tests;

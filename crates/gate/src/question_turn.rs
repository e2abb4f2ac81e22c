//! The questions of one run, asked one at a time.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard};

use crate::ask::Answer;
use crate::pending_call::PendingCall;

/// Lets the calls of one run ask one after the other. A call that waited while the same call was
/// refused is refused, too.
#[derive(Default)]
pub(crate) struct QuestionTurns {
    /// The last refusal or dismissal and its time, by the hash of function and arguments.
    refusals: Mutex<HashMap<u64, (Instant, Answer)>>,
    hasher: RandomState,
}

/// The turn of one call to ask. The others wait until it is dropped.
pub(crate) struct QuestionTurn<'a> {
    refusals: MutexGuard<'a, HashMap<u64, (Instant, Answer)>>,
    key: u64,
    waiting_since: Instant,
}

impl QuestionTurns {
    /// Waits for the turn of a call.
    pub(crate) async fn take(&self, call: &PendingCall<'_>) -> QuestionTurn<'_> {
        let waiting_since = Instant::now();
        let key = (&call.tool.function, call.arguments.text());
        QuestionTurn {
            key: self.hasher.hash_one(key),
            refusals: self.refusals.lock().await,
            waiting_since,
        }
    }
}

impl QuestionTurn<'_> {
    /// The refusal of the same call while this one waited.
    pub(crate) fn refusal(&self) -> Option<Answer> {
        let (refused, answer) = self.refusals.get(&self.key)?;
        (*refused > self.waiting_since).then_some(*answer)
    }

    /// Refuses the same calls that wait.
    pub(crate) fn refuse(&mut self, answer: Answer) {
        self.refusals.insert(self.key, (Instant::now(), answer));
    }
}

//! The questions of one run, asked one at a time.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard};

use crate::ask::Answer;
use crate::pending_call::PendingCall;

/// Lets the calls of one run ask one after the other. A call that waited while the same call was
/// refused is refused, too, as is every later call of a function that was refused for the run.
#[derive(Default)]
pub(crate) struct QuestionTurns {
    /// The last refusal or dismissal and its time, by the hash of function and arguments; by the
    /// hash of the function alone for [`Answer::DenyRun`].
    refusals: Mutex<HashMap<u64, (Instant, Answer)>>,
    hasher: RandomState,
}

/// The turn of one call to ask. The others wait until it is dropped.
pub(crate) struct QuestionTurn<'a> {
    refusals: MutexGuard<'a, HashMap<u64, (Instant, Answer)>>,
    key: u64,
    function: u64,
    waiting_since: Instant,
}

impl QuestionTurns {
    /// Waits for the turn of a call.
    pub(crate) async fn take(&self, call: &PendingCall<'_>) -> QuestionTurn<'_> {
        let waiting_since = Instant::now();
        let function = &call.tool.function;
        QuestionTurn {
            key: self.hasher.hash_one((function, call.arguments.text())),
            function: self.hasher.hash_one(function),
            refusals: self.refusals.lock().await,
            waiting_since,
        }
    }
}

impl QuestionTurn<'_> {
    /// The refusal of the same call while this one waited, or of the function for the run.
    pub(crate) fn refusal(&self) -> Option<Answer> {
        if let Some((_, answer)) = self.refusals.get(&self.function) {
            return Some(*answer);
        }
        let (refused, answer) = self.refusals.get(&self.key)?;
        (*refused > self.waiting_since).then_some(*answer)
    }

    /// Refuses the same calls that wait, or all later calls of the function.
    pub(crate) fn refuse(&mut self, answer: Answer) {
        let key = match answer {
            Answer::DenyRun => self.function,
            _ => self.key,
        };
        self.refusals.insert(key, (Instant::now(), answer));
    }
}

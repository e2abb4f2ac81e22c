//! The open questions of one run, and the answers that cover calls with other questions.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::ask::Answer;
use crate::pending_call::PendingCall;
use crate::ruling::{Details, Ruling};

/// The questions of one run, which are open at the same time. Answers are applied one after the
/// other. After one that may cover other calls, those are decided anew.
#[derive(Default)]
pub(crate) struct OpenQuestions {
    /// The last such answer, by the hash of the function; by the hash of function and arguments
    /// for a refusal or dismissal of equal calls.
    answers: Mutex<HashMap<u64, Covering>>,
    /// The number of such answers so far.
    count: watch::Sender<u64>,
    hasher: RandomState,
}

/// An answer that may cover other calls.
struct Covering {
    number: u64,
    answer: Answer,
    details: Details,
}

/// The open question about one call.
pub(crate) struct OpenQuestion<'a> {
    all: &'a OpenQuestions,
    /// The number of the call in the run.
    ordinal: usize,
    key: u64,
    function: u64,
    /// The number of covering answers before the question.
    since: u64,
    changes: watch::Receiver<u64>,
}

impl OpenQuestions {
    /// Opens the question about a call.
    pub(crate) fn open(&self, call: &PendingCall<'_>) -> OpenQuestion<'_> {
        let function = &call.tool.function;
        let changes = self.count.subscribe();
        let since = *changes.borrow();
        OpenQuestion {
            all: self,
            ordinal: call.ordinal,
            key: self.hasher.hash_one((function, call.arguments.text())),
            function: self.hasher.hash_one(function),
            since,
            changes,
        }
    }
}

impl OpenQuestion<'_> {
    /// Waits for the next answer to a different question that may cover this call.
    pub(crate) async fn others(&mut self) {
        if self.changes.changed().await.is_err() {
            // The run, which has the sender, is gone.
            std::future::pending::<()>().await;
        }
    }

    /// Takes the run's turn to apply an answer. It must not be held for long.
    pub(crate) fn turn(&self) -> AnswerTurn<'_> {
        AnswerTurn {
            question: self,
            answers: self.all.answers.lock(),
        }
    }
}

/// The turn of one call to apply an answer. Other answers wait until it is dropped.
pub(crate) struct AnswerTurn<'a> {
    question: &'a OpenQuestion<'a>,
    answers: MutexGuard<'a, HashMap<u64, Covering>>,
}

impl AnswerTurn<'_> {
    /// Completes a ruling with the refusal of the same call since its question was opened, or of
    /// the function for the run; `None` without one.
    pub(crate) fn refused(&self, ruling: Ruling) -> Option<Ruling> {
        let question = self.question;
        let of_run = self.answers.get(&question.function);
        let of_run = of_run.filter(|it| it.answer == Answer::DenyRun);
        let of_call = || {
            self.answers
                .get(&question.key)
                .filter(|it| it.number > question.since)
        };
        of_run.or_else(of_call).map(|it| it.complete(ruling))
    }

    /// Completes a ruling that allows the call with the answer that covers it, if one does.
    pub(crate) fn covered(&self, ruling: Ruling) -> Ruling {
        let answer = self.answers.get(&self.question.function);
        match answer.filter(|it| it.answer.allows() && it.number > self.question.since) {
            Some(answer) => answer.complete(ruling),
            None => ruling,
        }
    }

    /// Has the calls with other questions decided anew after an answer that may cover them.
    pub(crate) fn cover(mut self, answer: Answer, details: &Details) {
        let question = self.question;
        let key = match answer {
            Answer::Deny | Answer::Dismissed => question.key,
            _ => question.function,
        };
        let number = *question.all.count.borrow() + 1;
        let details = Details {
            via: Some(format!("question about call {}", question.ordinal)),
            ..details.clone()
        };
        let covering = Covering {
            number,
            answer,
            details,
        };
        self.answers.insert(key, covering);
        question.all.count.send_replace(number);
    }
}

impl Covering {
    fn complete(&self, ruling: Ruling) -> Ruling {
        Ruling {
            answer: Some(self.answer),
            details: self.details.clone(),
            ..ruling
        }
    }
}

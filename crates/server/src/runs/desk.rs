//! Where what a run wants of its client goes: questions about calls, what
//! servers ask for while they work on one, and how far they are.

use std::sync::Arc;

use callgate::{Answer, Asker, Question, Root};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::InputRequest;
use serde_json::Value;

use super::board::Unanswered;
use super::client::Can;
use super::question;
use super::run::Run;

/// The desk of one run.
pub(crate) struct Desk {
    /// What the client could do that began the run.
    pub(crate) can: Can,
    /// The folders that it named, if it names any.
    pub(crate) roots: Vec<Root>,
    pub(crate) run: Arc<Run>,
}

impl Desk {
    /// Has a client answer this: one that waits for the run, or the next that
    /// does.
    pub(crate) async fn wish(&self, request: InputRequest) -> Result<Value, Unanswered> {
        let answer = self.run.board.wish(request).await;
        if answer == Err(Unanswered::Late) && self.run.nobody_came() {
            // Nothing goes on that waited for it: the run's end is near.
            return std::future::pending().await;
        }
        answer
    }
}

impl Asker for Desk {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        async move {
            let form = question::form(&question).filter(|_| self.can.form);
            let Some(form) = form else {
                return Answer::Nobody;
            };
            match self.wish(form).await {
                Ok(result) => question::answer(&result),
                Err(Unanswered::Nobody | Unanswered::Late) => Answer::Nobody,
                Err(Unanswered::Failed(reason)) => {
                    tracing::debug!(reason, "the client could not ask its user");
                    Answer::Nobody
                }
            }
        }
        .boxed()
    }
}

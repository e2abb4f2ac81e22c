//! Where what a run wants of its client goes: questions about calls, what
//! servers ask for while they work on one, and how far they are.

use std::sync::{Arc, MutexGuard};

use callgate::{Answer, Asker, LogLevel, Question, Root};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;

use super::board::{Unanswered, Wanted};
use super::client::{Can, Client};
use super::question;
use super::roots::Folders;
use super::run::Run;

/// The desk of one run.
pub(crate) struct Desk {
    /// What the client could do that began the run.
    pub(crate) can: Can,
    /// The least important log messages that it hears, if it hears any.
    pub(crate) logs: Option<LogLevel>,
    /// The folders that it names.
    folders: Folders,
    pub(crate) run: Arc<Run>,
}

impl Desk {
    pub(crate) fn new(client: &Client, folders: Folders, run: &Arc<Run>) -> Arc<Self> {
        Arc::new(Self {
            can: client.can,
            logs: client.logs,
            folders,
            run: Arc::clone(run),
        })
    }

    pub(crate) fn folders(&self) -> MutexGuard<'_, Option<Vec<Root>>> {
        self.folders.named()
    }

    /// Has a client answer all this: one that waits for the run, or the next that
    /// does.
    pub(crate) async fn wish(&self, wanted: Vec<Wanted<'_>>) -> Vec<Result<Value, Unanswered>> {
        let answers = self.run.board.wish(wanted).await;
        if answers.contains(&Err(Unanswered::Late)) && self.run.nobody_came() {
            // Nothing goes on that waited for it: the run's end is near.
            return std::future::pending().await;
        }
        answers
    }
}

impl Asker for Desk {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        async move {
            let form = question::form(&question).filter(|_| self.can.form);
            let Some(form) = form else {
                return Answer::Nobody;
            };
            match self.wish(vec![(None, form)]).await.pop() {
                Some(Ok(result)) => question::answer(&question, &result),
                None | Some(Err(Unanswered::Nobody)) => Answer::Nobody,
                Some(Err(Unanswered::Late)) => Answer::Late,
                Some(Err(Unanswered::Failed(reason))) => {
                    tracing::debug!(reason, "the client could not ask its user");
                    Answer::Nobody
                }
            }
        }
        .boxed()
    }
}

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
    /// does. Once the run has ended there is nobody.
    pub(crate) async fn wish(&self, wanted: Vec<Wanted<'_>>) -> Vec<Result<Value, Unanswered>> {
        let nobody = vec![Err(Unanswered::Nobody); wanted.len()];
        let mut ended = self.run.follow();
        let answered = async {
            let answers = self.run.board.wish(wanted).await;
            if answers.contains(&Err(Unanswered::Late)) && self.run.nobody_came() {
                // Nothing goes on in the run that waited for it: its end is near.
                return std::future::pending().await;
            }
            answers
        };
        tokio::select! {
            biased;
            // What asks on may be no part of the run, such as a server's own request.
            _ = ended.wait_for(Option::is_some) => nobody,
            answers = answered => answers,
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::super::outcome::Outcome;
    use super::*;

    #[tokio::test]
    async fn what_nobody_answers_in_time_waits_for_the_end_of_its_run_and_no_longer() {
        let (hour, cancel) = (Duration::from_secs(3600), CancellationToken::new());
        let run = Run::new(Duration::ZERO, hour, cancel).expect("random bytes");
        let desk = Desk {
            can: Can::default(),
            logs: None,
            folders: Folders::none(),
            run: Arc::new(run),
        };
        let request = json!({ "method": "roots/list" });
        let request = serde_json::from_value(request).expect("a request");
        let mut wish = Box::pin(desk.wish(vec![(None, request)]));
        while !desk.run.is_cancelled() {
            assert!(futures::poll!(&mut wish).is_pending());
            tokio::task::yield_now().await;
        }
        assert!(futures::poll!(&mut wish).is_pending());
        desk.run.end(Outcome::lost());
        assert_eq!(wish.await, [Err(Unanswered::Nobody)]);
    }
}

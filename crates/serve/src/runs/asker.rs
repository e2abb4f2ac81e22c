//! The asker of a run: questions about calls go to the run's client.

use std::sync::Arc;

use callgate::faces::{LogLevel, Offers, Root};
use callgate::question::Reply;
use callgate::{Answer, Asker, Question};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::MutexGuard;
use serde_json::Value;

use super::client::Client;
use super::pending::{NewRequest, NoAnswer, TimedAnswer};
use super::question;
use super::roots::Folders;
use super::served_run::ServedRun;

/// The client of one run, for the gate's questions and for servers' requests.
pub(crate) struct ClientAsker {
    /// The capabilities of the client that started the run.
    pub(crate) capabilities: Offers,
    /// True if its forms can have choices with titles.
    has_titles: bool,
    /// The lowest level of log messages that the client wants.
    pub(crate) logs: Option<LogLevel>,
    /// The largest output that the client shows to its model whole, in bytes, if it is known.
    pub(crate) max_output: Option<u64>,
    /// True if structured content would replace the text that the model reads.
    pub(crate) replaces_text: bool,
    /// The client's name and version.
    pub(crate) name: Option<Arc<str>>,
    folders: Folders,
    pub(crate) run: Arc<ServedRun>,
}

impl ClientAsker {
    pub(crate) fn new(client: &Client, folders: Folders, run: &Arc<ServedRun>) -> Arc<Self> {
        Arc::new(Self {
            capabilities: client.capabilities,
            has_titles: client.has_titles,
            logs: client.logs,
            max_output: client.max_output,
            replaces_text: client.replaces_text,
            name: client.name.clone(),
            folders,
            run: Arc::clone(run),
        })
    }

    /// The folders that the client has named.
    pub(crate) fn folders(&self) -> MutexGuard<'_, Option<Vec<Root>>> {
        self.folders.named()
    }

    /// Waits until a client of the run, now or later, has answered all requests. After the run's end
    /// there is no client.
    pub(crate) async fn request(
        &self,
        requests: Vec<NewRequest<'_>>,
    ) -> Vec<Result<Value, NoAnswer>> {
        let answers = self.request_timed(requests).await.into_iter();
        answers.map(|answer| Ok(answer?.value)).collect()
    }

    /// As [`Self::request`], with the time that each answer took.
    async fn request_timed(
        &self,
        requests: Vec<NewRequest<'_>>,
    ) -> Vec<Result<TimedAnswer, NoAnswer>> {
        let no_client = vec![Err(NoAnswer::NoClient); requests.len()];
        let mut ended = self.run.subscribe();
        let answered = async {
            let answers = self.run.pending.ask(requests).await;
            if answers.contains(&Err(NoAnswer::Late)) && self.run.answer_is_late() {
                // The run was cancelled and ends soon.
                return std::future::pending().await;
            }
            answers
        };
        tokio::select! {
            biased;
            // A server's own request may outlive the run.
            _ = ended.wait_for(Option::is_some) => no_client,
            answers = answered => answers,
        }
    }
}

impl Asker for ClientAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        async move {
            let form = question::form(&question, self.has_titles);
            let form = form.filter(|_| self.capabilities.form);
            let Some(form) = form else {
                return Answer::NoAsker.into();
            };
            let _asking = self.run.progress.asking(question::about(&question));
            let answer = match self.request_timed(vec![(None, form)]).await.pop() {
                Some(Ok(TimedAnswer { value, took })) => {
                    let mut reply = Reply::from(question::answer(&question, &value, took));
                    reply.took = Some(took);
                    return reply;
                }
                None | Some(Err(NoAnswer::NoClient)) => Answer::Failed,
                Some(Err(NoAnswer::Late)) => Answer::Late,
                Some(Err(NoAnswer::Failed(reason))) => {
                    tracing::debug!(reason, "the client could not ask its user");
                    Answer::Failed
                }
            };
            answer.into()
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
    use super::super::resume::Purpose;
    use super::*;

    #[tokio::test]
    async fn a_late_answer_ends_the_run() {
        let (hour, cancel) = (Duration::from_secs(3600), CancellationToken::new());
        let purpose = Purpose::new(Purpose::SCRIPT, "");
        let run = ServedRun::new(purpose, Duration::ZERO, hour, cancel);
        let asker = ClientAsker {
            capabilities: Offers::default(),
            has_titles: true,
            logs: None,
            max_output: None,
            replaces_text: false,
            name: None,
            folders: Folders::none(),
            run: Arc::new(run),
        };
        let request = json!({ "method": "roots/list" });
        let request = serde_json::from_value(request).expect("a request");
        let mut answers = Box::pin(asker.request(vec![(None, request)]));
        while !asker.run.cancel.is_cancelled() {
            assert!(futures::poll!(&mut answers).is_pending());
            tokio::task::yield_now().await;
        }
        assert!(futures::poll!(&mut answers).is_pending());
        asker.run.end(Outcome::lost());
        assert_eq!(answers.await, [Err(NoAnswer::NoClient)]);
    }
}

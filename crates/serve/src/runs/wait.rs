//! A request that waits for a run. It passes the run's questions and news on to the client.

use std::sync::Arc;
use std::time::Duration;

use callgate::LogLevel;
use futures::future::BoxFuture;
use rmcp::model::{
    ClientResult, GetExtensions as _, InputRequest, InputRequests, ProgressNotification,
    ProgressNotificationParam, ProgressToken, ServerNotification, ServerRequest,
};
use rmcp::service::{OriginatingRequestId, RequestContext, RoleServer, ServiceError};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::client::{AskedBy, Client};
use super::outcome::Outcome;
use super::pending::NoAnswer;
use super::progress::{LogLine, Notice};
use super::served_run::{ServedRun, WaitingRequest};

/// How often the client is told the run's state, besides servers' own notices.
const STATE_INTERVAL: Duration = Duration::from_secs(1);
/// How long the answer waits until the client has taken the last notices.
const LAST_NOTICES: Duration = Duration::from_secs(5);

/// A request that waits for a run.
pub(crate) struct Waiter<'a> {
    pub(crate) client: &'a Client,
    pub(crate) context: &'a RequestContext<RoleServer>,
    /// How long the request waits.
    pub(crate) wait: Duration,
    /// The run ends with the request.
    pub(crate) owns_run: bool,
    /// The request stops waiting when a server says that the run takes long.
    pub(crate) leaves_long: bool,
    /// Servers' notices.
    pub(crate) notices: broadcast::Receiver<Notice>,
}

/// The reason why a wait is over.
pub(crate) enum WaitEnd {
    Ended(Arc<Outcome>),
    /// Questions for the client: their numbers and themselves.
    Questions(Vec<u64>, InputRequests),
    /// The run goes on after the time.
    TimeOver,
}

impl Waiter<'_> {
    /// Waits until there is something to answer.
    pub(crate) async fn wait(&mut self, run: &Arc<ServedRun>) -> WaitEnd {
        let waiting = WaitingRequest::new(run, self.owns_run);
        let mut notifier = Notifier::new(self.context, self.client.logs);
        let end = self.next_end(run, &mut notifier).await;
        // Notices from before the end go before the answer, if the client takes them.
        let rest = matches!(end, WaitEnd::Ended(_)).then_some(&mut self.notices);
        tokio::select! {
            () = notifier.finish(rest) => {}
            () = sleep(LAST_NOTICES) => {}
            () = self.context.ct.cancelled() => if self.owns_run {
                run.cancel();
            },
        }
        waiting.answered();
        end
    }

    async fn next_end(&mut self, run: &Arc<ServedRun>, notifier: &mut Notifier<'_>) -> WaitEnd {
        let mut outcome = run.subscribe();
        let mut questions = run.pending.subscribe();
        questions.mark_changed();
        let time_over = sleep(self.wait);
        tokio::pin!(time_over);
        let long = run.becomes_long();
        tokio::pin!(long);
        let mut interval = interval_at(Instant::now() + STATE_INTERVAL, STATE_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = run.progress.state();
        loop {
            tokio::select! {
                biased;
                ended = outcome.wait_for(Option::is_some) => {
                    let ended = ended.ok().and_then(|outcome| outcome.clone());
                    return ended.map_or(WaitEnd::TimeOver, WaitEnd::Ended);
                }
                () = self.context.ct.cancelled(), if !self.owns_run => return WaitEnd::TimeOver,
                () = self.context.ct.cancelled(), if !run.is_cancelled() => run.cancel(),
                Ok(()) = questions.changed() => match self.client.asked_by {
                    AskedBy::Requests => {
                        for (number, request) in run.pending.send_all(self.client.capabilities) {
                            self.ask(run, number, request);
                        }
                    }
                    AskedBy::Answers => {
                        if let Some((numbers, requests)) =
                            run.pending.show(self.client.capabilities)
                        {
                            return WaitEnd::Questions(numbers, requests);
                        }
                    }
                },
                // A client that reads nothing holds up its notices and nothing else; the oldest
                // of those that wait are dropped.
                () = notifier.sent(), if notifier.is_busy() => {}
                notice = self.notices.recv(), if !notifier.is_busy() => match notice {
                    Ok(notice) => notifier.pass_on(&notice),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return WaitEnd::TimeOver,
                },
                _ = interval.tick(), if notifier.token.is_some() && !notifier.is_busy() => {
                    let state = run.progress.state();
                    if state != told {
                        notifier.progress(&state.to_string());
                        told = state;
                    }
                }
                () = &mut long, if self.leaves_long => return WaitEnd::TimeOver,
                () = &mut time_over => return WaitEnd::TimeOver,
            }
        }
    }

    /// Sends a question to the client, in a task: the answer may come after this request's end.
    fn ask(&self, run: &Arc<ServedRun>, number: u64, request: InputRequest) {
        run.pages.sent(&request, &self.client.peer);
        let run = Arc::clone(run);
        let peer = self.client.peer.clone();
        // Over HTTP the question goes on this request's stream, the only one that a client must
        // read. rmcp marks only requests that the handler's own task sends.
        let origin = OriginatingRequestId(self.context.id.clone());
        tokio::spawn(async move {
            let Some(mut request) = server_request(request) else {
                return run.pending.answer(number, Err(NoAnswer::NoClient));
            };
            request.extensions_mut().insert(origin);
            let sent = peer.send_request(request);
            let answer = match tokio::time::timeout(run.pending.answer_time(), sent).await {
                Ok(Ok(result)) => result_value(&result),
                Ok(Err(ServiceError::McpError(error))) => {
                    Err(NoAnswer::Failed(error.message.into_owned()))
                }
                Ok(Err(_gone)) => Err(NoAnswer::NoClient),
                Err(_late) => Err(NoAnswer::Late),
            };
            run.pending.answer(number, answer);
        });
    }
}

/// Sends progress and servers' log messages to the client of a request, one at a time.
struct Notifier<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    logs: Option<LogLevel>,
    /// The number of progress messages is the progress, which must increase: servers' calls
    /// have units of their own.
    count: u32,
    /// The message under way to the client.
    sending: Option<BoxFuture<'a, ()>>,
}

impl<'a> Notifier<'a> {
    fn new(context: &'a RequestContext<RoleServer>, logs: Option<LogLevel>) -> Self {
        Self {
            context,
            logs,
            token: context.meta.get_progress_token(),
            count: 0,
            sending: None,
        }
    }

    fn is_busy(&self) -> bool {
        self.sending.is_some()
    }

    /// Resolves when no message is under way.
    async fn sent(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.await;
            self.sending = None;
        }
    }

    /// Sends the message under way, and the rest.
    async fn finish(&mut self, rest: Option<&mut broadcast::Receiver<Notice>>) {
        self.sent().await;
        let Some(rest) = rest else {
            return;
        };
        loop {
            match rest.try_recv() {
                Ok(notice) => self.pass_on(&notice),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
            self.sent().await;
        }
    }

    fn pass_on(&mut self, notice: &Notice) {
        match notice {
            Notice::Progress(text) => self.progress(text),
            Notice::Log(line) if self.logs.is_some_and(|least| line.level >= least) => {
                if let Some(message) = log_message(line) {
                    self.send(message);
                }
            }
            Notice::Log(_) => {}
        }
    }

    fn progress(&mut self, text: &str) {
        let Some(token) = self.token.clone() else {
            return;
        };
        self.count = self.count.saturating_add(1);
        let params = ProgressNotificationParam::new(token, f64::from(self.count));
        self.send(ProgressNotification::new(params.with_message(text)).into());
    }

    fn send(&mut self, notification: ServerNotification) {
        let peer = &self.context.peer;
        self.sending = Some(Box::pin(async move {
            // A client that is gone is noticed elsewhere.
            let _ = peer.send_notification(notification).await;
        }));
    }
}

fn log_message(line: &LogLine) -> Option<ServerNotification> {
    let params = json!({ "level": line.level.as_str(), "logger": line.logger, "data": line.data });
    let message = json!({ "method": "notifications/message", "params": params });
    serde_json::from_value(message).ok()
}

fn server_request(request: InputRequest) -> Option<ServerRequest> {
    match request {
        InputRequest::Elicitation(request) => Some(ServerRequest::ElicitRequest(request)),
        InputRequest::CreateMessage(request) => Some(ServerRequest::CreateMessageRequest(request)),
        InputRequest::ListRoots(request) => Some(ServerRequest::ListRootsRequest(request)),
        // A kind that is added later.
        _ => None,
    }
}

fn result_value(result: &ClientResult) -> Result<Value, NoAnswer> {
    serde_json::to_value(result).map_err(|error| NoAnswer::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use rmcp::handler::server::ServerHandler;
    use rmcp::model::{NumberOrString, RequestId};
    use tokio_util::sync::CancellationToken;

    use super::*;

    struct Handler;

    impl ServerHandler for Handler {}

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_client_that_reads_nothing_can_cancel() {
        let (ours, _theirs) = tokio::io::duplex(1);
        let served = rmcp::service::serve_directly(Handler, tokio::io::split(ours), None);
        let mut context = RequestContext::new(RequestId::Number(1), served.peer().clone());
        let token = ProgressToken(NumberOrString::Number(1));
        context.meta.set_progress_token(token);
        let run = ServedRun::new(HOUR, HOUR, CancellationToken::new()).expect("random bytes");
        let run = Arc::new(run);
        let client = Client::of_request(&context);
        let mut waiter = Waiter {
            client: &client,
            context: &context,
            wait: HOUR,
            owns_run: true,
            leaves_long: false,
            notices: run.progress.subscribe(),
        };
        for _ in 0..2 {
            run.progress.notify("something".to_owned());
        }
        let others = async {
            // The first notice is under way by now.
            context.ct.cancel();
            run.token().cancelled().await;
            run.end(Outcome::cancelled_call());
        };
        let both = async { tokio::join!(biased; waiter.wait(&run), others).0 };
        let end = tokio::time::timeout(Duration::from_secs(60), both).await;
        let Ok(WaitEnd::Ended(outcome)) = end else {
            panic!("the run did not end with its request");
        };
        assert!(outcome.is_cancelled);
    }
}

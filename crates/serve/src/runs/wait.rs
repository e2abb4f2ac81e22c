//! A request that waits for a run, and passes its questions and notices on to the client.

use std::sync::Arc;
use std::time::Duration;

use callgate::faces::LogLevel;
use rmcp::model::{
    GetExtensions as _, InputRequest, InputRequests, ProgressNotification,
    ProgressNotificationParam, ProgressToken, ServerNotification, ServerRequest,
};
use rmcp::service::{
    OriginatingRequestId, PeerRequestOptions, RequestContext, RoleServer, ServiceError,
};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::outcome::Outcome;
use super::pending::NoAnswer;
use super::progress::{Notice, RunProgress};
use super::served_run::{ServedRun, WaitingRequest};

/// The interval at which the client gets the run's state, in addition to servers' notices.
const STATE_INTERVAL: Duration = Duration::from_secs(1);
/// The time that the answer waits for the client to read the last notices.
const LAST_NOTICES: Duration = Duration::from_secs(5);

/// A request that waits for a run.
pub(crate) struct Waiter<'a> {
    pub(crate) client: &'a Client,
    context: &'a RequestContext<RoleServer>,
    /// The time that the request waits.
    wait: Duration,
    /// True if the run ends with the request.
    pub(crate) owns_run: bool,
    /// True if the request stops waiting when a server announces that the run takes long.
    pub(crate) detaches_long: bool,
    notifier: Notifier<'a>,
}

/// The reason why a wait ends.
pub(crate) enum WaitEnd {
    Ended(Arc<Outcome>),
    Questions(InputRequests),
    /// The run continues after the time.
    TimeOver,
}

impl<'a> Waiter<'a> {
    /// A request that waits for a run, and owns it. Later notices are passed on.
    pub(crate) fn new(
        client: &'a Client,
        context: &'a RequestContext<RoleServer>,
        run: &ServedRun,
        wait: Duration,
    ) -> Self {
        Self {
            client,
            context,
            wait,
            owns_run: true,
            detaches_long: false,
            notifier: Notifier {
                context,
                token: context.meta.get_progress_token(),
                logs: client.logs,
                notices: run.progress.subscribe(),
                count: 0,
            },
        }
    }

    /// Waits until there is something to answer.
    pub(crate) async fn wait(&mut self, run: &Arc<ServedRun>) -> WaitEnd {
        let waiting = WaitingRequest::new(run, self.owns_run);
        let (wait, detaches_long, owns_run) = (self.wait, self.detaches_long, self.owns_run);
        let (client, context) = (self.client, self.context);
        let mut outcome = run.subscribe();
        let mut questions = run.pending.subscribe();
        questions.mark_changed();
        let mut people = run.progress.questions();
        let is_over = CancellationToken::new();
        // A client that does not read delays only its notices, of which the oldest are dropped.
        let notices = self.notifier.pass_on(&run.progress, &is_over);
        tokio::pin!(notices);
        let time_over = sleep(wait);
        tokio::pin!(time_over);
        let end = loop {
            tokio::select! {
                biased;
                ended = outcome.wait_for(Option::is_some) => {
                    let ended = ended.ok().and_then(|outcome| outcome.clone());
                    break ended.map_or(WaitEnd::TimeOver, WaitEnd::Ended);
                }
                () = context.ct.cancelled(), if !run.cancel.is_cancelled() => {
                    if !owns_run {
                        break WaitEnd::TimeOver;
                    }
                    run.cancel.cancel();
                }
                Ok(()) = questions.changed() => if !client.is_stateless {
                    ask(run, client, context);
                } else if let Some(shown) = run.pending.show(client.capabilities) {
                    break WaitEnd::Questions(shown);
                },
                () = run.is_long.cancelled(), if detaches_long => break WaitEnd::TimeOver,
                // A person may take long, and must be told of the question first.
                Ok(_) = people.wait_for(|state| state.answerer().is_some()), if owns_run => {
                    break WaitEnd::TimeOver;
                }
                () = &mut time_over => break WaitEnd::TimeOver,
                () = &mut notices => break WaitEnd::TimeOver,
            }
        };
        is_over.cancel();
        if matches!(end, WaitEnd::Ended(_)) {
            // Earlier notices go before the answer, if the client reads them.
            tokio::select! {
                () = &mut notices => {}
                () = sleep(LAST_NOTICES) => {}
                () = context.ct.cancelled() => {}
            }
        }
        waiting.answered();
        end
    }
}

/// Sends a run's questions to the client, each in a task: the answer may come after the end of
/// the waiting request.
fn ask(run: &Arc<ServedRun>, client: &Client, context: &RequestContext<RoleServer>) {
    for (key, request) in run.pending.send_all(client.capabilities) {
        run.pages.sent(&request, &client.peer);
        let (run, peer) = (Arc::clone(run), client.peer.clone());
        // Over HTTP the question must go on this request's stream, the only one that a client has
        // to read. rmcp marks only requests that the handler's own task sends.
        let origin = OriginatingRequestId(context.id.clone());
        tokio::spawn(async move {
            let Some(mut request) = server_request(request) else {
                return run.pending.answer(&key, Err(NoAnswer::NoClient));
            };
            request.extensions_mut().insert(origin);
            let Some(withdrawn) = run.pending.withdrawn(&key) else {
                return;
            };
            let options = PeerRequestOptions::no_options();
            let Ok(mut sent) = peer.send_cancellable_request(request, options).await else {
                return run.pending.answer(&key, Err(NoAnswer::NoClient));
            };
            let answer = tokio::select! {
                answered = &mut sent.rx => match answered {
                    Ok(Ok(result)) => serde_json::to_value(&result)
                        .map_err(|error| NoAnswer::Failed(error.to_string())),
                    Ok(Err(ServiceError::McpError(error))) => {
                        Err(NoAnswer::Failed(error.message.into_owned()))
                    }
                    Ok(Err(_)) | Err(_) => Err(NoAnswer::NoClient),
                },
                () = withdrawn.cancelled() => {
                    // The client may be gone.
                    let _ = sent.cancel(Some("an answer is no longer needed".to_owned())).await;
                    return;
                }
                () = sleep(run.pending.answer_time) => Err(NoAnswer::Late),
            };
            run.pending.answer(&key, answer);
        });
    }
}

/// Sends progress and servers' log messages to the client of a request, one at a time.
struct Notifier<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    logs: Option<LogLevel>,
    notices: broadcast::Receiver<Notice>,
    /// The number of progress messages. It is the progress, which must increase, because the units
    /// of servers' calls differ.
    count: u32,
}

impl Notifier<'_> {
    /// Passes servers' notices on, and the run's state at intervals, until the wait is over. Then
    /// passes on the notices that have come by then.
    async fn pass_on(&mut self, progress: &RunProgress, is_over: &CancellationToken) {
        let mut interval = interval_at(Instant::now() + STATE_INTERVAL, STATE_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = progress.state();
        loop {
            tokio::select! {
                biased;
                () = is_over.cancelled() => break,
                notice = self.notices.recv() => match notice {
                    Ok(notice) => self.notify(notice).await,
                    Err(RecvError::Lagged(_)) => {}
                    // The run keeps the sender.
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                _ = interval.tick(), if self.token.is_some() => {
                    let state = progress.state();
                    if state != sent {
                        self.progress(&state.to_string()).await;
                        sent = state;
                    }
                }
            }
        }
        loop {
            match self.notices.try_recv() {
                Ok(notice) => self.notify(notice).await,
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    async fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::Progress(text) => self.progress(&text).await,
            Notice::Log(level, message) => {
                if self.logs.is_some_and(|min| level >= min) {
                    self.send(*message).await;
                }
            }
        }
    }

    async fn progress(&mut self, text: &str) {
        let Some(token) = self.token.clone() else {
            return;
        };
        self.count = self.count.saturating_add(1);
        let params = ProgressNotificationParam::new(token, f64::from(self.count));
        self.send(ProgressNotification::new(params.with_message(text)).into())
            .await;
    }

    async fn send(&self, notification: ServerNotification) {
        // A lost client is detected elsewhere.
        let _ = self.context.peer.send_notification(notification).await;
    }
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

#[cfg(test)]
mod tests {
    use rmcp::handler::server::ServerHandler;
    use rmcp::model::{NumberOrString, RequestId};
    use tokio_util::sync::CancellationToken;

    use super::super::resume::Purpose;
    use super::*;

    struct Handler;

    impl ServerHandler for Handler {}

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn non_reading_client_can_cancel() {
        let (ours, _theirs) = tokio::io::duplex(1);
        let served = rmcp::service::serve_directly(Handler, tokio::io::split(ours), None);
        let mut context = RequestContext::new(RequestId::Number(1), served.peer().clone());
        let token = ProgressToken(NumberOrString::Number(1));
        context.meta.set_progress_token(token);
        let (purpose, cancel) = (Purpose::new(Purpose::SCRIPT, ""), CancellationToken::new());
        let run = Arc::new(ServedRun::new(purpose, HOUR, HOUR, cancel));
        let client = Client::of_request(&context, None).expect("a client");
        let mut waiter = Waiter::new(&client, &context, &run, HOUR);
        for _ in 0..2 {
            run.progress
                .notify(Notice::Progress("something".to_owned()));
        }
        let others = async {
            // The first notice is under way by now.
            context.ct.cancel();
            run.cancel.clone().cancelled().await;
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

//! A request that waits for a run: it takes what the run wants to the client,
//! and news, until there is something to answer.

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
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until};

use super::board::Unanswered;
use super::client::{Client, Way};
use super::news::{Line, SoFar, Told};
use super::outcome::Outcome;
use super::run::{Attending, Run};

/// How often a client is told how far a run is, besides what servers say.
const BEAT: Duration = Duration::from_secs(1);

/// How long the answer waits for news to be taken.
const LAST_NEWS: Duration = Duration::from_secs(5);

/// A request that waits for a run.
pub(crate) struct Attendant<'a> {
    pub(crate) client: &'a Client,
    pub(crate) context: &'a RequestContext<RoleServer>,
    /// How long it waits.
    pub(crate) wait: Duration,
    /// Whether the run ends with it.
    pub(crate) carries: bool,
    /// Whether it waits no longer for a run of which a server says that it takes
    /// long.
    pub(crate) leaves_long: bool,
    /// What servers say.
    pub(crate) told: broadcast::Receiver<Told>,
}

/// Until when a run was waited for.
pub(crate) enum Until {
    /// Its end.
    Ended(Arc<Outcome>),
    /// It wants something of its client: the numbers of these, and all of them.
    Wants(Vec<u64>, InputRequests),
    /// It goes on, but the time is over.
    Waited,
}

impl Attendant<'_> {
    /// Waits for the run until there is something to answer.
    pub(crate) async fn attend(&mut self, run: &Arc<Run>) -> Until {
        let attending = Attending::new(run, self.carries);
        let mut teller = Teller::new(self.context, self.client.logs);
        let until = self.until(run, &mut teller).await;
        // What was told before the end is told before the answer, if the client takes it.
        let rest = matches!(until, Until::Ended(_)).then_some(&mut self.told);
        tokio::select! {
            () = teller.finish(rest) => {}
            () = sleep(LAST_NEWS) => {}
            () = self.context.ct.cancelled() => if self.carries {
                run.cancel();
            },
        }
        attending.answered();
        until
    }

    async fn until(&mut self, run: &Arc<Run>, teller: &mut Teller<'_>) -> Until {
        let mut ended = run.follow();
        let mut wishes = run.board.follow();
        wishes.mark_changed();
        let deadline = sleep_until(Instant::now() + self.wait);
        tokio::pin!(deadline);
        let long = run.becomes_long();
        tokio::pin!(long);
        let mut beat = interval_at(Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = run.news.so_far();
        loop {
            tokio::select! {
                biased;
                outcome = outcome(&mut ended) => {
                    let Some(outcome) = outcome else {
                        return Until::Waited;
                    };
                    return Until::Ended(outcome);
                }
                () = self.context.ct.cancelled(), if !self.carries => return Until::Waited,
                () = self.context.ct.cancelled(), if !run.is_cancelled() => run.cancel(),
                Ok(()) = wishes.changed() => match self.client.way {
                    Way::Requests => {
                        for (number, request) in run.board.take(self.client.can) {
                            self.ask(run, number, request);
                        }
                    }
                    Way::Rounds => {
                        if let Some((wishes, requests)) = run.board.show(self.client.can) {
                            return Until::Wants(wishes, requests);
                        }
                    }
                },
                // A client that takes nothing holds up its news, and nothing else: of
                // those that wait, the oldest go.
                () = teller.sent(), if teller.is_busy() => {}
                told = self.told.recv(), if !teller.is_busy() => match told {
                    Ok(told) => teller.pass_on(&told),
                    Err(RecvError::Lagged(_)) => {}
                    // The run holds the other end.
                    Err(RecvError::Closed) => return Until::Waited,
                },
                _ = beat.tick(), if teller.token.is_some() && !teller.is_busy() => {
                    let so_far: SoFar = run.news.so_far();
                    if so_far != said {
                        teller.tell(&so_far.to_string());
                        said = so_far;
                    }
                }
                () = &mut long, if self.leaves_long => return Until::Waited,
                () = &mut deadline => return Until::Waited,
            }
        }
    }

    /// Has the client answer a request, however long this one still waits.
    fn ask(&self, run: &Arc<Run>, number: u64, request: InputRequest) {
        run.pages.sent(&request, &self.client.peer);
        let run = Arc::clone(run);
        let peer = self.client.peer.clone();
        // Over HTTP it goes on the stream of this request, which is the only one that
        // a client must read. The SDK marks only what the handler's own task sends.
        let this = OriginatingRequestId(self.context.id.clone());
        tokio::spawn(async move {
            let answer = match as_request(request) {
                None => Err(Unanswered::Nobody),
                Some(mut request) => {
                    request.extensions_mut().insert(this);
                    let asked = peer.send_request(request);
                    match tokio::time::timeout(run.board.answer_time(), asked).await {
                        Ok(Ok(result)) => as_value(&result),
                        Ok(Err(ServiceError::McpError(error))) => {
                            Err(Unanswered::Failed(error.message.into_owned()))
                        }
                        Ok(Err(_gone)) => Err(Unanswered::Nobody),
                        Err(_late) => Err(Unanswered::Late),
                    }
                }
            };
            run.board.answer(number, answer);
        });
    }
}

/// What a run came to, once it has ended.
async fn outcome(ended: &mut watch::Receiver<Option<Arc<Outcome>>>) -> Option<Arc<Outcome>> {
    let outcome = ended.wait_for(Option::is_some).await.ok()?;
    outcome.clone()
}

/// Tells the client of a request how far it is, and what servers log, if it wants
/// to know.
struct Teller<'a> {
    context: &'a RequestContext<RoleServer>,
    token: Option<ProgressToken>,
    logs: Option<LogLevel>,
    /// Progress of a run is the number of news of it: those of its calls have
    /// units of their own, and what is told must increase.
    told: u32,
    /// What is on its way to the client.
    sending: Option<BoxFuture<'a, ()>>,
}

impl<'a> Teller<'a> {
    fn new(context: &'a RequestContext<RoleServer>, logs: Option<LogLevel>) -> Self {
        Self {
            context,
            logs,
            token: context.meta.get_progress_token(),
            told: 0,
            sending: None,
        }
    }

    /// Whether something is on its way: until it is there, there is nothing to tell.
    fn is_busy(&self) -> bool {
        self.sending.is_some()
    }

    /// Resolves when nothing is on its way.
    async fn sent(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.await;
            self.sending = None;
        }
    }

    /// Resolves when nothing is on its way, nor anything left to tell of the rest.
    async fn finish(&mut self, rest: Option<&mut broadcast::Receiver<Told>>) {
        self.sent().await;
        let Some(rest) = rest else {
            return;
        };
        loop {
            match rest.try_recv() {
                Ok(told) => self.pass_on(&told),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
            self.sent().await;
        }
    }

    fn pass_on(&mut self, told: &Told) {
        match told {
            Told::Progress(line) => self.tell(line),
            Told::Log(line) if self.logs.is_some_and(|least| line.level >= least) => {
                if let Some(message) = as_message(line) {
                    self.send(message);
                }
            }
            Told::Log(_) => {}
        }
    }

    fn tell(&mut self, line: &str) {
        let Some(token) = self.token.clone() else {
            return;
        };
        self.told = self.told.saturating_add(1);
        let news = ProgressNotificationParam::new(token, f64::from(self.told)).with_message(line);
        self.send(ProgressNotification::new(news).into());
    }

    fn send(&mut self, news: ServerNotification) {
        let peer = &self.context.peer;
        self.sending = Some(Box::pin(async move {
            // A client that is gone shows elsewhere.
            let _gone = peer.send_notification(news).await;
        }));
    }
}

fn as_message(line: &Line) -> Option<ServerNotification> {
    let params = json!({ "level": line.level.as_str(), "logger": line.logger, "data": line.data });
    let message = json!({ "method": "notifications/message", "params": params });
    serde_json::from_value(message).ok()
}

fn as_request(request: InputRequest) -> Option<ServerRequest> {
    match request {
        InputRequest::Elicitation(request) => Some(ServerRequest::ElicitRequest(request)),
        InputRequest::CreateMessage(request) => Some(ServerRequest::CreateMessageRequest(request)),
        InputRequest::ListRoots(request) => Some(ServerRequest::ListRootsRequest(request)),
        // A kind that is added later.
        _ => None,
    }
}

fn as_value(result: &ClientResult) -> Result<Value, Unanswered> {
    serde_json::to_value(result).map_err(|error| Unanswered::Failed(error.to_string()))
}

#[cfg(test)]
mod tests;

//! A call that a server answers with a task: polled to its end, and cancelled
//! when nobody waits for it any more.
//!
//! Two forms are known: the experimental one of 2025-11-25, where the result is
//! fetched by a request of its own, and the extension of 2026-07-28, where it
//! comes with the last poll and input is asked for in between.

mod newer;
mod older;

pub(crate) use older::{GivenUp, begin, relate, related};

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use crate::calls::Call;
use crate::failure::Failure;
use crate::http::is_for_good;
use crate::inbox::Token;
use crate::link::LinkErrorKind;
use crate::misfit;
use crate::object::{Object, object};
use crate::patience::{Clock, Patience, soon};
use crate::session::{Request, Session};

/// How often a server is asked at most, and at least, whatever it suggests.
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(5 * 60);
/// How often, when it suggests nothing.
const DEFAULT_POLL: Duration = Duration::from_secs(1);
/// The pause before a poll is made again that did not get there, or whose answer did not
/// get back; it doubles up to the longest.
const POLL_AGAIN: Duration = Duration::from_millis(100);
const POLL_AGAIN_AT_MOST: Duration = Duration::from_secs(10);
/// The longest id of a task, in bytes.
const MAX_ID_BYTES: usize = 4_096;

/// A task as servers write it, in either form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    task_id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    /// In milliseconds; the older name and the newer one.
    #[serde(default)]
    poll_interval: Option<f64>,
    #[serde(default)]
    poll_interval_ms: Option<f64>,
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A `CreateTaskResult` of 2025-11-25.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created<'a> {
    #[serde(borrow)]
    task: Object<Task<'a>>,
    /// What only the result of a tool has.
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
}

/// The task that a result of 2025-11-25 is, if it is one.
fn created(result: &RawValue) -> Option<Task<'_>> {
    let created: Created<'_> = object(result.get()).ok()?;
    let is_result = created.content.is_some() || created.structured_content.is_some();
    (!is_result).then_some(created.task.0)
}

/// Whether a result of 2025-11-25 is a task.
pub(crate) fn is_task(result: &RawValue) -> bool {
    created(result).is_some()
}

/// A task that is followed.
struct Followed<'a> {
    session: &'a Session,
    call: &'a Call<'a>,
    id: &'a str,
    /// What each request about it has in its `params`.
    members: String,
    patience: Patience,
    /// Whether it is known to have ended, or not to be there.
    over: AtomicBool,
}

/// Follows the task to its end, and returns what the call would have. `token` is
/// the one that the call was made with.
pub(crate) async fn follow(
    session: &Session,
    call: &Call<'_>,
    answer: &RawValue,
    token: Option<Token>,
    clock: Clock,
) -> Result<Box<RawValue>, Failure> {
    let task = match created(answer) {
        Some(task) => Ok(task),
        None => object::<Task<'_>>(answer.get()),
    };
    let task = task.map_err(|error| malformed(&error))?;
    if task.task_id.len() > MAX_ID_BYTES {
        let reason = format!("its task's id is longer than {MAX_ID_BYTES} bytes");
        return Err(Failure::Malformed(reason));
    }
    let token = match token {
        Some(token) => token,
        None => Token::new(&session.inbox, call.who()).map_err(Failure::Lost)?,
    };
    token.is_of(&task.task_id);
    tracing::debug!(server = %session.server, tool = call.tool, "a call is a task");
    call.caller.is_task(&session.server, call.tool);
    let mut guard = Guard {
        session,
        id: &task.task_id,
        cancel: true,
    };
    let followed = Followed {
        session,
        call,
        id: &task.task_id,
        members: members(&task.task_id),
        patience: clock.rest(&session.asked),
        over: AtomicBool::new(false),
    };
    let polling = pin!(async {
        match session.is_stateless() {
            true => newer::poll(&followed, &task).await,
            false => older::poll(&followed, &task, &token).await,
        }
    });
    // Each poll that is answered is a sign of work, so only the whole counts.
    let whole = Patience::exactly(followed.patience.most);
    let result = Clock::start(whole, &session.asked)
        .limit(polling, || None, &session.asked)
        .await;
    guard.cancel = result.is_err() && !followed.over.load(Ordering::Relaxed);
    drop(guard);
    result
}

impl<'a> Followed<'a> {
    /// A request about it.
    fn request<'r>(&'r self, method: &'r str) -> Request<'r> {
        Request {
            // Since 2026-07-28, by which a request finds its server.
            name: Some(self.id),
            who: Some(self.call.who()),
            ..Request::new(method, &self.members)
        }
    }

    /// Asks how it is, or for the result that it has. Nothing is done by that, so it is
    /// done again where it fails on the way, for as long as the server may be silent.
    async fn ask(&self, method: &str, patience: Patience) -> Result<Box<RawValue>, Failure> {
        let until = soon(self.patience.idle);
        let mut pause = POLL_AGAIN;
        loop {
            let failure = match self.session.request(self.request(method), patience).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            // That there is no such task. One that is refused otherwise may go on.
            if matches!(&failure, Failure::Refused(error) if error.code == ErrorCode::INVALID_PARAMS)
            {
                self.is_over();
            }
            self.again(failure, &mut pause, until).await?;
        }
    }

    /// Gives it the answers to what it asked for. An answer counts once, by its name, so they
    /// are given again where that fails on the way, for as long as the server may be silent.
    /// If they are refused then, the refusal is returned: it may be for that the server has
    /// them already, which only the polls tell.
    async fn update(
        &self,
        responses: &str,
        patience: Patience,
    ) -> Result<Option<Failure>, Failure> {
        let members = format!(r#"{},"inputResponses":{responses}"#, self.members);
        let until = soon(patience.idle);
        let mut pause = POLL_AGAIN;
        let mut may_be_there = false;
        loop {
            let update = Request {
                members: &members,
                ..self.request("tasks/update")
            };
            let failure = match self.session.request(update, patience).await {
                Ok(_acknowledged) => return Ok(None),
                Err(refusal @ Failure::Refused(_)) if may_be_there => return Ok(Some(refusal)),
                Err(failure) => failure,
            };
            may_be_there |= failure.was_sent() && !is_turned_away(&failure);
            self.again(failure, &mut pause, until).await?;
        }
    }

    /// Waits before something is asked again, if it failed on the way and would be asked
    /// before then.
    async fn again(
        &self,
        failure: Failure,
        pause: &mut Duration,
        until: Instant,
    ) -> Result<(), Failure> {
        match failure {
            Failure::Lost(error)
                if !is_for_good(&error.kind) && Instant::now() + *pause < until =>
            {
                tracing::debug!(server = %self.session.server, %error, "a request about a task failed");
                sleep(*pause).await;
                *pause = (*pause * 2).min(POLL_AGAIN_AT_MOST);
                Ok(())
            }
            failure => Err(failure),
        }
    }

    /// There is nothing to cancel.
    fn is_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn members(id: &str) -> String {
    format!(r#""taskId":{}"#, Value::from(id))
}

/// How long to wait before it is asked for anew.
fn pause(task: &Task<'_>) -> Duration {
    let suggested = task.poll_interval_ms.or(task.poll_interval);
    let suggested = suggested.filter(|ms| *ms >= 0.0);
    let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
    suggested.map_or(DEFAULT_POLL, |pause| {
        pause.clamp(SHORTEST_POLL, LONGEST_POLL)
    })
}

/// Whether the server, or a proxy before it, says by this status that it has not even begun:
/// too early, or too many requests.
fn is_turned_away(failure: &Failure) -> bool {
    matches!(failure, Failure::Lost(error) if matches!(error.kind, LinkErrorKind::Status(425 | 429)))
}

fn malformed(error: &serde_json::Error) -> Failure {
    Failure::Malformed(format!("its task: {}", misfit::describe(error)))
}

fn strange_status() -> Failure {
    Failure::Malformed("its task has a status that clients do not know".to_owned())
}

/// Cancels the task if it goes on and nobody waits for it.
struct Guard<'a> {
    session: &'a Session,
    id: &'a str,
    cancel: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.cancel {
            cancel(self.session, self.id);
        }
    }
}

/// Cancels a task, if the server does that.
fn cancel(session: &Session, id: &str) {
    let cancels = session
        .agreed()
        .is_some_and(|agreed| agreed.abilities.cancels_tasks);
    if cancels || session.is_stateless() {
        session.send_off(&Request {
            name: Some(id),
            ..Request::new("tasks/cancel", &members(id))
        });
    }
}

#[cfg(test)]
mod tests;

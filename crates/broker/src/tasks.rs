//! A call that a server answers with a task: polled to its end, and cancelled
//! when nobody waits for it any more.
//!
//! Two forms are known: the experimental one of 2025-11-25, where the result is
//! fetched by a request of its own, and the extension of 2026-07-28, where it
//! comes with the last poll and input is asked for in between.

use std::pin::pin;
use std::time::Duration;

use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::calls::Call;
use crate::failure::Failure;
use crate::patience::{Clock, Patience};
use crate::refusal::error_data;
use crate::session::{Request, Session};

/// How often a server is asked at most, and at least, whatever it suggests.
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(10);
/// How often, when it suggests nothing.
const DEFAULT_POLL: Duration = Duration::from_secs(1);
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
    #[serde(default)]
    input_requests: Option<serde_json::Map<String, Value>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A `CreateTaskResult` of 2025-11-25.
#[derive(Deserialize)]
struct Created<'a> {
    #[serde(borrow)]
    task: Task<'a>,
}

/// Whether a result of 2025-11-25 is a task.
pub(crate) fn is_task(result: &RawValue) -> bool {
    serde_json::from_str::<Created<'_>>(result.get()).is_ok()
}

/// Follows the task to its end, and returns what the call would have.
pub(crate) async fn follow(
    session: &Session,
    call: &Call<'_>,
    created: &RawValue,
    clock: Clock,
) -> Result<Box<RawValue>, Failure> {
    let stateless = session.is_stateless();
    let task = match serde_json::from_str::<Created<'_>>(created.get()) {
        Ok(created) => Ok(created.task),
        Err(_) => serde_json::from_str::<Task<'_>>(created.get()),
    };
    let task = task.map_err(|error| Failure::Malformed(format!("its task: {error}")))?;
    if task.task_id.len() > MAX_ID_BYTES {
        let reason = format!("its task's id is longer than {MAX_ID_BYTES} bytes");
        return Err(Failure::Malformed(reason));
    }
    let id = Value::from(task.task_id.as_str()).to_string();
    call.caller.is_task(&session.server, call.tool);
    let mut guard = Guard {
        session,
        id: id.clone(),
        cancel: true,
    };
    let patience = clock.rest(&session.asked);
    let polling = pin!(poll(session, call, &id, &task, stateless, patience));
    // Each poll that is answered is a sign of work, so only the whole counts.
    let whole = Patience::exactly(patience.most);
    let result = Clock::start(whole, &session.asked)
        .limit(polling, || None, &session.asked)
        .await;
    guard.cancel = matches!(result, Err(Failure::Timeout(_) | Failure::Input(_)));
    drop(guard);
    result
}

async fn poll(
    session: &Session,
    call: &Call<'_>,
    id: &str,
    first: &Task<'_>,
    stateless: bool,
    patience: Patience,
) -> Result<Box<RawValue>, Failure> {
    let members = format!(r#""taskId":{id}"#);
    let request = |method| Request {
        who: Some(call.who()),
        ..Request::new(method, &members)
    };
    let mut pause = pause(first);
    let mut status = first.status.clone();
    loop {
        if !stateless && is_for_result(&status) {
            // The older form: this waits until there is one, and what the server
            // asks for until then comes with it.
            let request = Request {
                progress: true,
                ..request("tasks/result")
            };
            return session.request(request, patience).await;
        }
        sleep(pause).await;
        let answer = session.request(request("tasks/get"), patience).await?;
        let task: Task<'_> = serde_json::from_str(answer.get())
            .map_err(|error| Failure::Malformed(format!("its task: {error}")))?;
        pause = self::pause(&task);
        status.clone_from(&task.status);
        if !stateless {
            continue;
        }
        match task.status.as_str() {
            "completed" => {
                let missing = || Failure::Malformed("its task ended without a result".to_owned());
                return task.result.map(RawValue::to_owned).ok_or_else(missing);
            }
            "failed" => return Err(failed(session, &task)),
            "cancelled" => {
                let message = "the server cancelled the task".to_owned();
                return Err(Failure::Refused(ErrorData::internal_error(message, None)));
            }
            "input_required" => {
                let requests = task.input_requests.unwrap_or_default();
                let responses = session.inputs(call, &requests).await?;
                let members = format!(r#"{members},"inputResponses":{responses}"#);
                let update = Request {
                    members: &members,
                    ..request("tasks/update")
                };
                session.request(update, patience).await?;
            }
            "working" => {}
            _ => {
                let reason = "its task has a status that clients do not know".to_owned();
                return Err(Failure::Malformed(reason));
            }
        }
    }
}

fn failed(session: &Session, task: &Task<'_>) -> Failure {
    let mut error = match (task.error, &task.status_message) {
        (Some(error), _) => error_data(error),
        (None, Some(message)) => ErrorData::internal_error(message.clone(), None),
        (None, None) => ErrorData::internal_error("the task failed", None),
    };
    error.message = session.secrets.message(&error.message).into();
    if let Some(data) = &mut error.data {
        session.secrets.redact_value(data);
    }
    Failure::Refused(error)
}

/// Whether a task of the older form has a result, or will have one only if it
/// is asked for it.
fn is_for_result(status: &str) -> bool {
    matches!(
        status,
        "completed" | "failed" | "cancelled" | "input_required"
    )
}

fn pause(task: &Task<'_>) -> Duration {
    let suggested = task.poll_interval_ms.or(task.poll_interval);
    let suggested = suggested.filter(|ms| *ms >= 0.0);
    let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
    suggested.map_or(DEFAULT_POLL, |pause| {
        pause.clamp(SHORTEST_POLL, LONGEST_POLL)
    })
}

/// Cancels the task if nobody has waited for its end.
struct Guard<'a> {
    session: &'a Session,
    /// As JSON.
    id: String,
    cancel: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.cancel {
            let members = format!(r#""taskId":{}"#, self.id);
            self.session
                .send_off(&Request::new("tasks/cancel", &members));
        }
    }
}

#[cfg(test)]
mod tests;

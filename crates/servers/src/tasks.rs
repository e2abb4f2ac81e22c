//! Calls that a server answers with a task (2026-07-28, `io.modelcontextprotocol/tasks`):
//! polled to the end, and cancelled when the call is given up.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::failure::{CallFailure, FailureKind};
use crate::json_rpc::read_error;
use crate::list::misfit;
use crate::request::{Clock, Request, Session};
use crate::slot::Who;

/// The shortest and the longest time between polls, whatever the server suggests.
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(5 * 60);
const DEFAULT_POLL: Duration = Duration::from_secs(1);
const MAX_ID_BYTES: usize = 4_096;
/// The answers that one task may ask for.
const MAX_ANSWERS: usize = 1_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskState<'a> {
    task_id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    poll_interval_ms: Option<f64>,
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A task that is followed. Dropping it cancels the task, unless it is over.
pub(crate) struct Task {
    session: Arc<Session>,
    who: Who,
    id: String,
    pause: Duration,
    is_over: bool,
    /// The names of the requests that have been answered.
    answered: HashSet<String>,
}

/// The state of a task.
pub(crate) enum Step {
    Working,
    /// It asks for input: the map of its requests.
    Wants(Box<RawValue>),
    Done(Box<RawValue>),
}

impl Task {
    /// The task in an answer.
    pub(crate) fn new(
        session: &Arc<Session>,
        who: Who,
        answer: &RawValue,
    ) -> Result<Self, CallFailure> {
        let state = read(answer)?;
        if state.task_id.len() > MAX_ID_BYTES {
            let reason = format!("its task's id is longer than {MAX_ID_BYTES} bytes");
            return Err(CallFailure::malformed(reason));
        }
        who.caller.is_task(&session.server, &who.tool);
        Ok(Self {
            session: Arc::clone(session),
            who,
            // A task that is over, or asks for something, is looked at without a pause.
            pause: if state.status == "working" {
                pause(&state)
            } else {
                Duration::ZERO
            },
            id: state.task_id,
            is_over: false,
            answered: HashSet::new(),
        })
    }

    /// Waits, and asks for the task's state.
    pub(crate) async fn poll(&mut self, clock: &mut Clock) -> Result<Step, CallFailure> {
        clock.pause(self.pause).await?;
        let params = json!({ "taskId": self.id });
        let answer = self.ask("tasks/get", params, clock).await;
        if let Err(failure) = &answer
            && let FailureKind::Refused(error) = &failure.kind
            && error.code == ErrorCode::INVALID_PARAMS
        {
            // There is no such task.
            self.is_over = true;
        }
        let answer = answer?;
        let state = read(&answer)?;
        self.pause = pause(&state);
        self.is_over = matches!(state.status.as_str(), "completed" | "failed" | "cancelled");
        match state.status.as_str() {
            "working" => Ok(Step::Working),
            "input_required" => {
                let wants = state.input_requests.map(RawValue::to_owned);
                Ok(wants.map_or(Step::Working, Step::Wants))
            }
            "completed" => {
                let missing =
                    || CallFailure::malformed("its task ended without a result".to_owned());
                Ok(Step::Done(state.result.ok_or_else(missing)?.to_owned()))
            }
            "failed" => Err(self.failed(&state)),
            "cancelled" => {
                let error = ErrorData::internal_error("the server cancelled the task", None);
                Err(CallFailure::refused(error))
            }
            _ => {
                let reason = "its task has a status that clients do not know";
                Err(CallFailure::malformed(reason.to_owned()))
            }
        }
    }

    /// Whether a request of the task has been answered.
    pub(crate) fn has_answered(&self, key: &str) -> bool {
        self.answered.contains(key)
    }

    /// Gives the task these answers, by the names of its requests.
    pub(crate) async fn answer(
        &mut self,
        answers: &Value,
        clock: &mut Clock,
    ) -> Result<(), CallFailure> {
        for (key, _) in answers.as_object().into_iter().flatten() {
            if key.len() > MAX_ID_BYTES || self.answered.len() == MAX_ANSWERS {
                return Err(CallFailure::input(format!(
                    "the tool still wants input after {MAX_ANSWERS} answers, or by a name of more \
                     than {MAX_ID_BYTES} bytes"
                )));
            }
            self.answered.insert(key.clone());
        }
        let params = json!({ "taskId": self.id, "inputResponses": answers });
        self.ask("tasks/update", params, clock).await.map(drop)
    }

    /// Sends a request about the task.
    async fn ask(
        &self,
        method: &'static str,
        params: Value,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let request = Request {
            who: Some(self.who.clone()),
            ..Request::new(method, params)
        };
        self.session.request_within(request, clock).await
    }

    fn failed(&self, state: &TaskState<'_>) -> CallFailure {
        let error = match (state.error, &state.status_message) {
            (Some(error), _) => read_error(error),
            (None, Some(message)) => ErrorData::internal_error(message.clone(), None),
            (None, None) => ErrorData::internal_error("the task failed", None),
        };
        CallFailure::refused(self.session.redacted_error(error))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.is_over {
            let params = json!({ "taskId": self.id });
            self.session.send_off(Request::new("tasks/cancel", params));
        }
    }
}

fn read(answer: &RawValue) -> Result<TaskState<'_>, CallFailure> {
    serde_json::from_str(answer.get())
        .map_err(|error| CallFailure::malformed(format!("its task: {}", misfit(&error))))
}

fn pause(state: &TaskState<'_>) -> Duration {
    let suggested = state.poll_interval_ms.filter(|ms| *ms >= 0.0);
    let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
    suggested.map_or(DEFAULT_POLL, |pause| {
        pause.clamp(SHORTEST_POLL, LONGEST_POLL)
    })
}

//! Calls that a server answers with a task (2026-07-28, `io.modelcontextprotocol/tasks`): polling,
//! and cancellation with the call.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callgate_schema::json_fault;
use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::call::{ActiveCall, read_requests};
use crate::clock::Clock;
use crate::failure::CallFailure;
use crate::json_rpc::read_error;
use crate::request::{Request, Session};

/// The bounds of the poll interval that a server suggests.
const MIN_POLL: Duration = Duration::from_millis(20);
const MAX_POLL: Duration = Duration::from_secs(5 * 60);
const DEFAULT_POLL: Duration = Duration::from_secs(1);
const MAX_ID_BYTES: usize = 4_096;
/// The time limit for cancelling a task.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);
/// Answers to requests of one task.
const MAX_ANSWERS: usize = 200;

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

impl<'a> TaskState<'a> {
    fn read(answer: &'a RawValue) -> Result<Self, CallFailure> {
        serde_json::from_str(answer.get())
            .map_err(|error| CallFailure::malformed(format!("its task: {}", json_fault(&error))))
    }

    /// The wait before the next poll.
    fn pause(&self) -> Duration {
        let suggested = self.poll_interval_ms.filter(|ms| *ms >= 0.0);
        let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
        suggested.map_or(DEFAULT_POLL, |pause| pause.clamp(MIN_POLL, MAX_POLL))
    }

    /// The error of a task that failed or was cancelled.
    fn error(self) -> ErrorData {
        self.error.map(read_error).unwrap_or_else(|| {
            let message = format!("the server's task is {}", self.status);
            let message = self.status_message.unwrap_or(message);
            ErrorData::internal_error(message, None)
        })
    }
}

/// A task of a server. Dropping it cancels the task, unless it is over.
struct Task {
    session: Arc<Session>,
    id: String,
    is_over: bool,
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.is_over {
            let cancel = Request::new("tasks/cancel", json!({ "taskId": self.id }));
            let session = Arc::clone(&self.session);
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { session.request(cancel, CANCEL_PATIENCE).await });
            }
        }
    }
}

impl ActiveCall<'_> {
    /// Polls the task in an answer until its end, and gives it the input that it asks for.
    pub(crate) async fn follow_task(
        &self,
        answer: &RawValue,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let first = TaskState::read(answer)?;
        if first.task_id.len() > MAX_ID_BYTES {
            let reason = format!("its task's id is longer than {MAX_ID_BYTES} bytes");
            return Err(CallFailure::malformed(reason));
        }
        let session = self.session;
        self.caller.is_task(&session.tap.server, self.call.tool);
        // A task that is over or asks for input is polled without a pause.
        let is_working = first.status == "working";
        let mut pause = if is_working {
            first.pause()
        } else {
            Duration::ZERO
        };
        let mut task = Task {
            session: Arc::clone(session),
            id: first.task_id,
            is_over: false,
        };
        let mut answered = HashSet::new();
        loop {
            clock.pause(pause).await?;
            let params = json!({ "taskId": task.id });
            let state = self.task_request("tasks/get", params, clock).await?;
            let state = TaskState::read(&state)?;
            pause = state.pause();
            let status = state.status.as_str();
            task.is_over = matches!(status, "completed" | "failed" | "cancelled");
            match status {
                "working" => {}
                "input_required" => {
                    if let Some(requests) = state.input_requests {
                        let requests = read_requests(requests)?;
                        self.update_task(&task, requests, &mut answered, clock)
                            .await?;
                    }
                }
                "completed" => {
                    let missing = || CallFailure::malformed("its task ended without a result");
                    return Ok(state.result.ok_or_else(missing)?.to_owned());
                }
                "failed" | "cancelled" => {
                    let error = session.redacted_error(state.error());
                    return Err(CallFailure::refused(error));
                }
                _ => {
                    let reason = "the status of its task is unknown";
                    return Err(CallFailure::malformed(reason));
                }
            }
        }
    }

    /// Answers those requests of a task that were not answered before.
    async fn update_task(
        &self,
        task: &Task,
        mut requests: Map<String, Value>,
        answered: &mut HashSet<String>,
        clock: &mut Clock,
    ) -> Result<(), CallFailure> {
        requests.retain(|key, _| answered.insert(key.clone()));
        if answered.len() > MAX_ANSWERS {
            return Err(CallFailure::input(format!(
                "the tool still wants input after {MAX_ANSWERS} answers"
            )));
        }
        if !requests.is_empty() {
            let (answers, _) = self.answer_inputs(&requests).await?;
            let params = json!({ "taskId": task.id, "inputResponses": answers });
            self.task_request("tasks/update", params, clock).await?;
        }
        Ok(())
    }

    async fn task_request(
        &self,
        method: &'static str,
        params: Value,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let request = Request {
            context: Some(self.context()),
            ..Request::new(method, params)
        };
        Ok(self.session.send(request, Some(clock)).await?.0)
    }
}

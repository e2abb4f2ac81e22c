//! Calls that a server answers with a task (2026-07-28, `io.modelcontextprotocol/tasks`):
//! polled to the end, and cancelled when the call is given up.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{Round, read_requests};
use crate::clock::Clock;
use crate::failure::CallFailure;
use crate::json_rpc::read_error;
use crate::list::misfit;
use crate::request::{Request, Session};

/// The shortest and the longest time between polls, whatever the server suggests.
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(5 * 60);
const DEFAULT_POLL: Duration = Duration::from_secs(1);
const MAX_ID_BYTES: usize = 4_096;
/// The time a server has to take the end of a task for which nothing waits.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);
/// The answers that one task may ask for.
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
            .map_err(|error| CallFailure::malformed(format!("its task: {}", misfit(&error))))
    }

    /// The wait before the next poll.
    fn pause(&self) -> Duration {
        let suggested = self.poll_interval_ms.filter(|ms| *ms >= 0.0);
        let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
        suggested.map_or(DEFAULT_POLL, |pause| {
            pause.clamp(SHORTEST_POLL, LONGEST_POLL)
        })
    }
}

/// A task that is followed. Dropping it cancels the task, unless it is over.
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

impl Round<'_> {
    /// Follows the task in an answer to its end, and gives it the input that it asks for.
    pub(crate) async fn follow(
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
        self.caller.is_task(&session.server, self.call.tool);
        // A task that is over, or asks for something, is looked at without a pause.
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
            let state = self.ask("tasks/get", params, clock).await?;
            let state = TaskState::read(&state)?;
            pause = state.pause();
            let status = state.status.as_str();
            task.is_over = matches!(status, "completed" | "failed" | "cancelled");
            match status {
                "working" => {}
                "input_required" => {
                    let Some(requests) = state.input_requests else {
                        continue;
                    };
                    let mut requests = read_requests(requests)?;
                    requests.retain(|key, _| answered.insert(key.clone()));
                    if answered.len() > MAX_ANSWERS {
                        return Err(CallFailure::input(format!(
                            "the tool still wants input after {MAX_ANSWERS} answers"
                        )));
                    }
                    if !requests.is_empty() {
                        let (answers, _) = self.inputs(&requests).await?;
                        let params = json!({ "taskId": task.id, "inputResponses": answers });
                        self.ask("tasks/update", params, clock).await?;
                    }
                }
                "completed" => {
                    let missing = || CallFailure::malformed("its task ended without a result");
                    return Ok(state.result.ok_or_else(missing)?.to_owned());
                }
                "failed" | "cancelled" => {
                    let error = state.error.map(read_error).unwrap_or_else(|| {
                        let message = format!("the server's task is {status}");
                        let message = state.status_message.unwrap_or(message);
                        ErrorData::internal_error(message, None)
                    });
                    return Err(CallFailure::refused(session.redacted_error(error)));
                }
                _ => {
                    let reason = "its task has a status that clients do not know";
                    return Err(CallFailure::malformed(reason));
                }
            }
        }
    }

    /// Sends a request about a task.
    async fn ask(
        &self,
        method: &'static str,
        params: Value,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let request = Request {
            who: Some(self.who()),
            ..Request::new(method, params)
        };
        self.session.request_within(request, clock).await
    }
}

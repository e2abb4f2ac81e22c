//! Runs as tasks, for clients with the extension `io.modelcontextprotocol/tasks` (MCP
//! 2026-07-28).

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelTaskParams, DetailedTask, ErrorData, GetTaskParams, GetTaskResult, JsonObject, Task,
    TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::task_manager::current_timestamp;
use serde::Serialize;

use super::Runs;
use super::client::Client;
use super::progress::RunState;
use super::served_run::ServedRun;
use super::store::KEPT_TIME;

/// The interval at which a client should poll a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Runs {
    pub(crate) fn get_task(
        &self,
        request: &GetTaskParams,
        client: &Client,
    ) -> Result<GetTaskResult, ErrorData> {
        let run = self.task_run(&request.task_id)?;
        let payload = payload(&run, client);
        Ok(GetTaskResult::new(DetailedTask::new(
            self.task(&run),
            payload,
        )))
    }

    /// Answers `tasks/update`: passes the answers on.
    pub(crate) fn update_task(&self, request: UpdateTaskParams) -> Result<(), ErrorData> {
        let run = self.task_run(&request.task_id)?;
        run.pending.answer_all(request.input_responses);
        Ok(())
    }

    pub(crate) fn cancel_task(&self, request: &CancelTaskParams) -> Result<(), ErrorData> {
        self.task_run(&request.task_id)?.cancel.cancel();
        Ok(())
    }

    fn task_run(&self, id: &str) -> Result<Arc<ServedRun>, ErrorData> {
        // Only a run whose id a client got is a task.
        let run = self.store.get(id).filter(|run| run.is_detached());
        run.ok_or_else(|| {
            let message = "no task has this id: the id is wrong, or the task ended too long ago";
            ErrorData::invalid_params(message, None)
        })
    }

    pub(super) fn task(&self, run: &ServedRun) -> Task {
        let outcome = run.outcome();
        let updated = outcome.as_ref().map(|outcome| outcome.ended.clone());
        let updated = updated.unwrap_or_else(current_timestamp);
        let begun = run.begun.clone();
        let task = Task::new(run.id.clone(), TaskStatus::Working, begun, updated)
            .with_ttl_ms(millis(run.max_time.saturating_add(KEPT_TIME)))
            .with_poll_interval_ms(millis(POLL_INTERVAL));
        let state = run.progress.state();
        if outcome.is_none() && state != RunState::default() {
            task.with_status_message(state.to_string())
        } else {
            task
        }
    }
}

fn payload(run: &ServedRun, client: &Client) -> TaskPayload {
    let Some(outcome) = run.outcome() else {
        return match run.pending.show(client.capabilities) {
            Some(input_requests) => TaskPayload::InputRequired { input_requests },
            None => TaskPayload::Working,
        };
    };
    match outcome.answer.clone() {
        // A cancelled script has a report, but a cancelled task has no result.
        Ok(_) if outcome.is_cancelled => TaskPayload::Cancelled,
        Ok(result) => TaskPayload::Completed {
            result: object(&result),
        },
        Err(error) => TaskPayload::Failed {
            error: object(&error),
        },
    }
}

fn object(value: &impl Serialize) -> JsonObject {
    let value = serde_json::to_value(value).and_then(serde_json::from_value);
    value.unwrap_or_default()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

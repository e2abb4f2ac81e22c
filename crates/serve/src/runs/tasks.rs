//! Runs and calls as tasks, for clients that have them (the extension
//! `io.modelcontextprotocol/tasks` of MCP 2026-07-28).

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CancelTaskParams, CreateTaskResult, DetailedTask, ErrorData, GetTaskParams, GetTaskResult,
    JsonObject, Task, TaskPayload, TaskStatus, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::current_timestamp;
use serde::Serialize;
use serde_json::Value;

use super::Runs;
use super::client::Client;
use super::news::SoFar;
use super::run::Run;

/// How often a client is to ask how far a task is.
const POLL: Duration = Duration::from_secs(1);

impl Runs {
    /// Answers `tasks/get`.
    ///
    /// # Errors
    ///
    /// That there is no such task.
    pub(crate) fn get_task(
        &self,
        request: &GetTaskParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let run = self.task(&request.task_id)?;
        let payload = payload(&run, &Client::of(context));
        Ok(GetTaskResult::new(DetailedTask::new(
            self.as_task(&run),
            payload,
        )))
    }

    /// Answers `tasks/update`: hands over the answers that somebody waits for.
    ///
    /// # Errors
    ///
    /// That there is no such task.
    pub(crate) fn update_task(&self, request: UpdateTaskParams) -> Result<(), ErrorData> {
        let run = self.task(&request.task_id)?;
        run.board.answer_any(request.input_responses);
        Ok(())
    }

    /// Answers `tasks/cancel`.
    ///
    /// # Errors
    ///
    /// That there is no such task.
    pub(crate) fn cancel_task(&self, request: &CancelTaskParams) -> Result<(), ErrorData> {
        self.task(&request.task_id)?.cancel();
        Ok(())
    }

    /// What a client gets that left a run and has tasks.
    pub(super) fn new_task(&self, run: &Arc<Run>) -> CreateTaskResult {
        CreateTaskResult::new(self.as_task(run))
    }

    fn task(&self, id: &str) -> Result<Arc<Run>, ErrorData> {
        // Only what a client was told to be a task is one.
        let run = self.store.get(id).filter(|run| run.is_left());
        run.ok_or_else(|| {
            let message = "no task has this id: it never was, or it ended too long ago";
            ErrorData::invalid_params(message, None)
        })
    }

    fn as_task(&self, run: &Run) -> Task {
        let outcome = run.outcome();
        let updated = outcome.as_ref().map(|outcome| outcome.ended.clone());
        let task = Task::new(
            run.id.clone(),
            TaskStatus::Working,
            run.begun.clone(),
            updated.unwrap_or_else(current_timestamp),
        );
        let task = task
            .with_ttl_ms(millis(self.lasts(run)))
            .with_poll_interval_ms(millis(POLL));
        let so_far = run.news.so_far();
        match outcome {
            // Of a call without a script there is no such news.
            None if so_far != SoFar::default() => task.with_status_message(so_far.to_string()),
            _ => task,
        }
    }
}

fn payload(run: &Run, client: &Client) -> TaskPayload {
    let Some(outcome) = run.outcome() else {
        return match run.board.show(client.can) {
            Some((_, input_requests)) => TaskPayload::InputRequired { input_requests },
            None => TaskPayload::Working,
        };
    };
    match outcome.answer() {
        // A script that was cancelled has a report, but a task has no result then.
        Ok(_) if outcome.is_cancelled => TaskPayload::Cancelled,
        Ok(result) => TaskPayload::Completed {
            result: as_object(&result),
        },
        Err(error) => TaskPayload::Failed {
            error: as_object(&error),
        },
    }
}

fn as_object(value: &impl Serialize) -> JsonObject {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => object,
        _ => JsonObject::new(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

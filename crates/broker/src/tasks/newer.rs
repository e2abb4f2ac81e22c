//! The extension of 2026-07-28 (`io.modelcontextprotocol/tasks`).

use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::ErrorData;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::{Followed, MAX_ID_BYTES, Task, malformed, pause, strange_status};
use crate::calls::{Kind, read_requests};
use crate::failure::Failure;
use crate::object::object;
use crate::refusal::{error_data, fit};
use crate::session::Session;

/// How many answers one task may want. A server that has not got what it needs by
/// then is going round in circles.
const MAX_ANSWERS: usize = 1_000;

/// Answers that were refused when they were given again.
struct Doubtful {
    keys: Vec<String>,
    refusal: Failure,
}

pub(super) async fn poll(
    followed: &Followed<'_>,
    first: &Task<'_>,
) -> Result<Box<RawValue>, Failure> {
    let (session, patience) = (followed.session, followed.patience);
    // One that is over, or wants something, at once need not be waited for.
    let mut pause = match first.status.as_str() {
        "working" => pause(first),
        _ => Duration::ZERO,
    };
    // What it asked for stays in what it says until it has seen the answers.
    let mut answered = HashSet::new();
    let mut unsettled: Option<Doubtful> = None;
    loop {
        sleep(pause).await;
        let answer = followed.ask("tasks/get", patience).await?;
        if let Kind::InputRequired = session.kind(&answer)? {
            return Err(Failure::Malformed(
                "its task's resultType is none of such a request".to_owned(),
            ));
        }
        let task: Task<'_> = object(answer.get()).map_err(|e| malformed(&e))?;
        pause = super::pause(&task);
        if matches!(task.status.as_str(), "completed" | "failed" | "cancelled") {
            followed.is_over();
        }
        // What it shows now settles it.
        let doubtful = unsettled.take();
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
                let asked = task.input_requests.map(read_requests);
                let mut requests = asked.transpose()?.unwrap_or_default();
                if let Some(Doubtful { keys, refusal }) = doubtful
                    && requests.iter().any(|(key, _)| keys.contains(key))
                {
                    return Err(refusal);
                }
                requests.retain(|(key, _)| !answered.contains(key));
                if requests.is_empty() {
                    continue;
                }
                let (responses, _pages) = session.inputs(followed.call, &requests).await?;
                for (key, _) in &requests {
                    if key.len() > MAX_ID_BYTES || answered.len() == MAX_ANSWERS {
                        return Err(Failure::Input(format!(
                            "the tool still wants input after {MAX_ANSWERS} answers, or by a name \
                             of more than {MAX_ID_BYTES} bytes"
                        )));
                    }
                    answered.insert(key.clone());
                }
                let refused = followed.update(&responses, patience).await?;
                unsettled = refused.map(|refusal| Doubtful {
                    keys: requests.into_iter().map(|(key, _)| key).collect(),
                    refusal,
                });
            }
            "working" => {}
            _ => return Err(strange_status()),
        }
    }
}

fn failed(session: &Session, task: &Task<'_>) -> Failure {
    let error = match (task.error, &task.status_message) {
        (Some(error), _) => error_data(error),
        (None, Some(message)) => ErrorData::internal_error(message.clone(), None),
        (None, None) => ErrorData::internal_error("the task failed", None),
    };
    Failure::Refused(fit(error, &session.secrets))
}

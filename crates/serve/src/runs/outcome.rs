//! What a run came to, as its client is told.

use std::sync::Arc;

use callgate::{RunReport, Status};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use rmcp::task_manager::current_timestamp;

use super::resources;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    content: Vec<ContentBlock>,
    is_error: bool,
    /// The whole answer of a call that no script made.
    called: Option<Box<Result<CallToolResult, ErrorData>>>,
    /// Why there is no report.
    lost: Option<&'static str>,
    /// Whether it was cancelled.
    pub(crate) is_cancelled: bool,
    /// All that the script printed and returned, where that was cut in the
    /// report.
    pub(crate) whole: Option<Arc<str>>,
    /// When it ended, as RFC 3339 has it.
    pub(crate) ended: String,
}

impl Outcome {
    /// What this report says, of the run with this id.
    pub(crate) fn of(report: &RunReport, run: &str) -> Self {
        let mut text = report.to_string();
        if let Some(whole) = &report.whole {
            let uri = resources::uri(run);
            text.push_str(&format!(
                "the whole output, {} bytes, is the resource {uri}; the tool wait reads a part of it: \
                 {{ \"run\": {run:?}, \"offset\": 0 }}\n",
                whole.len(),
            ));
        }
        let mut content = vec![ContentBlock::text(text)];
        let emitted = report.emitted.iter();
        content.extend(emitted.filter_map(|block| {
            let block = serde_json::to_value(block).ok()?;
            serde_json::from_value(block).ok()
        }));
        Self {
            content,
            is_error: report.status != Status::Completed,
            called: None,
            lost: None,
            is_cancelled: report.status == Status::Cancelled,
            whole: report.whole.clone(),
            ended: current_timestamp(),
        }
    }

    /// The answer of a call that no script made.
    pub(crate) fn of_call(called: Result<CallToolResult, ErrorData>) -> Self {
        Self {
            called: Some(Box::new(called)),
            ..Self::lost()
        }
    }

    /// A call that no script made was cancelled, or went on for too long.
    pub(crate) fn cancelled_call() -> Self {
        let text = "the call was cancelled, or went on for longer than a run may";
        Self {
            is_cancelled: true,
            ..Self::of_call(Ok(CallToolResult::error(vec![ContentBlock::text(text)])))
        }
    }

    /// The task of the run is gone.
    pub(crate) fn lost() -> Self {
        Self {
            content: Vec::new(),
            is_error: true,
            called: None,
            lost: Some("the task of the run ended abnormally"),
            is_cancelled: false,
            whole: None,
            ended: current_timestamp(),
        }
    }

    /// The answer to whoever waits for the run.
    ///
    /// # Errors
    ///
    /// Where the run came to nothing that is its script's doing, and what a
    /// call that no script made was refused with.
    pub(crate) fn answer(&self) -> Result<CallToolResult, ErrorData> {
        if let Some(called) = &self.called {
            return (**called).clone();
        }
        if let Some(lost) = self.lost {
            return Err(ErrorData::internal_error(lost, None));
        }
        let content = self.content.clone();
        Ok(match self.is_error {
            false => CallToolResult::success(content),
            true => CallToolResult::error(content),
        })
    }

    /// Bytes, roughly, that it takes to keep it.
    pub(crate) fn bytes(&self) -> usize {
        let block = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => text.text.len(),
            ContentBlock::Image(image) => image.data.len(),
            ContentBlock::Audio(audio) => audio.data.len(),
            other => serde_json::to_string(other).map_or(0, |json| json.len()),
        };
        let whole = self.whole.as_ref().map_or(0, |whole| whole.len());
        let called = self.called.as_ref().map_or(0, |called| {
            serde_json::to_string(called).map_or(0, |json| json.len())
        });
        self.content.iter().map(block).sum::<usize>() + whole + called
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_came_to_counts() {
        let text = ContentBlock::text("x".repeat(1000));
        let result = Outcome::of_call(Ok(CallToolResult::success(vec![text])));
        let refused = ErrorData::invalid_params("y".repeat(1000), None);
        let refused = Outcome::of_call(Err(refused));
        for outcome in [result, refused] {
            assert!((1000..1200).contains(&outcome.bytes()), "{outcome:?}");
        }
        assert_eq!(Outcome::lost().bytes(), 0);
    }
}

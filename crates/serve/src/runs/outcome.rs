//! Outcomes of runs, as answers.

use std::sync::Arc;
use std::time::Instant;

use callgate::{RunReport, Status};
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject, MetaObject};
use rmcp::task_manager::current_timestamp;
use serde_json::{Value, json};

/// The member of `_meta` that has the report of a run.
const REPORT: &str = "callgate/report";
/// Calls in it.
const MAX_CALLS: usize = 100;

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The answer to waiting requests: a protocol error for a failed call or a lost run.
    pub(crate) answer: Result<CallToolResult, ErrorData>,
    pub(crate) is_cancelled: bool,
    /// The whole output and value of a script, or text of a call, if the answer cuts them.
    pub(crate) whole: Option<Arc<str>>,
    /// The time of the end, in RFC 3339.
    pub(crate) ended: String,
    pub(crate) since: Instant,
    /// The approximate size in bytes.
    pub(crate) bytes: usize,
}

/// The URI of a run's whole output.
pub(crate) fn output_uri(run: &str) -> String {
    format!("callgate://runs/{run}/output")
}

/// The first byte of a whole output that its report does not show.
fn cut_at(report: &RunReport, whole: &str) -> usize {
    let (begin, shown) = match &report.value {
        Some(value) if report.output.cut_bytes == 0 => {
            // The value is on the last line.
            let output = report.output.text.trim_end_matches('\n').len();
            (if output == 0 { 0 } else { output + 1 }, &value.text)
        }
        _ => (0, &report.output.text),
    };
    // A line about the cut comes first.
    let shown = shown.split_once('\n').map_or("", |(_, shown)| shown);
    let rest = whole.get(begin..).unwrap_or_default();
    let same = rest.bytes().zip(shown.bytes()).take_while(|(a, b)| a == b);
    whole.floor_char_boundary(begin + same.count())
}

/// Replaces the texts of a result by their start and end if they are over the limit, in bytes.
/// Returns the whole text if it is cut.
fn cut_texts(result: &mut CallToolResult, run: &str, limit: u64) -> Option<Arc<str>> {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    let texts: Vec<&str> = texts.map(|block| block.text.as_str()).collect();
    let whole = texts.join("\n");
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if whole.len() <= limit {
        return None;
    }
    let head = whole.get(..whole.floor_char_boundary(limit / 2))?;
    let tail = whole.get(whole.ceil_char_boundary(whole.len() - limit / 2)..)?;
    let (bytes, cut) = (whole.len(), whole.len() - head.len() - tail.len());
    let uri = output_uri(run);
    let shown = format!(
        "[{cut} of {bytes} bytes are cut: the beginning and the end follow]\n\
         {head}\n[…]\n{tail}\n\
         [the whole result is the resource {uri}; to read less, ask the tool for less: a filter, a \
         page, fewer fields]\n"
    );
    result.content.retain(|block| block.as_text().is_none());
    result.content.insert(0, ContentBlock::text(shown));
    Some(whole.into())
}

/// The report as data for the client's program: as in docs/report.md, without the output, the value
/// and what was emitted, which are the content, and with the first calls only.
fn report_data(report: &RunReport) -> Value {
    let calls = report.calls.get(..MAX_CALLS).unwrap_or(&report.calls);
    json!({
        "version": report.version,
        "run": report.run,
        "status": report.status,
        "error": report.error,
        "calls": calls,
        "moreCalls": report.calls.len() - calls.len(),
        "denials": report.denials,
        "unavailable": report.unavailable,
        "warnings": report.warnings,
        "scriptMs": report.script_ms,
        "totalMs": report.total_ms,
    })
}

impl Outcome {
    /// The answer of a call without a script.
    pub(crate) fn of_call(answer: Result<CallToolResult, ErrorData>) -> Self {
        Self {
            bytes: serde_json::to_string(&answer).map_or(0, |json| json.len()),
            answer,
            is_cancelled: false,
            whole: None,
            ended: current_timestamp(),
            since: Instant::now(),
        }
    }

    /// The answer of the call with this id. Texts over the limit, in bytes, are cut, and kept in
    /// whole.
    pub(crate) fn of_long_call(
        mut answer: Result<CallToolResult, ErrorData>,
        run: &str,
        limit: u64,
    ) -> Self {
        let result = answer.as_mut().ok();
        let whole = result.and_then(|result| cut_texts(result, run, limit));
        let call = Self::of_call(answer);
        Self {
            bytes: call.bytes + whole.as_ref().map_or(0, |whole| whole.len()),
            whole,
            ..call
        }
    }

    /// The report of the run with this id. `is_structured`: its data are also the structured content.
    pub(crate) fn of_script(report: &RunReport, run: &str, is_structured: bool) -> Self {
        let mut text = report.to_string();
        if let Some(whole) = &report.whole {
            text += &format!(
                "the whole output has {} bytes; print less, or read on from the cut: call wait with \
                 {{ \"run\": {run:?}, \"offset\": {} }}\n",
                whole.len(),
                cut_at(report, whole)
            );
        }
        let mut content = vec![ContentBlock::text(text)];
        content.extend(report.emitted.iter().filter_map(|block| {
            let block = serde_json::to_value(block).ok()?;
            serde_json::from_value(block).ok()
        }));
        let mut answer = if report.status == Status::Completed {
            CallToolResult::success(content)
        } else {
            CallToolResult::error(content)
        };
        let data = report_data(report);
        if is_structured {
            answer.structured_content = Some(data.clone());
        }
        answer.meta = Some(MetaObject(JsonObject::from_iter([(
            REPORT.to_owned(),
            data,
        )])));
        let call = Self::of_call(Ok(answer));
        Self {
            is_cancelled: report.status == Status::Cancelled,
            bytes: call.bytes + report.whole.as_ref().map_or(0, |whole| whole.len()),
            whole: report.whole.clone(),
            ..call
        }
    }

    /// A call without a script that was cancelled, or exceeded the time limit of a run.
    pub(crate) fn cancelled_call() -> Self {
        let text = "the call was cancelled, or took longer than the time limit of a run";
        Self {
            is_cancelled: true,
            ..Self::of_call(Ok(CallToolResult::error(vec![ContentBlock::text(text)])))
        }
    }

    /// The run's task ended abnormally.
    pub(crate) fn lost() -> Self {
        let lost = "the task of the run ended abnormally";
        Self::of_call(Err(ErrorData::internal_error(lost, None)))
    }
}

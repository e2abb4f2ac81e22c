//! A call of a run as the report shows it.

use callgate_policy::flow::FlowRecord;
use serde::Serialize;

use super::outcome::Outcome;
use crate::ask::Answer;

/// One call of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerLine {
    /// 1 for the run's first call.
    pub ordinal: usize,
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The decision in words; empty before there is one.
    pub decision: String,
    /// The answer to the question about the call; absent if there was no question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The name of the person or program that answered, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The way by which the answer came, such as `terminal`, or the question about a different call
    /// whose answer covers this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_via: Option<String>,
    /// The reason for a refusal, in the words of the person or program that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_reason: Option<String>,
    /// True if the arguments are those of the answer, in place of the script's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// The advice on a call that was denied; empty for any other.
    #[serde(skip)]
    pub advice: String,
    /// The start of the arguments as they are sent, in one line; empty if they are not a JSON
    /// object.
    #[serde(skip)]
    pub arguments: String,
    /// The line of the call in the script, from 1, if the worker says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The time when the script called: RFC 3339, UTC.
    pub at: String,
    /// The arguments' size, in bytes of JSON.
    pub argument_bytes: usize,
    /// SHA-256 of the arguments as they are sent, in hexadecimal; absent if they are not a JSON
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_sha256: Option<String>,
    /// Copies of other servers' results in the arguments, without the data. Those that rules
    /// are strictest about come first. At most 16, and at most 10,000 of all calls of a run, but
    /// always one of each call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// The number of flows that are not in `flows`.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_flows: usize,
    /// The size of the value the script got, in bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// SHA-256 of that value, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// The reason why the result was not checked against the tool's `outputSchema`; absent if it
    /// was checked, or the tool has no schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// The time from the start of the run to the call, in milliseconds.
    pub started_ms: u64,
    /// The time from the decision to the outcome, in milliseconds; absent for a call that was
    /// not sent or has no outcome yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// The end of the call.
    #[serde(flatten)]
    pub outcome: Outcome,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

//! The records of a store. A field that a later version adds has a default.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A text or value that a record names: its size and hash, and the blob if it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    pub bytes: u64,
    /// The hash of the blob with the text, for [`Store::blob`](crate::Store::blob); `None` if only
    /// hash and size are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// The configuration of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    /// The file.
    pub path: Option<String>,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: Option<String>,
    /// The folder that the run works in.
    pub folder: Option<String>,
}

/// The status of a run: those of its report, and two more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RunStatus {
    /// The run has not ended.
    #[default]
    Running,
    Completed,
    Failed,
    Denied,
    DryRun,
    Limit,
    MissingServer,
    Cancelled,
    /// The process of the run ended before the run.
    Lost,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RunRecord {
    pub id: String,
    /// The user; empty in a program without users.
    pub user: String,
    /// The owner: the process of the run.
    pub owner: String,
    /// The client's name and version, in its own words.
    pub client: Option<String>,
    /// The way that the run was started, such as `stdio`.
    pub face: String,
    pub configuration: Configuration,
    /// The script; `None` for a call without one.
    pub script: Option<Body>,
    /// The program's version.
    pub version: String,
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    pub status: RunStatus,
    pub output: Option<Body>,
    /// The report. Lists leave it out.
    pub report: Option<Value>,
}

/// A call of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CallRecord {
    pub run: String,
    /// 1 for the run's first call.
    pub ordinal: u32,
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The line of the call in the script, from 1.
    pub line: Option<u32>,
    /// The decision in words.
    pub decision: Option<String>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Other servers' data in the arguments.
    pub flows: Option<Value>,
    pub arguments: Option<Body>,
    /// The time when the script called.
    pub called: Timestamp,
    /// The time of the outcome; a call with it is complete.
    pub ended: Option<Timestamp>,
    /// The time from the decision to the outcome; `None` for a call that was not sent.
    pub took_ms: Option<u64>,
    /// The outcome as the ledger has it.
    pub outcome: Option<Value>,
    pub result: Option<Body>,
}

/// The state of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum QuestionState {
    #[default]
    Open,
    Answered,
    /// There was no answer in time.
    Expired,
    /// The run no longer waits.
    Withdrawn,
}

/// A choice of the person who answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Choice {
    /// This call is denied.
    #[default]
    Deny,
    /// Later calls of the function in this run are denied, too.
    DenyRun,
    /// This call is allowed.
    Once,
    /// Later calls of the function in this run are allowed, too.
    Run,
    /// Later calls of the function in this session are allowed, too.
    Session,
    /// Later calls of the function are allowed, too.
    Always,
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct AnswerRecord {
    pub choice: Choice,
    /// The arguments to send instead.
    pub edited: Option<Body>,
    /// The sentence for the script, of a denial.
    pub reason: Option<String>,
    /// The person or program.
    pub by: String,
    /// The way of the answer, such as `terminal`.
    pub via: String,
    pub at: Timestamp,
}

/// The question whether a call may be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct QuestionRecord {
    pub id: String,
    pub run: String,
    /// The owner: the process of the run that waits.
    pub owner: String,
    pub user: String,
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    pub arguments: Body,
    /// The rule that asks.
    pub rule: Option<String>,
    /// The line of the call in the script, from 1.
    pub line: Option<u32>,
    /// Other servers' data in the arguments.
    pub flows: Option<Value>,
    pub asked: Timestamp,
    pub expires: Timestamp,
    pub state: QuestionState,
    /// The time when the question was answered, expired or was withdrawn.
    pub closed: Option<Timestamp>,
    /// The reason why the question was withdrawn.
    pub withdrawn: Option<String>,
    pub answer: Option<AnswerRecord>,
    /// The texts for the person who answers. A store keeps them only while the question is open.
    pub texts: Option<QuestionTexts>,
}

/// The texts of a question for the person who answers, as [`QuestionRecord::texts`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct QuestionTexts {
    /// The question with the start and the end of its long texts, in rows that are not laid out.
    pub short: String,
    /// The whole question, likewise. Lists leave it out.
    pub whole: String,
    /// The reason for the question.
    pub reason: String,
    /// The arguments as JSON text; `None` if they are too long to edit. Lists leave them out.
    pub arguments: Option<String>,
    /// The choices that differ in their effect.
    pub offers: Vec<Offer>,
    /// The place that keeps a [`Choice::Always`].
    pub keeps_in: Option<String>,
    /// True if a script makes the call.
    pub script: bool,
}

/// A choice that a question offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Offer {
    pub choice: Choice,
    /// The effect in words, such as `all calls of this tool in this run`.
    pub effect: String,
}

impl Offer {
    /// A choice with its effect.
    pub fn new(choice: Choice, effect: String) -> Self {
        Self { choice, effect }
    }
}

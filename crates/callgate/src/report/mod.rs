//! The report of a run: one [`RunReport`], however the run ended.
//!
//! A report has two forms: the short text for a model or a terminal (its
//! [`Display`](std::fmt::Display)), and JSON (`serde`), described in docs/report.md.

pub(crate) mod build;
pub(crate) mod calls;
pub(crate) mod emitted;
mod kept;
pub(crate) mod text;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use callgate_gate::{LedgerLine, Withheld};
use callgate_sandbox::Jail;
use callgate_servers::Audience;
use serde::Serialize;
use serde_json::value::RawValue;

pub use crate::position::Position;
pub use crate::type_check::{CheckStatus, TypeCheck, TypeError};
pub use emitted::Emitted;

/// The value of [`RunReport::version`].
pub(crate) const REPORT_VERSION: u32 = 1;

/// The report of one run: output, value or error, and every call.
///
/// Every run has exactly one report, however it ended.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunReport {
    /// The version of the JSON form. It changes when a field changes its meaning or goes
    /// away, not when one is added.
    pub version: u32,
    /// The script's name, as messages and stack traces show it.
    pub script: Arc<str>,
    /// The outcome of the run.
    pub status: Status,
    /// The error; `None` exactly when `status` is [`Status::Completed`].
    pub error: Option<RunError>,
    /// The output of `console`.
    pub output: Output,
    /// The returned value; `None` for `undefined` and for a run that did not complete.
    pub value: Option<Returned>,
    /// The content blocks of `mcp.emit`, in order.
    pub emitted: Vec<Emitted>,
    /// The whole output and value, if `output` or `value` is cut and
    /// [`Limits::whole_bytes`](crate::settings::Limits::whole_bytes) has room. Not in the JSON form.
    #[serde(skip)]
    pub whole: Option<Arc<str>>,
    /// The run's id, also in the ledger: `r-` and 16 hexadecimal digits. `None` if no script ran.
    pub run: Option<String>,
    /// Every call that was decided on, in the order of the calls.
    pub calls: Vec<LedgerLine>,
    /// The number of lookups with `mcp.searchTools` and `mcp.getToolDetails`.
    pub lookups: u64,
    /// The denied calls, grouped by function, line and reason.
    pub denials: Vec<Denial>,
    /// The calls that a dry run did not make, in order; `None` for any other run.
    pub dry_run: Option<Vec<Withheld>>,
    /// The type check; `None` if it is off or the run ended before it.
    pub check: Option<TypeCheck>,
    /// Timers of the script that never fired, and why.
    pub warnings: Vec<Warning>,
    /// Servers that could not be used, with reasons.
    pub unavailable: Vec<Unavailable>,
    /// The kernel layers around the script; `None` if no script ran.
    #[doc(hidden)]
    pub sandbox: Option<Jail>,
    /// The readers of the text form.
    #[serde(skip)]
    pub(crate) audience: Audience,
    /// Milliseconds that count against the script-time limit: without waiting for tools and
    /// answers.
    pub script_ms: u64,
    /// Milliseconds from the request to this report.
    pub total_ms: u64,
}

impl RunReport {
    /// Adds a warning that is about no line of the script.
    #[doc(hidden)]
    pub fn warn(&mut self, message: &str) {
        self.warnings.push(Warning {
            line: None,
            message: message.to_owned(),
        });
    }
}

/// A report is an error where [`Gate::preview`](crate::Gate::preview) returns it.
impl std::error::Error for RunReport {}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Status {
    /// The script ran to its end.
    #[default]
    Completed,
    /// The script does not parse, has type errors, threw, never settled, or its worker died.
    Failed,
    /// A call was denied and the script did not catch the error.
    Denied,
    /// A dry run did not make a call, and the script did not catch the error.
    DryRun,
    /// A limit ended the run.
    Limit,
    /// The script names tools of a server that did not start; nothing ran.
    MissingServer,
    /// The caller cancelled the run.
    Cancelled,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Status::DryRun => "dry run",
            Status::MissingServer => "missing server",
            other => other.name(),
        })
    }
}

impl Status {
    /// The status in the JSON form.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Denied => "denied",
            Status::DryRun => "dryRun",
            Status::Limit => "limit",
            Status::MissingServer => "missingServer",
            Status::Cancelled => "cancelled",
        }
    }

    /// The exit code of a command with this status. 2 is for usage and configuration errors,
    /// which come before any run.
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Completed | Status::DryRun => 0,
            Status::Failed => 1,
            Status::Denied => 3,
            Status::Limit => 4,
            Status::MissingServer => 5,
            Status::Cancelled => 130,
        }
    }
}

/// Why a run did not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunError {
    /// The kind of error, for programs.
    pub kind: ErrorKind,
    /// The class of the thrown error, such as `TypeError`; `None` if nothing was thrown.
    pub name: Option<String>,
    /// The message for people, without class and position.
    pub message: String,
    /// The place in the author's text, if known.
    pub position: Option<Position>,
    /// The stack of a thrown error in the author's positions, one frame a line.
    pub stack: String,
    /// The limit that ended the run, for [`ErrorKind::Limit`].
    pub limit: Option<LimitHit>,
    /// Advice, if there is any.
    pub hint: Option<String>,
}

/// The kind of a [`RunError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not an acceptable script.
    Syntax,
    /// The script has type errors; nothing ran.
    Types,
    /// The script could not be type-checked, and the mode requires that; nothing ran.
    Unchecked,
    /// The script threw and did not catch it.
    Exception,
    /// A call was denied, and the script did not catch that.
    Denied,
    /// A dry run did not make a call, and the script did not catch that.
    DryRun,
    /// A limit was reached.
    Limit,
    /// The script waits for a promise that nothing can settle.
    NeverSettled,
    /// A server that the script needs did not start.
    MissingServer,
    /// A deny rule, or a different setting that restricts, matches no tool; nothing ran.
    Configuration,
    /// The worker process died or broke the protocol.
    Crashed,
    /// The worker tried a forbidden system call, and the kernel killed it: a bug, or an
    /// attempt to break out of the sandbox.
    SystemCall,
    /// The caller cancelled the run.
    Cancelled,
}

/// A limit that ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitHit {
    /// The limit's name in the configuration's `limits`; `calls` is not set there.
    pub which: String,
    /// The limit, in `unit`.
    pub limit: u64,
    /// The value that ended the run, in `unit`.
    pub observed: u64,
    /// `ms`, `bytes` or `calls`.
    pub unit: String,
}

/// The output of a script, with its middle cut out if it was over the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Output {
    /// The kept text. If something was cut, its first line says how much, and the start and the
    /// end of the output follow.
    pub text: String,
    /// Bytes of the whole output.
    pub bytes: u64,
    /// Bytes that are not in `text`.
    pub cut_bytes: u64,
    /// Bytes of the end of the output in `text`.
    #[serde(skip)]
    pub(crate) tail_bytes: usize,
    /// True if all of the kept end is for standard error.
    #[serde(skip)]
    pub(crate) tail_is_error: bool,
}

/// The value that a script returned.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Returned {
    /// The value as JSON, if it fits the output limit.
    pub json: Option<Box<RawValue>>,
    /// The value as text: the JSON, or its start and end if it was cut.
    pub text: String,
    /// Size of the whole value's JSON in bytes.
    pub bytes: u64,
    /// Bytes of the value that are not in `text`.
    pub cut_bytes: u64,
}

/// Denials of one function, at one line, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Denial {
    /// The generated function name.
    pub function: String,
    /// The line of the call in the script, from 1, if known.
    pub line: Option<u32>,
    /// The reason.
    pub because: String,
    /// Advice: the person who can permit such a call, and how.
    pub advice: String,
    /// The number of calls.
    pub count: usize,
}

/// A part of the script that may not have done what its author expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Warning {
    /// The line in the script, from 1, if known.
    pub line: Option<u32>,
    /// The message for people, with the line.
    pub message: String,
}

/// A configured server that could not be used in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Unavailable {
    /// The server's name in the configuration.
    pub server: String,
    /// Why, and what to do.
    pub reason: String,
}

/// The items in groups of equal keys, in the order of the first of each group.
fn grouped<T, K: Eq + Hash>(
    items: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for item in items {
        let place = *places.entry(key(&item)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

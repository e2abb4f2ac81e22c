//! What a run leaves behind: one [`RunReport`], however the run ended.
//!
//! The report has two faces over the same data: the short text that goes to a
//! model or a terminal (its [`Display`](std::fmt::Display)), and JSON
//! (`serde`), whose shape docs/report.md describes.

mod build;
mod denials;
mod emitted;
mod text;

pub(crate) use build::{
    cancelled, ended, millis, missing_server, position, rejected, unfit, unread,
};
pub use denials::Denial;
pub use emitted::{Emitted, EmittedResource};
pub use text::{Printed, Problems};
pub(crate) use text::{write_check, write_dry_run};

use std::sync::Arc;

use callgate_broker::{LedgerLine, Withheld};
use callgate_sandbox::Jail;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::type_check::TypeCheck;

/// The version of the JSON shape; it changes when a field changes its meaning
/// or goes away, not when one is added.
pub const REPORT_VERSION: u32 = 1;

/// The end of one run: what it printed, what it returned or why it failed,
/// and every call it made.
///
/// There is exactly one for every run, whether the script returned, threw,
/// ran into a limit, was denied, was cancelled or took its worker down.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunReport {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The script's name, as messages and stack traces show it.
    pub script: Arc<str>,
    /// How the run ended.
    pub status: Status,
    /// Why it ended so; `None` exactly when `status` is [`Status::Completed`].
    pub error: Option<RunError>,
    /// What the script printed with `console`.
    pub output: Output,
    /// What the script returned; `None` for `undefined` and for a run that
    /// did not complete.
    pub value: Option<Returned>,
    /// What the script handed to its caller with `mcp.emit`, in order.
    pub emitted: Vec<Emitted>,
    /// All that was printed and then returned, where some of it was cut in
    /// `output` or `value` and [`Limits::whole_bytes`](crate::Limits::whole_bytes)
    /// has room for it. Not part of the JSON form.
    #[serde(skip)]
    pub whole: Option<Arc<str>>,
    /// The run, as a ledger on disk names it: 128 random bits, as 32 hexadecimal
    /// digits. `None` where no script ran.
    pub run: Option<String>,
    /// Every call that was decided on, in the order in which it was asked for.
    pub calls: Vec<LedgerLine>,
    /// How often the script looked tools up, with `mcp.searchTools` and
    /// `mcp.getToolDetails`: those are no calls.
    pub lookups: u64,
    /// The calls that were denied, gathered by function, line and reason.
    pub denials: Vec<Denial>,
    /// The calls that a dry run did not make, in the order in which they were
    /// asked for; `None` for any other run.
    pub dry_run: Option<Vec<Withheld>>,
    /// What came of the type check; `None` where there was to be none, and
    /// where the run ended before it.
    pub check: Option<TypeCheck>,
    /// Servers that could not be used, and why.
    pub unavailable: Vec<Unavailable>,
    /// The kernel layers that were in force around the script; `None` where no
    /// script ran.
    pub sandbox: Option<Jail>,
    /// Milliseconds that count against the script-time limit: waiting for
    /// tools and for a person's answer is not in it.
    pub script_ms: u64,
    /// Milliseconds from the request to this report.
    pub total_ms: u64,
}

/// So that `?` passes on a report of a script that did not run, as
/// [`Gate::preview`](crate::Gate::preview) returns it.
impl std::error::Error for RunReport {}

impl RunReport {
    /// What the script printed and then, on a line of its own, what it
    /// returned: a string as it is, any other value as JSON.
    #[must_use]
    pub fn printed(&self) -> Printed<'_> {
        Printed(self)
    }

    /// Why the run failed, with the calls made so far, and what else its
    /// author should know; empty for a run without any of these.
    #[must_use]
    pub fn problems(&self) -> Problems<'_> {
        Problems(self)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Status {
    /// The script ran to its end.
    Completed,
    /// The script does not parse, has type errors, threw, never settled, or its
    /// worker died.
    Failed,
    /// A call was denied and the script did not catch the error.
    Denied,
    /// A dry run came to a call that it did not make, and the script did not
    /// catch the error that stood in for the result.
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
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Denied => "denied",
            Status::DryRun => "dry run",
            Status::Limit => "limit",
            Status::MissingServer => "missing server",
            Status::Cancelled => "cancelled",
        })
    }
}

impl Status {
    /// The exit code of a command that reports this status: 0 completed, and a
    /// dry run that went as far as it could, 1 failed, 3 denied, 4 limit, 5 missing server, 130 cancelled. 2 is left
    /// to usage and configuration errors, which come before any run.
    #[must_use]
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
    /// What went wrong, for programs.
    pub kind: ErrorKind,
    /// The class of the thrown error, such as `TypeError`; `None` where
    /// nothing was thrown.
    pub name: Option<String>,
    /// What went wrong, for people, without the class and the position.
    pub message: String,
    /// Where in the author's text, if it is known.
    pub position: Option<Position>,
    /// The stack of a thrown error in the author's positions, one frame a
    /// line; empty where there is none.
    pub stack: String,
    /// The limit that ended the run, for [`ErrorKind::Limit`].
    pub limit: Option<LimitHit>,
    /// What to do about it, where we know.
    pub hint: Option<String>,
}

/// What kind of failure a [`RunError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not an acceptable script.
    Syntax,
    /// The script has type errors; nothing ran.
    Types,
    /// There was no type check of the script, and the mode does not let it run
    /// without one; nothing ran.
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
    /// The worker process died or broke the protocol.
    Crashed,
    /// The worker tried a system call that it may not make, and the kernel
    /// killed it: a bug, or an attempt to break out of the sandbox.
    SystemCall,
    /// The caller cancelled the run.
    Cancelled,
}

/// A place in the author's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Position {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in UTF-16 units, counted from 1, as editors count.
    pub column: u32,
    /// The line's text, without its end; long lines are shortened.
    pub source_line: String,
}

/// A limit that ended a run, with what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitHit {
    /// The limit's name in the configuration's `limits`; `calls` is not set
    /// there.
    pub which: String,
    /// The limit, in `unit`.
    pub limit: u64,
    /// What was seen when the limit ended the run, in `unit`.
    pub observed: u64,
    /// `ms`, `bytes` or `calls`.
    pub unit: String,
}

/// What a script printed, with its middle cut out if it was over the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Output {
    /// The kept text. Where something was cut, its first line says how much,
    /// and `head` and `tail` of the output follow.
    pub text: String,
    /// Bytes (UTF-8) printed in all.
    pub bytes: u64,
    /// Bytes that are not in `text`.
    pub cut_bytes: u64,
}

/// What a script returned.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Returned {
    /// The value as JSON, if it fits the output limit.
    pub json: Option<Box<RawValue>>,
    /// The value as text: the JSON, or its head and tail where it was cut.
    pub text: String,
    /// Size of the whole value's JSON in bytes.
    pub bytes: u64,
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

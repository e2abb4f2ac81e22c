//! Why a server did not start, and why a call gave no result.

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::ruling::Ruling;
use callgate_auth::AuthError;
use callgate_auth::SourceError;

/// Codes that [`CallError::Protocol`] carries when the failure is the broker's
/// own finding. A server's own codes are passed on as they are, and lie outside
/// this range if the server keeps to JSON-RPC.
pub mod code {
    /// The server is gone, was not there, or did not start.
    pub const CONNECTION_CLOSED: i64 = -32000;
    /// What the server sent, or the script would get, was longer than the limit.
    pub const RESULT_TOO_LARGE: i64 = -32050;
    /// The server's answer is not what `tools/call` may answer.
    pub const MALFORMED_RESULT: i64 = -32051;
    /// The server wants input before it goes on, and there is none for it: the
    /// host cannot give it, it is too much, or is wanted again and again.
    pub const INPUT_REQUIRED: i64 = -32052;
    /// The run has made as many calls as a ledger holds, or as many lookups as it may; or
    /// too much of what it sends is under way.
    pub const TOO_MANY_CALLS: i64 = -32053;
    /// The ledger's file did not take the call's line, so it was not sent.
    pub const NOT_RECORDED: i64 = -32054;
    /// The server wants pages opened before the call (MCP 2025-11-25,
    /// client/elicitation, "URL Elicitation Required Error"): the error's data
    /// list them as `elicitations`.
    pub const PAGES_REQUIRED: i64 = -32042;
    /// What the tool answered is not what its `outputSchema` says. The call was
    /// made. The error's data are an object: `problems`, an array of texts, and
    /// `result`, what the tool answered.
    pub const RESULT_MISMATCH: i64 = -32055;
    /// The tool is another by the server's newest list than the one that was decided
    /// about, or not in it any more; or there is no list by the login that there is now. The
    /// call was not sent, or was given up before its next round: its message says which.
    pub const TOOL_CHANGED: i64 = -32056;
    /// The arguments are not a JSON object (JSON-RPC's "invalid params").
    pub const INVALID_ARGUMENTS: i64 = -32602;
}

/// Why a server is not there.
///
/// Its `Display` names the server, says what happened and what to do, and ends
/// with the last lines the server wrote to stderr, if any. Values from the
/// server's configured environment and headers are replaced by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    pub(crate) server: String,
    pub(crate) kind: StartErrorKind,
    pub(crate) stderr: String,
}

impl StartError {
    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What went wrong.
    pub fn kind(&self) -> &StartErrorKind {
        &self.kind
    }

    /// The end of what the server wrote to stderr: at most ten lines, empty if
    /// it wrote nothing or is not a child process.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What the server answered cannot pass for lines of ours.
        let kind = self.kind.to_string().replace("\r\n", "\n");
        let kind = kind.replace(['\n', '\r'], "\n  ");
        write!(f, "server `{}` did not start: {kind}", self.server)?;
        if !self.stderr.is_empty() {
            f.write_str("; its last words on stderr:")?;
            for line in self.stderr.lines() {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for StartError {}

/// What to do about a command that was not found. Many write a whole line for a
/// shell there.
fn if_not_found(command: &str) -> &'static str {
    match command.trim().contains(char::is_whitespace) {
        true => "name the program alone there, and put its arguments under `args`",
        false => "install it, or give its full path",
    }
}

/// What went wrong at a server's start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartErrorKind {
    /// Another server has the same name.
    #[error("another server has this name; give each server a name of its own")]
    DuplicateName,
    /// There is no such program.
    #[error("command {command:?} was not found; {}", if_not_found(command))]
    CommandNotFound {
        /// As configured.
        command: String,
    },
    /// There is no such directory.
    #[error("working directory {cwd:?} does not exist; create it, or change `cwd`")]
    NoWorkingDirectory {
        /// As configured.
        cwd: String,
    },
    /// The program could not be started.
    #[error("command {command:?} could not be started: {reason}")]
    Spawn {
        /// As configured.
        command: String,
        /// The system's reason.
        reason: String,
    },
    /// The process ended before the server was ready.
    #[error("it ended with {status}; run its command by hand to see why")]
    Exited {
        /// Such as `exit code 3` or `signal 9`.
        status: String,
    },
    /// It closed its output and stayed.
    #[error("it closed its standard output; an MCP server speaks there")]
    ClosedOutput,
    /// It took too long.
    #[error(
        "it was not ready within {} ms ({stage}); raise its `startTimeout` if it is slow to start",
        limit.as_millis()
    )]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// What was being waited for.
        stage: &'static str,
    },
    /// It refused the handshake.
    #[error("it refused {method}: {message} (code {code})")]
    Refused {
        /// The handshake's method.
        method: &'static str,
        /// The JSON-RPC error code.
        code: i64,
        /// The JSON-RPC error message.
        message: String,
    },
    /// It speaks only revisions that the broker does not, or not the fixed one.
    #[error("it does not speak protocol {wanted}; it offers {offered}")]
    NoCommonRevision {
        /// What the broker asked for.
        wanted: String,
        /// What the server has.
        offered: String,
    },
    /// It answered something else than the protocol says.
    #[error("its answer to {method} is malformed: {reason}")]
    Malformed {
        /// The method.
        method: &'static str,
        /// The parser's reason.
        reason: String,
    },
    /// The URL cannot be used.
    #[error("its URL cannot be used: {reason}")]
    BadUrl {
        /// Why.
        reason: String,
    },
    /// A header cannot be sent.
    #[error("header {name:?} cannot be sent: {reason}")]
    BadHeader {
        /// The header's name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A value that the configuration has looked up cannot be had.
    #[error("there is no value for {name:?}: {reason}")]
    NoValue {
        /// The variable or header.
        name: String,
        /// Why.
        reason: SourceError,
    },
    /// The server wants a token, and there is none or none that will do.
    #[error("{0}")]
    Authorization(AuthError),
    /// The HTTP endpoint wants credentials that it did not get.
    #[error("{url} asks for authorization; set an `Authorization` header for it")]
    Unauthorized {
        /// Without its query.
        url: String,
    },
    /// The HTTP endpoint could not be reached or does not speak MCP.
    #[error("{url} did not answer as an MCP endpoint: {reason}")]
    Http {
        /// Without its query.
        url: String,
        /// Why.
        reason: String,
    },
}

/// Why a call gave no result.
///
/// The `Display` form names the tool by its generated function name.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The tool ran and failed: its result has `isError`.
    #[error("{function} failed: {message}")]
    Tool {
        /// The server's name.
        server: String,
        /// The generated function name.
        function: String,
        /// The text blocks of the result, joined; at most 16 KiB of them.
        message: String,
        /// The result's `content`, an array.
        content: Box<RawValue>,
        /// The result's `structuredContent`, if it has one.
        structured_content: Option<Box<RawValue>>,
        /// Whether the tool says of itself that calling it once more does no
        /// harm: it is read-only or idempotent by its annotations.
        retryable: bool,
    },
    /// There is no result to speak of: the server refused the request, is gone,
    /// or answered what it may not.
    #[error("{function}: {message} (code {code})")]
    Protocol {
        /// The server's name.
        server: String,
        /// The generated function name.
        function: String,
        /// The server's JSON-RPC error code, or one of [`code`].
        code: i64,
        /// What happened; where it helps, what to do.
        message: String,
        /// The server's error data, if it sent any.
        data: Option<Box<RawValue>>,
        /// Whether the same call can be made again without being done twice: it
        /// did not reach the server, or the tool says of itself that calling it
        /// once more does no harm. It is never made again unasked.
        retryable: bool,
    },
    /// The server did not answer in time; it was told that the call is
    /// cancelled. Whether the tool did its work is not known.
    #[error("{function} gave no answer within {} ms", limit.as_millis())]
    Timeout {
        /// The server's name.
        server: String,
        /// The generated function name.
        function: String,
        /// The limit.
        limit: Duration,
        /// Whether the tool says of itself that calling it once more does no
        /// harm: it is read-only or idempotent by its annotations.
        retryable: bool,
    },
    /// The call was made, and a reviewer of the host's keeps its result from the
    /// script.
    #[error("the result of {function} is withheld: {reason}")]
    Kept {
        /// The server's name.
        server: String,
        /// The generated function name.
        function: String,
        /// Why, in the reviewer's words.
        reason: String,
    },
    /// The call was not sent.
    #[error("{function} was not called: {ruling}{}", advice(function, ruling))]
    Denied {
        /// The server's name.
        server: String,
        /// The generated function name, which rules match.
        function: String,
        /// What decided so.
        ruling: Box<Ruling>,
    },
    /// The call was not sent, because the run is a dry run and the tool is not
    /// known to read only.
    #[error(
        "{function} was not called: this is a dry run, and it is not known to read only ({decision})"
    )]
    DryRun {
        /// The server's name.
        server: String,
        /// The generated function name.
        function: String,
        /// What the rules say of the call, in words.
        decision: String,
    },
    /// Whoever made the call gave it up. A run has no such error: what a script gives up it
    /// does not hear of.
    #[error("{function} was cancelled {}", how_far(*sent))]
    Cancelled {
        /// The server's name.
        server: String,
        /// The generated function name.
        function: String,
        /// Whether it may have been sent by then: it was decided about and handed on, maybe to
        /// wait for a connection or for a person's login first. A server that has it is told
        /// that it is given up, and may have done something.
        sent: bool,
    },
}

fn how_far(sent: bool) -> &'static str {
    match sent {
        true => "while it was under way, and may have done something",
        false => "before it was sent",
    }
}

/// What to do about a denial, behind what it was denied for.
fn advice(function: &str, ruling: &Ruling) -> String {
    match ruling.advice(function) {
        Some(advice) => format!("; {advice}"),
        None => String::new(),
    }
}

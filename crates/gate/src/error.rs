//! Why a call gave no result.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::ruling::Ruling;

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

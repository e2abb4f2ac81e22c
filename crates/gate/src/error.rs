//! Errors of calls.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::ruling::Ruling;

/// Codes of [`CallErrorKind::Protocol`] for failures that Callgate finds itself. A server's own codes
/// are passed on as they are, and lie outside this range if the server keeps to JSON-RPC.
pub mod code {
    /// The server has ended, or did not start.
    pub const CONNECTION_CLOSED: i64 = -32000;
    /// The server's answer, or the script's result, is longer than the limit.
    pub const RESULT_TOO_LARGE: i64 = -32050;
    /// The server's answer is not a result of `tools/call`.
    pub const MALFORMED_RESULT: i64 = -32051;
    /// The server asks for input and gets none: the host cannot give it, it is too large, or the
    /// server asks too often.
    pub const INPUT_REQUIRED: i64 = -32052;
    /// The run reached the limit of calls in a ledger, of lookups, or of input in flight.
    pub const TOO_MANY_CALLS: i64 = -32053;
    /// The call's line could not be written to the ledger, so the call was not sent.
    pub const NOT_RECORDED: i64 = -32054;
    /// The server wants pages opened before the call (MCP 2025-11-25, client/elicitation, "URL
    /// Elicitation Required Error"): the error's data list them as `elicitations`.
    pub const PAGES_REQUIRED: i64 = -32042;
    /// The result does not fit the tool's `outputSchema`. The call was made. The error's data are
    /// an object: `problems`, an array of texts, and `result`, the tool's result.
    pub const RESULT_MISMATCH: i64 = -32055;
    /// The tool changed after the decision: its server's newest list has a different definition, or
    /// does not have the tool. The call was not sent, or was given up before its next round: the
    /// message says which. A script may call again, and a new decision is made.
    pub const TOOL_CHANGED: i64 = -32056;
    /// A deny rule, or a different setting that restricts, matches no tool. No call is made until
    /// the configuration is corrected.
    pub const REFUSED: i64 = -32057;
    /// The arguments are not a JSON object (JSON-RPC's "invalid params").
    pub const INVALID_ARGUMENTS: i64 = -32602;
}

/// The error of a call without a result. Its `Display` names the tool by its generated function
/// name.
#[derive(Debug, Clone)]
pub struct CallError {
    /// The server's name.
    pub server: String,
    /// The generated function name, which rules match.
    pub function: String,
    /// The kind of failure.
    pub kind: CallErrorKind,
}

/// The kind of a failed call. As JSON, the fields of the error that a script catches.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The tool ran and failed: its result has `isError`.
    Tool {
        /// The text blocks of the result, joined; at most 16 KiB of them.
        #[serde(skip)]
        message: String,
        /// The result's `content`, an array.
        content: Box<RawValue>,
        /// The result's `structuredContent`, if it has one.
        structured_content: Option<Box<RawValue>>,
        /// False: the tool has answered, and would answer the same call in the same way.
        retryable: bool,
    },
    /// There is no valid result: the server refused the request, has ended, or gave an invalid
    /// answer.
    Protocol {
        /// The server's JSON-RPC error code, or one between -32057 and -32050 for a failure that Callgate finds itself.
        code: i64,
        /// The problem and, where it helps, what to do.
        #[serde(skip)]
        message: String,
        /// The server's error data, if it sent any.
        data: Option<Box<RawValue>>,
        /// True if the same call may succeed later and has no effect twice: it did not reach the
        /// server, or its answer was lost and the tool declares that it only reads. Callgate never
        /// repeats it by itself.
        retryable: bool,
    },
    /// The server did not answer in time, and got a cancellation. It is not known whether the tool
    /// did its work.
    Timeout {
        /// The limit.
        #[serde(skip)]
        limit: Duration,
        /// Messages that the server wrote meanwhile and that could not be used, as a clause; may be
        /// empty.
        #[serde(skip)]
        unused: String,
        /// True if the tool declares that it only reads.
        retryable: bool,
    },
    /// The call was made, and a reviewer of the host keeps its result from the script.
    Kept {
        /// The reviewer's reason.
        reason: String,
    },
    /// This decision denied the call.
    #[serde(skip)]
    Denied(#[doc(hidden)] Box<Ruling>),
    /// The call was not sent: the run is a dry run, and it is not known that the tool only reads.
    DryRun {
        /// The decision of the rules, in words.
        decision: String,
    },
    /// The host cancelled the call. A script never gets this error: calls that a script gives up
    /// have no result.
    Cancelled {
        /// True if it may have been sent: it was allowed, and waited for its answer, a connection
        /// or a login. The server gets a cancellation, and may have done something.
        sent: bool,
    },
}

impl CallError {
    /// The error of a call without a valid result, for a reason of Callgate's own.
    pub fn protocol(function: &str, server: &str, code: i64, message: String) -> Self {
        Self {
            server: server.to_owned(),
            function: function.to_owned(),
            kind: CallErrorKind::Protocol {
                code,
                message,
                data: None,
                retryable: code == code::CONNECTION_CLOSED,
            },
        }
    }

    /// The result that does not fit its tool's `outputSchema` ([`code::RESULT_MISMATCH`]).
    #[doc(hidden)]
    pub fn mismatched_result(&self) -> Option<&RawValue> {
        let CallErrorKind::Protocol {
            code: code::RESULT_MISMATCH,
            data: Some(data),
            ..
        } = &self.kind
        else {
            return None;
        };
        let data: HashMap<&str, &RawValue> = serde_json::from_str(data.get()).ok()?;
        data.get("result").copied()
    }
}

impl std::error::Error for CallError {}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = &self.function;
        match &self.kind {
            CallErrorKind::Tool { message, .. } => write!(f, "{function} failed: {message}"),
            CallErrorKind::Protocol { code, message, .. } => {
                write!(f, "{function}: {message} (code {code})")
            }
            CallErrorKind::Timeout { limit, unused, .. } => {
                let ms = limit.as_millis();
                write!(f, "{function} gave no answer within {ms} ms{unused}")
            }
            CallErrorKind::Kept { reason } => {
                write!(f, "the result of {function} is withheld: {reason}")
            }
            CallErrorKind::Denied(ruling) => {
                let advice = ruling.advice(function);
                write!(f, "{function} was not called: {ruling}; {advice}")
            }
            CallErrorKind::DryRun { decision } => write!(
                f,
                "{function} was not called: this is a dry run, and it is not known to read only \
                 ({decision})"
            ),
            CallErrorKind::Cancelled { sent: true } => write!(
                f,
                "{function} was cancelled while it was under way, and may have done something"
            ),
            CallErrorKind::Cancelled { sent: false } => {
                write!(f, "{function} was cancelled before it was sent")
            }
        }
    }
}

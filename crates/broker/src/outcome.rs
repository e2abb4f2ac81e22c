//! How the calls of a ledger ended.

use serde::Serialize;

/// The most bytes of a failure's message that a line keeps.
const MAX_MESSAGE_BYTES: usize = 300;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Outcome {
    /// Somebody is being asked; nothing was sent.
    Asking,
    /// It was sent, and there is no answer yet.
    InFlight,
    /// It gave a result.
    Ok,
    /// The tool failed.
    ToolError {
        /// At most 300 bytes of what it said.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// There was no result to speak of.
    ProtocolError {
        /// See [`crate::CallError::Protocol`].
        code: i64,
        /// At most 300 bytes of what is known.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// There was no answer in time.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// It was not sent.
    Denied,
    /// It was not sent, in a dry run: the script got an error in its place.
    Withheld,
    /// It was not sent, in a dry run: the script got a recorded result.
    Recorded,
    /// It gave a result that a reviewer kept from the script.
    Kept {
        /// At most 300 bytes of why.
        reason: String,
    },
    /// The run ended, or the caller gave up, before the answer.
    Cancelled,
}

impl Outcome {
    pub(crate) fn tool_error(message: &str) -> Self {
        Self::ToolError {
            message: cut(message),
        }
    }

    pub(crate) fn kept(reason: &str) -> Self {
        Self::Kept {
            reason: cut(reason),
        }
    }

    pub(crate) fn protocol_error(code: i64, message: &str) -> Self {
        Self::ProtocolError {
            code,
            message: cut(message),
        }
    }

    /// The same without what the server said.
    pub(crate) fn without_message(&self) -> Self {
        let message = String::new();
        match self {
            Self::ToolError { .. } => Self::ToolError { message },
            Self::ProtocolError { code, .. } => Self::ProtocolError {
                code: *code,
                message,
            },
            other => other.clone(),
        }
    }
}

fn cut(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MAX_MESSAGE_BYTES);
    format!("{}…", message.get(..end).unwrap_or_default())
}

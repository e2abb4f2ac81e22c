//! Outcomes of calls.

use serde::Serialize;

/// The limit of a message in a line, in bytes.
const MAX_MESSAGE_BYTES: usize = 300;

/// The outcome of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Outcome {
    /// The asker has been asked; nothing was sent.
    #[default]
    Asking,
    /// The call was sent, and there is no answer yet.
    InFlight,
    /// The call gave a result.
    Ok,
    /// The tool failed.
    ToolError {
        /// At most 300 bytes of the tool's message.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The call gave no valid result.
    ProtocolError {
        /// See [`crate::CallErrorKind::Protocol`].
        code: i64,
        /// At most 300 bytes of the reason.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The time limit passed before the answer.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// The call was not sent.
    Denied,
    /// A dry run did not send the call and gave the script a made-up result or an error.
    Withheld,
    /// A dry run did not send the call and gave the script a recorded result.
    Recorded,
    /// A reviewer kept the result from the script.
    Kept {
        /// At most 300 bytes of the reviewer's reason.
        reason: String,
    },
    /// The run ended, or the caller gave up, before the answer.
    Cancelled,
}

impl Outcome {
    pub(crate) fn tool_error(message: &str) -> Self {
        let message = cut(message);
        Self::ToolError { message }
    }
}

pub(super) fn cut(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MAX_MESSAGE_BYTES);
    format!("{}…", message.get(..end).unwrap_or_default())
}

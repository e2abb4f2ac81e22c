//! Why an endpoint gave no answer.

use std::fmt;

/// Why an endpoint gave no answer.
///
/// Its `Display` names the endpoint by its origin, says what happened, and never
/// holds a key, nor more than a line of what the endpoint said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    origin: String,
    kind: ErrorKind,
    message: String,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The URL or the key is none that can be used.
    Unfit,
    /// There was no connection, or it broke.
    Unreachable,
    /// There was no answer in time.
    TimedOut,
    /// The endpoint answered with this HTTP status.
    Status(u16),
    /// The answer was longer than the limit.
    TooLarge,
    /// The answer is not what the API may answer.
    Malformed,
}

impl ModelError {
    pub(crate) fn new(origin: &str, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            origin: origin.to_owned(),
            kind,
            message: message.into(),
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// True if the same request may succeed at another time.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ErrorKind::Unreachable | ErrorKind::TimedOut => true,
            ErrorKind::Status(status) => status == 429 || status >= 500,
            _ => false,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin.as_str() {
            // As of a text that is not a URL, or one with no host in it.
            "" | "null" => write!(f, "model endpoint: {}", self.message),
            origin => write!(f, "model endpoint {origin}: {}", self.message),
        }
    }
}

impl std::error::Error for ModelError {}

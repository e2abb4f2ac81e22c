//! Why an endpoint gave no answer.

use std::time::Duration;

/// Why an endpoint gave no answer.
///
/// Its `Display` names the endpoint by its origin, says what happened, and never
/// holds a key, nor more than a line of what the endpoint said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model endpoint{origin}: {message}")]
pub struct ModelError {
    /// A space and the origin; empty for a text that is not a URL, or one with no host in it.
    origin: String,
    message: String,
    pub(crate) kind: Kind,
}

/// The kind of failure, for a request that may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There was no connection, or it broke.
    Unreachable,
    /// There was no answer in time.
    Late,
    /// The endpoint answered with this HTTP status, and may have said how long to wait.
    Status(u16, Option<Duration>),
    /// The endpoint, its key or its answer cannot be used.
    Unusable,
}

impl ModelError {
    pub(crate) fn new(origin: &str, kind: Kind, message: impl Into<String>) -> Self {
        Self {
            origin: match origin {
                "" | "null" => String::new(),
                origin => format!(" {origin}"),
            },
            message: message.into(),
            kind,
        }
    }

    /// True if there was no answer in time.
    pub fn is_late(&self) -> bool {
        self.kind == Kind::Late
    }
}

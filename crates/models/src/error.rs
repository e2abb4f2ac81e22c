//! The error of a request to an endpoint.

use std::time::Duration;

/// The reason why there is no answer of an endpoint.
///
/// Its `Display` has the endpoint's origin and at most a line of the endpoint's message, never a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model endpoint{origin}: {message}")]
pub struct ModelError {
    /// A space and the origin; empty for a text that is not a URL with a host.
    origin: String,
    message: String,
    pub(crate) kind: Kind,
}

/// The kind of failure, which decides whether the request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There was no connection, or it broke.
    Unreachable,
    Timeout,
    /// The HTTP status, and the wait that the endpoint requests.
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

    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Timeout
    }
}

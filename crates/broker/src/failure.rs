//! Why a request has no result.

use std::time::Duration;

use rmcp::model::ErrorData;

use crate::link::LinkError;

/// Why a request has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The server refused it.
    Refused(ErrorData),
    /// It did not get there, or its answer not back.
    Lost(LinkError),
    /// No answer in time, and no sign of work either.
    Timeout(Duration),
    /// The answer is over this limit, in bytes.
    TooLarge(usize),
    /// The answer makes no sense.
    Malformed(String),
    /// The server wants input, again and again or more than is reasonable.
    Input(String),
}

impl Failure {
    /// Whether the server may have seen the request. If not, sending it again
    /// cannot do anything twice.
    pub(crate) fn was_sent(&self) -> bool {
        match self {
            Self::Lost(error) => error.sent,
            _ => true,
        }
    }
}

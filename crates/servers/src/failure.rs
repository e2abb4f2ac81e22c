//! Failed starts of servers and failed calls.

use std::fmt;
use std::time::Duration;

use callgate_auth::{AuthError, AuthErrorKind};
use rmcp::model::ErrorData;

/// Why a call has no result. The `Display` form is one clause for people, without secrets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CallFailure {
    /// The tool is not the one that was decided on any more.
    ToolChanged {
        /// The difference.
        what: Changed,
        /// Whether the call had begun: an earlier round of it was sent.
        sent: bool,
    },
    /// The server answered with a JSON-RPC error.
    Refused(ErrorData),
    /// No answer in time.
    Timeout {
        /// The time in which there was neither an answer nor a sign of work.
        limit: Duration,
        /// Messages that were read meanwhile and not used, as a clause; empty if there are none.
        unused: String,
    },
    /// The request did not reach the server, or its answer did not come back.
    Lost(Lost),
    /// The answer is over this limit, in bytes.
    TooLarge(usize),
    /// The answer makes no sense.
    Malformed(String),
    /// The server asks for input that it cannot have.
    Input(String),
}

/// A difference between the tool that was decided on and the server's newest list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The tool has another definition.
    Definition,
    /// The server does not list the tool.
    Gone,
    /// Requests use another login than the list.
    Login,
}

/// A request that did not reach the server, or whose answer did not come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub(crate) kind: LostKind,
    /// One clause for people, without secrets.
    pub(crate) reason: Box<str>,
    /// Whether the server may have read the request.
    pub(crate) sent: bool,
    /// Messages that were read meanwhile and not used, as a clause; empty if there are none.
    pub(crate) unused: Box<str>,
}

/// The kind of a lost request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LostKind {
    /// The connection has ended.
    Closed,
    /// The server cannot be reached, reads nothing, or ended its answer early.
    Unreachable,
    /// An HTTP status without a JSON-RPC answer.
    Status(u16),
    /// The server asks for authorization.
    Unauthorized,
    /// There is no authorization.
    Authorization(AuthError),
    /// Requests use another login by now. The request was not sent.
    OtherLogin,
}

impl CallFailure {
    /// Whether the server may have seen the call.
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Lost(lost) => lost.sent,
            Self::ToolChanged { sent, .. } => *sent,
            _ => true,
        }
    }

    /// A connection that has ended.
    pub(crate) fn closed(reason: &str, sent: bool) -> Self {
        Self::Lost(Lost::new(LostKind::Closed, reason, sent))
    }

    /// A time-out that does not say what was read.
    pub(crate) fn timeout(limit: Duration) -> Self {
        let unused = String::new();
        Self::Timeout { limit, unused }
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{} (code {})", error.message, error.code.0),
            Self::Lost(lost) => write!(f, "{}{}", lost.reason, lost.unused),
            Self::ToolChanged { what, sent } => {
                f.write_str(match what {
                    Changed::Gone => "its server no longer lists the tool; ",
                    Changed::Definition => {
                        "the server has changed the tool, which is another than the one that was \
                         decided about; "
                    }
                    Changed::Login => {
                        "requests go with another login by now than the server's tools were listed \
                         with; "
                    }
                })?;
                f.write_str(match (sent, what) {
                    (true, _) => "the call had begun and was given up, and may have done something",
                    (false, Changed::Gone) => "nothing was done",
                    (false, Changed::Login) => "nothing was done; call it again later",
                    (false, Changed::Definition) => {
                        "nothing was done; call it again to have it decided anew"
                    }
                })
            }
            Self::Timeout { limit, unused } => {
                write!(f, "no answer within {} ms{unused}", limit.as_millis())
            }
            Self::TooLarge(limit) => write!(
                f,
                "the answer is over the limit of {limit} bytes; ask the tool for less (a filter, \
                 a page), or raise \"result\" under \"limits\""
            ),
            Self::Malformed(reason) => write!(f, "the answer is malformed: {reason}"),
            Self::Input(reason) => f.write_str(reason),
        }
    }
}

impl Lost {
    pub(crate) fn new(kind: LostKind, reason: impl Into<Box<str>>, sent: bool) -> Self {
        Self {
            kind,
            reason: reason.into(),
            sent,
            unused: Box::default(),
        }
    }

    /// Whether the same request would fail again in the same way.
    pub(crate) fn is_permanent(&self) -> bool {
        match &self.kind {
            // The others mean "later": a time-out, a conflict, too early, too many.
            LostKind::Status(status) => {
                matches!(status, 300..=499) && !matches!(status, 408 | 409 | 425 | 429)
            }
            LostKind::Closed | LostKind::Unauthorized => true,
            LostKind::Authorization(error) => matches!(
                error.kind(),
                AuthErrorKind::LoginRequired { .. }
                    | AuthErrorKind::Declined { .. }
                    | AuthErrorKind::InsufficientScope { .. }
                    | AuthErrorKind::Settings { .. }
            ),
            LostKind::Unreachable | LostKind::OtherLogin => false,
        }
    }
}

impl From<AuthError> for Lost {
    fn from(error: AuthError) -> Self {
        let reason = error.to_string();
        Self::new(LostKind::Authorization(error), reason, false)
    }
}

/// A server that did not start. The `Display` form says what happened and what to do, without
/// secrets of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    pub(crate) server: String,
    pub(crate) reason: String,
    /// The end of its stderr: at most ten lines.
    pub(crate) stderr: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What the server answered cannot pass for lines of ours.
        let reason = self.reason.replace("\r\n", "\n");
        let reason = reason.replace(['\n', '\r'], "\n  ");
        write!(f, "server `{}` did not start: {reason}", self.server)?;
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

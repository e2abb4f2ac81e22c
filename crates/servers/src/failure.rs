//! Why a server did not start, and why a call has no result.

use std::fmt;
use std::time::Duration;

use callgate_auth::{AuthError, AuthErrorKind, Redact, SourceError};
use rmcp::model::ErrorData;

/// Why a call has no result.
///
/// The `Display` form is one clause for people, without secrets.
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
    /// No answer in time: neither an answer nor a sign of work within this limit.
    Timeout(Duration),
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
    pub(crate) reason: String,
    /// Whether the server may have read the request.
    pub(crate) sent: bool,
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
    /// Whether the server may have seen the call. If not, the same call can be made again
    /// without being done twice.
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Lost(lost) => lost.sent,
            Self::ToolChanged { sent, .. } => *sent,
            _ => true,
        }
    }

    /// A connection that has ended.
    pub(crate) fn closed(reason: &str, sent: bool) -> Self {
        Self::Lost(Lost {
            kind: LostKind::Closed,
            reason: reason.to_owned(),
            sent,
        })
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{} (code {})", error.message, error.code.0),
            Self::Lost(lost) => f.write_str(&lost.reason),
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
            Self::Timeout(limit) => write!(f, "no answer within {} ms", limit.as_millis()),
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
        Self {
            reason: error.to_string(),
            kind: LostKind::Authorization(error),
            sent: false,
        }
    }
}

/// Why a server did not start.
///
/// The `Display` form names the server, says what happened and what to do, and ends with the last
/// lines of the server's stderr. Secrets of the configuration are replaced by their names.
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

    /// The kind of the problem.
    pub fn kind(&self) -> &StartErrorKind {
        &self.kind
    }

    /// The end of its stderr: at most ten lines.
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

impl StartErrorKind {
    /// The same, without secrets in the server's words.
    pub(crate) fn redacted(self, redact: &Redact) -> Self {
        match self {
            Self::Refused {
                method,
                code,
                message,
            } => Self::Refused {
                method,
                code,
                message: redact.message(&message),
            },
            Self::NoCommonRevision { wanted, offered } => Self::NoCommonRevision {
                wanted,
                offered: redact.message(&offered),
            },
            Self::Malformed { method, reason } => Self::Malformed {
                method,
                reason: redact.message(&reason),
            },
            Self::Unauthorized { url } => Self::Unauthorized {
                url: redact.redact(&url),
            },
            Self::Http { url, reason } => Self::Http {
                url: redact.redact(&url),
                reason,
            },
            other => other,
        }
    }
}

/// The advice for a command that was not found. Some configurations have a whole shell line there.
fn if_not_found(command: &str) -> &'static str {
    match command.trim().contains(char::is_whitespace) {
        true => "name the program alone there, and put its arguments under `args`",
        false => "install it, or give its full path",
    }
}

/// The kind of a problem at a server's start.
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
    /// The process closed its output and goes on.
    #[error("it closed its standard output; an MCP server speaks there")]
    ClosedOutput,
    /// The time was over.
    #[error(
        "it was not ready within {} ms ({stage}); raise its `startTimeout` if it is slow to start",
        limit.as_millis()
    )]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The step that was waited for.
        stage: &'static str,
    },
    /// The server refused the handshake.
    #[error("it refused {method}: {message} (code {code})")]
    Refused {
        /// The handshake's method.
        method: &'static str,
        /// The JSON-RPC error code.
        code: i64,
        /// The JSON-RPC error message.
        message: String,
    },
    /// The server speaks no known revision, or not the fixed one.
    #[error("it does not speak protocol {wanted}; it offers {offered}")]
    NoCommonRevision {
        /// The revision that was asked for.
        wanted: String,
        /// The server's revisions.
        offered: String,
    },
    /// The answer is not of the protocol.
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
    /// A value could not be looked up.
    #[error("there is no value for {name:?}: {reason}")]
    NoValue {
        /// The variable or header.
        name: String,
        /// Why.
        reason: SourceError,
    },
    /// The server asks for a token, and there is none.
    #[error("{0}")]
    Authorization(AuthError),
    /// The HTTP endpoint asks for credentials.
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

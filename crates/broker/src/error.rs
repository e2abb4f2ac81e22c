//! Why a server did not start, and why a call has no result.

use std::fmt;
use std::time::Duration;

use callgate_auth::{AuthError, SourceError};
use rmcp::model::ErrorData;

/// The server wants pages opened before the call (MCP 2025-11-25, client/elicitation, "URL
/// Elicitation Required Error").
pub(crate) const PAGES_REQUIRED: i64 = -32042;

/// Why a server is not there.
///
/// Its `Display` names the server, says what happened and what to do, and ends
/// with the last lines the server wrote to stderr, if any. Values from the
/// server's configured environment and headers are replaced by their names.
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

    /// What went wrong.
    pub fn kind(&self) -> &StartErrorKind {
        &self.kind
    }

    /// The end of what the server wrote to stderr: at most ten lines, empty if
    /// it wrote nothing or is not a child process.
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

/// What to do about a command that was not found. Many write a whole line for a
/// shell there.
fn if_not_found(command: &str) -> &'static str {
    match command.trim().contains(char::is_whitespace) {
        true => "name the program alone there, and put its arguments under `args`",
        false => "install it, or give its full path",
    }
}

/// What went wrong at a server's start.
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
    /// It closed its output and stayed.
    #[error("it closed its standard output; an MCP server speaks there")]
    ClosedOutput,
    /// It took too long.
    #[error(
        "it was not ready within {} ms ({stage}); raise its `startTimeout` if it is slow to start",
        limit.as_millis()
    )]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// What was being waited for.
        stage: &'static str,
    },
    /// It refused the handshake.
    #[error("it refused {method}: {message} (code {code})")]
    Refused {
        /// The handshake's method.
        method: &'static str,
        /// The JSON-RPC error code.
        code: i64,
        /// The JSON-RPC error message.
        message: String,
    },
    /// It speaks only revisions that the broker does not, or not the fixed one.
    #[error("it does not speak protocol {wanted}; it offers {offered}")]
    NoCommonRevision {
        /// What the broker asked for.
        wanted: String,
        /// What the server has.
        offered: String,
    },
    /// It answered something else than the protocol says.
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
    /// A value that the configuration has looked up cannot be had.
    #[error("there is no value for {name:?}: {reason}")]
    NoValue {
        /// The variable or header.
        name: String,
        /// Why.
        reason: SourceError,
    },
    /// The server wants a token, and there is none or none that will do.
    #[error("{0}")]
    Authorization(AuthError),
    /// The HTTP endpoint wants credentials that it did not get.
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

/// Why a call has no result.
///
/// The `Display` form is one clause for people, without secrets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CallFailure {
    /// The tool is not the one that was decided on any more.
    ToolChanged {
        /// One clause about the difference.
        reason: String,
        /// Whether the call had begun: an earlier round of it was sent.
        sent: bool,
    },
    /// The server answered with a JSON-RPC error.
    Refused(ErrorData),
    /// No answer in time: neither an answer nor a sign of work within this limit.
    Timeout(Duration),
    /// The request did not reach the server, or its answer did not come back.
    Lost {
        /// One clause, without secrets.
        reason: String,
        /// Whether the server may have read the request.
        sent: bool,
    },
    /// The answer is over the size limit.
    TooLarge(String),
    /// The answer makes no sense.
    Malformed(String),
    /// The server asks for input that it cannot have.
    Input(String),
}

impl CallFailure {
    /// Whether the server may have seen the call. If not, the same call can be made again
    /// without being done twice.
    pub fn was_sent(&self) -> bool {
        match self {
            Self::Lost { sent, .. } | Self::ToolChanged { sent, .. } => *sent,
            _ => true,
        }
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{} (code {})", error.message, error.code.0),
            Self::Timeout(limit) => write!(f, "no answer within {} ms", limit.as_millis()),
            Self::ToolChanged { reason, .. }
            | Self::Lost { reason, .. }
            | Self::TooLarge(reason)
            | Self::Malformed(reason)
            | Self::Input(reason) => f.write_str(reason),
        }
    }
}

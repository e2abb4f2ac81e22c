//! Failed starts of servers and failed calls.

use std::fmt;
use std::time::Duration;

use callgate_auth::AuthError;
use rmcp::model::ErrorData;

/// The reader of errors and reports, who gets advice that it can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reader {
    /// A person who can change flags and configuration.
    #[default]
    Operator,
    /// A model or a program that can change only the script and its arguments.
    Caller,
}

/// Why a server cannot be used, in the words of each reader, without secrets. The `Display` form
/// is the operator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    operator: String,
    caller: String,
}

impl Reason {
    /// A problem that only the operator can mend, and how.
    pub(crate) fn advise(problem: &str, advice: &str) -> Self {
        Self {
            operator: format!("{problem}; {advice}"),
            caller: format!(
                "{problem}; only the person who runs Callgate can mend that: use other servers, or \
                 tell the user"
            ),
        }
    }

    /// The words for this reader.
    pub fn to(&self, reader: Reader) -> &str {
        match reader {
            Reader::Operator => &self.operator,
            Reader::Caller => &self.caller,
        }
    }

    /// The same change in the words of each reader.
    pub(crate) fn map(self, change: impl Fn(&str) -> String) -> Self {
        Self {
            operator: change(&self.operator),
            caller: change(&self.caller),
        }
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.operator.push_str(text);
        self.caller.push_str(text);
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Reason {
    fn from(operator: String) -> Self {
        let caller = operator.clone();
        Self { operator, caller }
    }
}

impl From<&AuthError> for Reason {
    fn from(error: &AuthError) -> Self {
        Self {
            operator: error.to_string(),
            caller: error.for_model(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operator)
    }
}

/// Why a call has no result. The `Display` form is one clause for people, without secrets.
#[derive(Debug, Clone)]
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
}

/// A request that did not reach the server, or whose answer did not come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub(crate) kind: LostKind,
    /// One clause for people, without secrets.
    pub(crate) reason: Box<Reason>,
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
    Authorization(Box<AuthError>),
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

    /// The failure in the words of its reader.
    pub fn to(&self, reader: Reader) -> String {
        match self {
            Self::Lost(lost) => format!("{}{}", lost.reason.to(reader), lost.unused),
            Self::TooLarge(limit) if reader == Reader::Caller => format!(
                "the answer is over the limit of {limit} bytes; ask the tool for less (a filter, a \
                 page)"
            ),
            other => other.to_string(),
        }
    }

    /// A connection that has ended.
    pub(crate) fn closed(reason: impl Into<Reason>, sent: bool) -> Self {
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
                })?;
                f.write_str(match (sent, what) {
                    (true, _) => "the call had begun and was given up, and may have done something",
                    (false, Changed::Gone) => "nothing was done",
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
    pub(crate) fn new(kind: LostKind, reason: impl Into<Reason>, sent: bool) -> Self {
        Self {
            kind,
            reason: Box::new(reason.into()),
            sent,
            unused: Box::default(),
        }
    }
}

impl From<AuthError> for Lost {
    fn from(error: AuthError) -> Self {
        let reason = Reason::from(&error);
        Self::new(LostKind::Authorization(Box::new(error)), reason, false)
    }
}

/// A server that did not start. The `Display` form says what happened and what to do, without
/// secrets of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartError {
    pub(crate) server: String,
    pub(crate) reason: Reason,
    /// The end of its stderr: at most ten lines.
    pub(crate) stderr: String,
}

impl StartError {
    /// The whole text, in the words of each reader.
    pub fn reason(&self) -> Reason {
        self.reason.clone().map(|reason| {
            // What the server answered cannot pass for lines of ours.
            let reason = reason.replace("\r\n", "\n").replace(['\n', '\r'], "\n  ");
            let mut text = format!("server `{}` did not start: {reason}", self.server);
            if !self.stderr.is_empty() {
                text += "; its last words on stderr:";
                for line in self.stderr.lines() {
                    text += "\n  ";
                    text += line;
                }
            }
            text
        })
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason().fmt(f)
    }
}

impl std::error::Error for StartError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_given_no_commands_and_no_settings() {
        let login = Reason::from(&AuthError::login_required("web", "needs a login", &[]));
        assert_eq!(
            login.to(Reader::Operator),
            "server `web` needs a login; run `callgate auth login web`"
        );
        assert_eq!(
            login.to(Reader::Caller),
            "server `web` needs a login; the person who runs Callgate must log in to server \
             `web`: use other servers, or tell the user"
        );
        let slow = StartError {
            server: "slow".to_owned(),
            reason: Reason::advise("it was not ready", "raise its `startTimeout`"),
            stderr: "one\ntwo".to_owned(),
        };
        assert_eq!(
            slow.reason().to(Reader::Caller),
            "server `slow` did not start: it was not ready; only the person who runs Callgate can \
             mend that: use other servers, or tell the user; its last words on stderr:\n  one\n  two"
        );
        assert!(slow.to_string().contains("; raise its `startTimeout`; "));
    }
}

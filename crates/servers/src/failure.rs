//! Failed starts of servers and failed calls.

use std::fmt;
use std::time::Duration;

use callgate_auth::AuthError;
use callgate_text::shown_size;
use rmcp::model::ErrorData;

/// The advice for a caller, who cannot change the configuration.
const CALLER_ADVICE: &str =
    "only the person who runs Callgate can mend that: use other servers, or tell the user";

/// The audience of an error or a report, which gets only advice that it can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Audience {
    /// A person who can change flags and configuration.
    #[default]
    Operator,
    /// A model or a program that can change only the script and its arguments.
    Caller,
}

/// Why a server cannot be used, worded for each audience, without secrets. `Display` writes the
/// operator's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    operator: String,
    caller: String,
}

impl Reason {
    /// A problem that only the operator can fix, and how.
    pub(crate) fn advise(problem: &str, advice: &str) -> Self {
        Self {
            operator: format!("{problem}; {advice}"),
            caller: format!("{problem}; {CALLER_ADVICE}"),
        }
    }

    /// The text for this audience.
    pub fn to(&self, audience: Audience) -> &str {
        match audience {
            Audience::Operator => &self.operator,
            Audience::Caller => &self.caller,
        }
    }

    /// Changes the text for each audience.
    pub(crate) fn map(self, change: impl Fn(&str) -> String) -> Self {
        Self {
            operator: change(&self.operator),
            caller: change(&self.caller),
        }
    }

    /// The reason for a failed start; `stderr` is the end of the server's stderr, for the operator.
    pub(crate) fn of_start(mut self, server: &str, stderr: &str) -> Self {
        if self.caller == self.operator {
            self.push_for_caller(&format!("; {CALLER_ADVICE}"));
        }
        let mut reason = self.map(|reason| {
            // Indented lines of the server cannot be mistaken for lines of Callgate.
            let reason = reason.replace("\r\n", "\n").replace(['\n', '\r'], "\n  ");
            format!("server `{server}` did not start: {reason}")
        });
        if !stderr.is_empty() {
            let tail = format!("; its last words on stderr:\n{stderr}").replace('\n', "\n  ");
            reason.push_for_operator(&tail);
        }
        reason
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_for_operator(text);
        self.push_for_caller(text);
    }

    pub(crate) fn push_for_operator(&mut self, text: &str) {
        self.operator.push_str(text);
    }

    pub(crate) fn push_for_caller(&mut self, text: &str) {
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

/// Why a call has no result: a clause for each audience, without secrets. `Display` writes the
/// operator's text.
#[derive(Debug, Clone)]
pub struct CallFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// True if the server may have seen the call.
    pub sent: bool,
    /// A clause about unusable messages of the server; empty without any.
    pub unused: Box<str>,
    pub(crate) reason: Box<Reason>,
}

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq)]
pub enum FailureKind {
    /// The tool's definition is not the one that was decided on.
    ToolChanged,
    /// The server answered with a JSON-RPC error.
    Refused(Box<ErrorData>),
    /// Neither an answer nor progress in this time.
    Timeout(Duration),
    /// The request did not reach the server, or its answer did not come back.
    Lost(Lost),
    /// The answer is over this limit, in bytes.
    TooLarge(usize),
    /// The answer is malformed.
    Malformed,
    /// The server asks for input that cannot be given.
    Input,
}

/// The way in which a request, or its answer, was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The connection has ended.
    Closed,
    /// The server cannot be reached, reads nothing, or ended its answer early.
    Unreachable,
    /// An HTTP status without a JSON-RPC answer.
    Status(u16),
    /// The server asks for authorization.
    Unauthorized,
    /// The authorization failed; the reason says how to get it.
    Authorization,
}

impl CallFailure {
    pub(crate) fn new(kind: FailureKind, reason: impl Into<Reason>, sent: bool) -> Self {
        Self {
            kind,
            sent,
            unused: Box::default(),
            reason: Box::new(reason.into()),
        }
    }

    pub(crate) fn refused(error: ErrorData) -> Self {
        let reason = format!("{} (code {})", error.message, error.code.0);
        Self::new(FailureKind::Refused(Box::new(error)), reason, true)
    }

    pub(crate) fn timeout(limit: Duration) -> Self {
        let reason = format!("no answer within {} ms", limit.as_millis());
        Self::new(FailureKind::Timeout(limit), reason, true)
    }

    pub(crate) fn lost(lost: Lost, reason: impl Into<Reason>, sent: bool) -> Self {
        Self::new(FailureKind::Lost(lost), reason, sent)
    }

    /// A connection that has ended.
    pub(crate) fn closed(reason: impl Into<Reason>, sent: bool) -> Self {
        Self::lost(Lost::Closed, reason, sent)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let shown = shown_size(limit as u64);
        let ask = format!(
            "the answer is over the limit of {shown}; ask the tool for less (a filter, a page)"
        );
        let reason = Reason {
            operator: format!("{ask}, or raise \"result\" under \"limits\""),
            caller: ask,
        };
        Self::new(FailureKind::TooLarge(limit), reason, true)
    }

    pub(crate) fn malformed(fault: impl Into<Reason>) -> Self {
        Self::new(FailureKind::Malformed, fault, true)
    }

    pub(crate) fn input(reason: impl Into<Reason>) -> Self {
        Self::new(FailureKind::Input, reason, true)
    }

    /// True if the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.kind == FailureKind::Lost(Lost::Closed)
    }

    /// The text for this audience.
    pub fn to(&self, audience: Audience) -> String {
        let is_malformed = self.kind == FailureKind::Malformed;
        let prefix = if is_malformed {
            "the answer is malformed: "
        } else {
            ""
        };
        format!("{prefix}{}{}", self.reason.to(audience), self.unused)
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to(Audience::Operator))
    }
}

impl From<AuthError> for CallFailure {
    fn from(error: AuthError) -> Self {
        Self::lost(Lost::Authorization, &error, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_for_models_omits_commands_and_settings() {
        let login = Reason::from(&AuthError::login_required("web", "needs a login", &[]));
        assert_eq!(
            login.to(Audience::Operator),
            "server `web` needs a login; run `callgate auth login web`"
        );
        assert_eq!(
            login.to(Audience::Caller),
            "server `web` needs a login; the person who runs Callgate must log in to server \
             `web`: use other servers, or tell the user"
        );
        let slow = Reason::advise("it was not ready", "raise its `startTimeout`");
        let slow = slow.of_start("slow", "one\ntwo");
        assert_eq!(
            slow.to(Audience::Caller),
            "server `slow` did not start: it was not ready; only the person who runs Callgate can \
             mend that: use other servers, or tell the user"
        );
        assert!(
            slow.to_string()
                .ends_with("; raise its `startTimeout`; its last words on stderr:\n  one\n  two")
        );
        let mute = Reason::from("it closed its output").of_start("mute", "");
        assert_eq!(
            mute.to(Audience::Caller),
            "server `mute` did not start: it closed its output; only the person who runs Callgate \
             can mend that: use other servers, or tell the user"
        );
    }
}

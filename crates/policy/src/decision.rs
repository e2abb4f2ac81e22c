//! What the rules answer: a verdict, and what it rests on.

use std::fmt;

use serde::Serialize;

use crate::rules::Rule;

/// The answer to one tool call.
///
/// Its `Display` is one short line for a person, such as
/// `denied by rule "ticketing_*" in permissions.deny`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What happens to the call.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub because: Because,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call is sent.
    Allow,
    /// Somebody is asked; with nobody to ask, the call is denied.
    Ask,
    /// The call is not sent.
    Deny,
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Because {
    /// A rule matched.
    Rule(Rule),
    /// No rule matched, the tool says that it is read-only, and its server is
    /// trusted.
    ReadOnlyHint,
    /// No rule matched; the tool says that it is read-only, but its server is
    /// not trusted, so its word does not count.
    UntrustedHint,
    /// No rule matched, and the tool does not say that it is read-only.
    NoRule,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Allow => "allowed",
            Verdict::Ask => "needs approval",
            Verdict::Deny => "denied",
        };
        match &self.because {
            Because::Rule(rule) => write!(f, "{verdict} by {rule}"),
            Because::ReadOnlyHint => {
                write!(f, "{verdict}: a read-only tool of a trusted server")
            }
            Because::UntrustedHint => write!(
                f,
                "{verdict}: no rule matches, and the server that calls this tool read-only is \
                 not marked trusted"
            ),
            Because::NoRule => write!(f, "{verdict}: no rule matches"),
        }
    }
}

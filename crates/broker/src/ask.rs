//! Asking somebody whether a call may be made.

use callgate_policy::Decision;
use futures::future::BoxFuture;
use serde::Serialize;

/// Somebody who can say yes or no to a call.
pub trait Asker: Send + Sync {
    /// Asks about one call. A run asks one question at a time. The future must
    /// not block its thread: the run and its limits wait on the same one.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;
}

/// The asker for hosts without one: every question is answered with
/// [`Answer::Nobody`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

impl Asker for NobodyToAsk {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}

/// A call somebody is asked about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The whole arguments, as JSON text. Written by a script: control
    /// characters are escaped, but it may be long and may mislead.
    pub arguments: String,
    /// Why it is asked.
    pub decision: Decision,
}

/// What somebody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// This call may go.
    Once,
    /// This call and every later one of the same function in this run may go.
    Run,
    /// This call may not go.
    Deny,
    /// There is nobody to ask, so the call may not go.
    Nobody,
}

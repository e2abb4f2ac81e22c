//! One finding of `doctor`, and its line.

use callgate_text::{indented, undrawn};
use serde::Serialize;
use serde_json::Value;

/// The width of the column of subjects. A longer one moves the rest of its line.
const WIDTH: usize = 18;

/// One line of the output.
#[derive(Serialize)]
pub struct Check {
    /// The subject, such as `kernel` or `server git`.
    what: String,
    pub state: Outcome,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The finding for programs.
    #[serde(skip_serializing_if = "Value::is_null")]
    facts: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Ok,
    /// Runs work without it.
    Warning,
    /// Runs fail without it, or those that use this server.
    Missing,
}

impl Check {
    pub fn new(what: impl Into<String>, state: Outcome, says: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            state,
            says: says.into(),
            advice: None,
            facts: Value::Null,
        }
    }

    pub fn ok(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self::new(what, Outcome::Ok, says)
    }

    pub fn warning(what: impl Into<String>, says: impl Into<String>) -> Self {
        Self::new(what, Outcome::Warning, says)
    }

    /// A problem in a message of Callgate, where the advice follows a semicolon.
    pub fn missing(what: impl Into<String>, message: &str) -> Self {
        let (says, advice) = message.split_once("; ").unzip();
        let check = Self::new(what, Outcome::Missing, says.unwrap_or(message));
        Self {
            advice: advice.map(str::to_owned),
            ..check
        }
    }

    pub fn advise(self, advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..self
        }
    }

    pub fn facts(self, facts: Value) -> Self {
        Self { facts, ..self }
    }

    /// The line for a terminal. The advice about something missing is at the end of the output.
    pub fn line(&self) -> String {
        let (what, says) = (&self.what, &self.says);
        let state = match self.state {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Missing => "MISSING",
        };
        let mut line = format!("{state:7}  {what:WIDTH$}  {says}");
        if let Some(advice) = &self.advice
            && self.state != Outcome::Missing
        {
            // Foreign text stays on lines of its own.
            let then = if says.contains('\n') { "\n" } else { "; " };
            line += &format!("{then}{advice}");
        }
        format!("{}\n", undrawn(&indented(&line)))
    }

    /// The line at the end of the output, about something missing.
    pub fn to_do(&self) -> String {
        let advice = self.advice.as_deref().unwrap_or("see its line above");
        let line = indented(&format!("  {}: {advice}", self.what));
        format!("{}\n", undrawn(&line))
    }
}

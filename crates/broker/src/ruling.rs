//! What was decided about a call: the rules' word, and that of whoever was asked.

use std::fmt;

use callgate_policy::{Decision, Verdict};
use serde::Serialize;

use crate::ask::Answer;

/// What was decided about a call, by rule and, where a rule says so, by asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// What the rules said.
    pub decision: Decision,
    /// What the asker said, or had said before with [`Answer::Run`]; `None` if
    /// the rules decided alone.
    pub answer: Option<Answer>,
}

impl Ruling {
    /// Whether the call may go.
    pub fn allows(&self) -> bool {
        match self.decision.verdict {
            Verdict::Allow => true,
            Verdict::Deny => false,
            Verdict::Ask => matches!(self.answer, Some(Answer::Once | Answer::Run)),
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.decision.verdict, self.answer) {
            (Verdict::Ask, Some(Answer::Once)) => f.write_str("allowed once when asked"),
            (Verdict::Ask, Some(Answer::Run)) => f.write_str("allowed for this run when asked"),
            (Verdict::Ask, Some(Answer::Deny)) => f.write_str("denied when asked"),
            (Verdict::Ask, Some(Answer::Nobody) | None) => {
                write!(f, "{}, and there is nobody to ask", self.decision)
            }
            (Verdict::Allow | Verdict::Deny, _) => self.decision.fmt(f),
        }
    }
}

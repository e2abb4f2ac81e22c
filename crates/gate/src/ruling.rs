//! The outcome of a decision: the rules' decision, and the asker's answer.

use std::fmt;

use callgate_policy::flow::FlowWhy;
use callgate_policy::{Because, Decision, Leave, Rule, Verdict};
use callgate_process::shell_word;
use serde::Serialize;
use serde_json::Value;

use crate::ask::Answer;

/// The outcome of a decision: by rule and, where a rule says so, by asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// The decision of rules and grants.
    pub decision: Decision,
    /// The asker's answer; `None` if there was no question.
    pub answer: Option<Answer>,
}

impl Ruling {
    pub(crate) fn new(decision: Decision, answer: Option<Answer>) -> Self {
        Self { decision, answer }
    }

    /// A decision without a question.
    pub(crate) fn by_rules(decision: Decision) -> Self {
        Self::new(decision, None)
    }

    /// True if the call is allowed.
    pub fn allows(&self) -> bool {
        match self.decision.verdict {
            Verdict::Allow => true,
            Verdict::Deny => false,
            Verdict::Ask => self.answer.is_some_and(Answer::allows),
        }
    }

    /// The rule for calls that decided, or that said to ask; `None` if none matched.
    pub fn rule(&self) -> Option<&Rule> {
        if let Some(rule) = &self.decision.asked_by {
            return Some(rule);
        }
        match &self.decision.because {
            Because::Rule(rule) | Because::Depends(rule) => Some(rule),
            Because::DefinitionChanged(Leave::Rule(rule))
            | Because::Spent(Leave::Rule(rule))
            | Because::Expired(Leave::Rule(rule))
            | Because::OtherName(Leave::Rule(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The rule that decided, or that said to ask, as it stands in the configuration, and its
    /// place there: for calls, or for data between servers. `None` if no rule matched.
    pub fn written_rule(&self) -> Option<(Value, &str)> {
        match &self.decision.because {
            Because::Flow(reason) => match &reason.why {
                FlowWhy::Rule(rule) => Some((rule.to_json(), "flows")),
                _ => None,
            },
            _ => {
                let rule = self.rule()?;
                Some((rule.to_json(), rule.written_in.as_ref()))
            }
        }
    }

    /// The advice on a denial of this function that an answer could have prevented. It names who
    /// can follow it, since a client or a model has no flags. `None` if a rule or a person
    /// denied.
    pub fn advice(&self, function: &str) -> Option<String> {
        if !matches!(self.answer, Some(Answer::Nobody | Answer::Late)) {
            return None;
        }
        let word = shell_word(function);
        let how = match &self.decision.because {
            Because::Flow(_) => "under flows".to_owned(),
            Because::Reviewer(_) => return None,
            // A rule that asks comes before those that allow.
            because if matches!(because, Because::Rule(_)) || self.decision.asked_by.is_some() => {
                format!("with --allow {word}")
            }
            _ => format!("with --allow {word}, or under permissions.allow"),
        };
        Some(format!("whoever runs Callgate can allow it {how}"))
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decision = &self.decision;
        if decision.verdict != Verdict::Ask {
            return decision.fmt(f);
        }
        match self.answer {
            Some(Answer::Once) => f.write_str("allowed once when asked"),
            Some(Answer::Run) => f.write_str("allowed for this run when asked"),
            Some(Answer::Session) => f.write_str("allowed for this session when asked"),
            Some(Answer::Always) => f.write_str("allowed for good when asked"),
            Some(Answer::Standing) => write!(f, "{decision}, and --yes allows it"),
            Some(Answer::Deny) => f.write_str("denied when asked"),
            Some(Answer::Late) => write!(f, "{decision}, and nobody answered in time"),
            Some(Answer::Nobody) | None => write!(f, "{decision}, and there is nobody to ask"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callgate_policy::{CallFacts, Count, Definition, Effect, Hints, Permissions, Rules};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rule_that_asks_is_named_and_not_the_leave_that_is_used_up() {
        let definition = Definition::of(&json!({ "name": "write" }));
        let once = json!({
            "tool": "fs_write", "maxCalls": 1, "definition": definition.hash().to_string(),
        });
        let rule = |effect, entry| Rule::parse(effect, &entry).expect("a rule");
        let rules: Rules = [rule(Effect::Allow, once), rule(Effect::Ask, json!("fs_*"))]
            .into_iter()
            .collect();
        let permissions = Permissions::new(Arc::new(rules), Arc::default());
        let decided = || {
            let facts = CallFacts {
                function: "fs_write",
                other_names: None,
                server: "fs",
                tool: "write",
                hints: Hints::default(),
                trusted: false,
                definition: Some(definition.hash()),
                arguments: Some(&Value::Null),
                now: Timestamp::UNIX_EPOCH,
            };
            permissions.decide(&facts, Count::All)
        };
        let written = |decision| {
            let ruling = Ruling::by_rules(decision);
            let rule = ruling.written_rule();
            rule.map(|(_, place)| place.to_owned())
        };
        assert_eq!(written(decided()).as_deref(), Some("permissions.allow"));
        assert_eq!(written(decided()).as_deref(), Some("permissions.ask"));
    }
}

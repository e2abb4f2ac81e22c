//! The outcome of a decision: the rules' decision, and the asker's answer.

use std::fmt;
use std::sync::Arc;

use callgate_policy::{Because, Decision, Permission, Rule, Verdict};
use callgate_servers::Audience;
use callgate_text::{label, shell_word};
use serde_json::Value;

use crate::ask::{Answer, Reply};

/// The limit of the reason for a refusal, in characters.
const MAX_REASON: usize = 500;

/// The limit of the names of the answering person and of the way, in characters.
const MAX_NAME: usize = 200;

/// The outcome of a decision: by rule and, where a rule says so, by asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The decision of rules and grants.
    pub decision: Decision,
    /// The asker's answer; `None` if there was no question.
    pub answer: Option<Answer>,
    /// The details of the answer.
    pub(crate) details: Details,
    /// The readers of advice.
    pub(crate) audience: Audience,
    /// The configuration file, for the operator.
    pub(crate) file: Option<String>,
}

/// The details of an answer, as error, report and ledger have them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// The reason for a refusal.
    pub(crate) reason: Option<String>,
    /// The name of the answering person or program.
    pub(crate) by: Option<String>,
    /// The way by which the answer came.
    pub(crate) via: Option<String>,
    /// True if the call has the answer's arguments in place of the script's.
    pub(crate) is_edited: bool,
    /// Why the answer's arguments cannot be sent, as a whole clause.
    pub(crate) problem: Option<String>,
}

impl Details {
    pub(crate) fn of(reply: &Reply) -> Self {
        let shown = |text: &Option<String>, max| {
            let text = text.as_deref().map(|text| label(text, max));
            text.filter(|text| !text.is_empty())
        };
        Self {
            reason: shown(&reply.reason, MAX_REASON).filter(|_| !reply.answer.allows()),
            by: shown(&reply.by, MAX_NAME),
            via: shown(&reply.via, MAX_NAME),
            ..Self::default()
        }
    }
}

impl Ruling {
    pub(crate) fn new(decision: Decision, answer: Option<Answer>) -> Self {
        Self {
            decision,
            answer,
            details: Details::default(),
            audience: Audience::default(),
            file: None,
        }
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
            Verdict::Ask => {
                self.details.problem.is_none() && self.answer.is_some_and(Answer::allows)
            }
        }
    }

    /// True if the answer to a question allows the call, and was not given in advance.
    pub(crate) fn was_asked(&self) -> bool {
        let answer = self.answer.filter(|answer| *answer != Answer::Standing);
        answer.is_some_and(Answer::allows)
    }

    /// The answer that decided, with its details.
    pub(crate) fn reply(&self) -> Option<Reply> {
        let mut reply = Reply::from(self.answer?);
        reply.reason.clone_from(&self.details.reason);
        reply.by.clone_from(&self.details.by);
        reply.via.clone_from(&self.details.via);
        Some(reply)
    }

    /// The rule for calls that decided, or that made the asker be asked; `None` if no rule matched.
    pub fn rule(&self) -> Option<&Rule> {
        if let Some(rule) = &self.decision.asked_by {
            return Some(rule);
        }
        match &self.decision.because {
            Because::Rule(rule)
            | Because::Depends(rule)
            | Because::Inapplicable(_, Permission::Rule(rule)) => Some(rule),
            _ => None,
        }
    }

    /// The rule for calls or for data that decided, or that made the asker be asked: as the
    /// configuration has it, and its place there. `None` if no rule matched.
    pub fn written_rule(&self) -> Option<(Value, &str)> {
        match &self.decision.because {
            Because::Flow(rule, _) => Some((rule.as_ref()?.to_json(), "flows")),
            _ => {
                let rule = self.rule()?;
                Some((rule.to_json(), rule.written_in.as_ref()))
            }
        }
    }

    /// The advice on a denial of this function: the person who can permit the call, how, and
    /// whether it helps to call again. An operator reads how to permit it; only an operator has
    /// flags and files.
    pub fn advice(&self, function: &str) -> String {
        let because = &self.decision.because;
        let is_operator = self.audience == Audience::Operator;
        if let Some(advice) = self.advice_after_refusal() {
            return advice.to_owned();
        }
        if let Because::Scope(_) = because {
            return "start a new run that includes that server".to_owned();
        }
        if self.decision.verdict == Verdict::Deny {
            return self.advice_on_rule();
        }
        let again = match self.answer {
            Some(Answer::Late | Answer::Unclear) => "; calling again asks again",
            _ if self.details.problem.is_some() => "; calling again asks again",
            // An operator calls by running the script again, and can be asked then.
            _ if is_operator => "",
            // Clients without a person answer so at once.
            _ => "; calling again will not help",
        };
        let word = shell_word(function);
        let place = match &self.file {
            Some(file) => format!("under permissions.allow in {file}"),
            None => "under permissions.allow".to_owned(),
        };
        let how = match because {
            Because::Flow(..) => "under flows".to_owned(),
            Because::Reviewer(_) => {
                return format!("the operator's own check wants a person's approval{again}");
            }
            Because::OtherArguments(rules) => {
                let such = such_arguments(rules);
                let or = if is_operator {
                    "allow others"
                } else {
                    "tell the user: only the operator can allow others,"
                };
                return format!("use {such}, or {or} {place}{again}");
            }
            // An ask rule applies before allow rules of the configuration.
            because if matches!(because, Because::Rule(_)) || self.decision.asked_by.is_some() => {
                if is_operator {
                    format!("with --allow {word}")
                } else {
                    "by changing the rule that asks".to_owned()
                }
            }
            _ if is_operator => format!("with --allow {word}, or with {function:?} {place}"),
            _ => format!("with {function:?} {place}"),
        };
        if is_operator {
            format!("allow it {how}{again}")
        } else {
            format!("only the operator can allow it unasked, {how}{again}")
        }
    }

    /// The advice if a person refused.
    fn advice_after_refusal(&self) -> Option<&'static str> {
        match (self.answer?, self.audience) {
            (Answer::Deny | Answer::DenyRun, Audience::Operator) => Some("you answered no"),
            (Answer::Deny, _) => Some("a person refused; call again only if that person says so"),
            (Answer::DenyRun, _) => {
                Some("a person refused all calls of it in this run; do not call it again")
            }
            _ => None,
        }
    }

    /// The advice if the call is denied without a question.
    fn advice_on_rule(&self) -> String {
        let (whose, with) = match (&self.decision.because, self.audience) {
            (Because::Rule(_), Audience::Operator) => {
                return "to allow it, change that rule".to_owned();
            }
            (Because::Flow(..), Audience::Operator) => {
                return "to allow it, change the rules under flows".to_owned();
            }
            (Because::Rule(rule), _) if rule.arguments.is_empty() => ("configuration", ""),
            (Because::Rule(_), _) => ("configuration", " with these arguments"),
            (Because::Flow(..), _) => ("configuration", " with this data"),
            _ => ("own check", " with these arguments"),
        };
        format!(
            "that is the operator's {whose}, and only the operator can change it; calling \
             again{with} will not help"
        )
    }
}

/// The arguments that rules permit. A path with a segment of dots is not judged by its letters.
fn such_arguments(rules: &[Arc<Rule>]) -> &'static str {
    let mut conditions = rules.iter().flat_map(|rule| &rule.arguments);
    if conditions.any(|it| it.glob.is_some() || it.prefix.is_some()) {
        "such arguments, in a path without . or .."
    } else {
        "such arguments"
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(problem) = &self.details.problem {
            return f.write_str(problem);
        }
        let mut decision = self.decision.clone();
        if self.audience == Audience::Caller && decision.because == Because::UntrustedHint {
            // Only the operator can mark a server as trusted.
            decision.because = Because::NoRule;
        }
        if decision.verdict != Verdict::Ask {
            if self.details.is_edited {
                f.write_str("the operator's changed arguments are ")?;
            }
            return decision.fmt(f);
        }
        match self.answer {
            Some(Answer::Once) if self.details.is_edited => {
                f.write_str("allowed once when asked, with the operator's changed arguments")
            }
            Some(Answer::Once) => f.write_str("allowed once when asked"),
            Some(Answer::Run) => f.write_str("allowed for this run when asked"),
            Some(Answer::Session) => f.write_str("allowed for this session when asked"),
            Some(Answer::Always) => f.write_str("allowed for good when asked"),
            Some(Answer::Standing) => write!(f, "{decision}, and --yes allows it"),
            Some(Answer::Deny) => f.write_str("denied when asked"),
            Some(Answer::DenyRun) => f.write_str("denied for this run when asked"),
            Some(Answer::Dismissed) => {
                write!(
                    f,
                    "{decision}, and the client gave no answer, perhaps without asking its user"
                )
            }
            Some(Answer::Unclear) => {
                write!(f, "{decision}, and the answer was not one of those offered")
            }
            Some(Answer::Late) => write!(f, "{decision}, and no answer came in time"),
            Some(Answer::Failed) => write!(f, "{decision}, and asking failed without an answer"),
            Some(Answer::NoAsker) | None => write!(f, "{decision}, and there is no one to ask"),
        }?;
        match (self.answer, &self.details.reason) {
            (Some(Answer::Deny | Answer::DenyRun), Some(reason)) => {
                write!(f, ": the operator says: \"{reason}\"")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate_policy::flow::{Detector, FlowRules, Side};
    use callgate_policy::{
        CallFacts, Count, Definition, Effect, Grant, Hints, Inapplicable, Permissions, Rules,
        Scope, ToolName,
    };
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn denial_explains_how_to_permit_the_call() {
        let rule = |effect, entry| Arc::new(Rule::parse(effect, &entry).expect("a rule"));
        let deny = rule(Effect::Deny, json!("fs_*"));
        let some = json!({ "tool": "fs_*", "arguments": [{ "at": "/path", "prefix": "/etc/" }] });
        let ask = rule(Effect::Ask, json!("fs_*"));
        let allow = Permission::Rule(rule(
            Effect::Allow,
            json!({ "tool": "fs_write", "maxCalls": 1 }),
        ));
        let grant = Permission::Grant(Arc::new(Grant::new("fs_write")), Scope::Run);
        let flow = |verdict| {
            let flows = Detector::new("");
            let text = r#""the quick brown fox jumps over the lazy dog""#;
            flows.learn(&Side::new("a_x", "a", "x"), 1, text);
            let found = flows.find(&Side::new("fs_write", "fs", "write"), text, "");
            let mut decision = FlowRules::default().decide(&found[0]);
            decision.verdict = verdict;
            decision
        };
        let decided = Decision::new;
        let void = Because::Inapplicable(Inapplicable::OtherDefinition, grant);
        let mut asked_by = decided(Verdict::Ask, void.clone());
        asked_by.asked_by = Some(Arc::clone(&ask));
        let reviewer = || Because::Reviewer("not now".to_owned());
        let (no_asker, late) = (Some(Answer::NoAsker), Some(Answer::Late));
        let check = |decision, answer, expected: &str| {
            let mut ruling = Ruling::new(decision, answer);
            ruling.audience = Audience::Caller;
            assert!(!ruling.allows());
            let advice = ruling.advice("fs_write");
            let mut rest = Some(advice.as_str());
            for part in expected.split('…') {
                rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
            }
            assert!(rest.is_some(), "{ruling}: {advice}");
        };
        let denied = |because| decided(Verdict::Deny, because);
        let scope = Because::Scope("the run may use the tools of \"git\" alone".to_owned());
        for (decision, expected) in [
            (
                denied(Because::Rule(deny)),
                "operator's configuration…calling again will not help",
            ),
            (
                denied(Because::Rule(rule(Effect::Deny, some))),
                "calling again with these arguments",
            ),
            (
                flow(Verdict::Deny),
                "operator's configuration…calling again with this data will not",
            ),
            (
                denied(reviewer()),
                "operator's own check…calling again with these arguments",
            ),
            (denied(scope), "start a new run that includes that server"),
        ] {
            check(decision, None, expected);
        }
        for because in [
            Because::NoRule,
            Because::UntrustedHint,
            void,
            Because::Inapplicable(Inapplicable::Spent, allow),
        ] {
            let asked = decided(Verdict::Ask, because);
            let either = "with \"fs_write\" under permissions.allow; calling again will not";
            check(asked.clone(), no_asker, either);
            check(asked.clone(), None, either);
            check(
                asked,
                Some(Answer::Deny),
                "a person refused; call again only if",
            );
        }
        let only = "by changing the rule that asks; calling again will not help";
        check(decided(Verdict::Ask, Because::Rule(ask)), no_asker, only);
        check(asked_by, no_asker, only);
        check(
            decided(Verdict::Ask, Because::NoRule),
            late,
            "calling again asks again",
        );
        for (answer, expected) in [
            (Answer::Dismissed, "calling again will not help"),
            (Answer::Unclear, "calling again asks again"),
            (Answer::Failed, "calling again will not help"),
        ] {
            check(
                decided(Verdict::Ask, Because::NoRule),
                Some(answer),
                expected,
            );
        }
        check(
            flow(Verdict::Ask),
            no_asker,
            "under flows; calling again will not help",
        );
        check(
            decided(Verdict::Ask, reviewer()),
            late,
            "a person's approval; calling again asks",
        );
    }

    #[test]
    fn advice_names_flag_and_file_for_operator_only() {
        let outside = json!({ "tool": "db_query", "arguments": [{ "at": "/limit", "max": 9 }] });
        let outside = Rule::parse(Effect::Allow, &outside).expect("a rule");
        let ask = Rule::parse(Effect::Ask, &json!("db_*")).expect("a rule");
        for (because, for_operator, for_caller) in [
            (
                Because::NoRule,
                "allow it with --allow db_query, or with \"db_query\" under permissions.allow in \
                 callgate.json",
                "unasked, with \"db_query\" under permissions.allow; ",
            ),
            (
                Because::OtherArguments(vec![Arc::new(outside)]),
                "use such arguments, or allow others under permissions.allow in callgate.json",
                "can allow others, under permissions.allow; ",
            ),
            (
                Because::Rule(Arc::new(ask)),
                "allow it with --allow db_query",
                "unasked, by changing the rule that asks; ",
            ),
        ] {
            let mut ruling = Ruling::new(Decision::new(Verdict::Ask, because), None);
            ruling.file = Some("callgate.json".to_owned());
            let advice = ruling.advice("db_query");
            assert_eq!(advice, for_operator);
            (ruling.audience, ruling.file) = (Audience::Caller, None);
            let advice = ruling.advice("db_query");
            assert!(advice.contains(for_caller), "{advice}");
        }
        // A rule under permissions.allow would come after the one that asks.
        let ask = Rule::parse(Effect::Ask, &json!("db_*")).expect("a rule");
        let mut asked = Decision::new(Verdict::Ask, Because::NoRule);
        asked.asked_by = Some(Arc::new(ask));
        let advice = Ruling::new(asked, None).advice("db_query");
        assert_eq!(advice, "allow it with --allow db_query");
    }

    #[test]
    fn advice_on_paths_warns_of_dots() {
        for (condition, warns) in [
            (json!({ "at": "/file", "glob": "/srv/www/**" }), true),
            (json!({ "at": "/dir", "prefix": "/var/cache/" }), true),
            (json!({ "at": "/size", "min": 3 }), false),
        ] {
            let rule = json!({ "tool": "web_put", "arguments": [condition] });
            let rule = Arc::new(Rule::parse(Effect::Allow, &rule).expect("a rule"));
            let because = Because::OtherArguments(vec![rule]);
            let mut ruling = Ruling::new(Decision::new(Verdict::Ask, because), None);
            for audience in [Audience::Operator, Audience::Caller] {
                ruling.audience = audience;
                let advice = ruling.advice("web_put");
                assert_eq!(advice.contains("without . or .., or "), warns, "{advice}");
            }
        }
    }

    #[test]
    fn caller_reads_nothing_about_trust() {
        for (answer, end) in [
            (Answer::NoAsker, "and there is no one to ask"),
            (Answer::Late, "and no answer came in time"),
        ] {
            let asked = Decision::new(Verdict::Ask, Because::UntrustedHint);
            let mut ruling = Ruling::new(asked, Some(answer));
            assert!(ruling.to_string().contains("not marked trusted, and "));
            ruling.audience = Audience::Caller;
            let expected = format!("needs approval: no rule matches, {end}");
            assert_eq!(ruling.to_string(), expected);
        }
    }

    #[test]
    fn operator_reads_how_to_allow_a_denial() {
        let rule = Rule::parse(Effect::Deny, &json!("mail_*")).expect("a rule");
        let denied = Decision::new(Verdict::Deny, Because::Rule(Arc::new(rule)));
        let asked = || Decision::new(Verdict::Ask, Because::NoRule);
        for (decision, answer, expected) in [
            (denied, None, "to allow it, change that rule"),
            (asked(), Some(Answer::Deny), "you answered no"),
            (asked(), Some(Answer::DenyRun), "you answered no"),
            (
                asked(),
                Some(Answer::Late),
                "allow it with --allow mail_send, or with \"mail_send\" under permissions.allow; \
                 calling again asks again",
            ),
        ] {
            assert_eq!(Ruling::new(decision, answer).advice("mail_send"), expected);
        }
    }

    #[test]
    fn asking_rule_is_named_after_allow_is_spent() {
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
                name: ToolName {
                    function: "fs_write",
                    aliases: &[],
                    server: "fs",
                    tool: "write",
                },
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

//! The rules, and how they decide.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::decision::{Because, Decision, Verdict};
use crate::pattern::{Pattern, PatternError};

/// All rules of a run. Empty rules are the default: they allow what a trusted
/// server calls read-only, and ask about everything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Rules from three lists of patterns, as `permissions` in a configuration
    /// file has them.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for the first pattern that could never match.
    pub fn new<'a>(
        allow: impl IntoIterator<Item = &'a str>,
        ask: impl IntoIterator<Item = &'a str>,
        deny: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, PatternError> {
        let allow = allow.into_iter().map(|pattern| (Effect::Allow, pattern));
        let ask = ask.into_iter().map(|pattern| (Effect::Ask, pattern));
        let deny = deny.into_iter().map(|pattern| (Effect::Deny, pattern));
        let rules = allow
            .chain(ask)
            .chain(deny)
            .map(|(effect, pattern)| Ok(Rule::new(effect, Pattern::new(pattern)?)))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// Adds one rule, for example one from a command-line flag.
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// The rules in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// These rules with grants for one run: what `patterns` match is allowed
    /// although a rule would ask, but not where one denies.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for the first pattern that could never match.
    pub fn with_grants<'a>(
        mut self,
        patterns: impl IntoIterator<Item = &'a str>,
        written_in: &'static str,
    ) -> Result<Self, PatternError> {
        for pattern in patterns {
            let rule = Rule::new(Effect::Grant, Pattern::new(pattern)?);
            self.rules.push(rule.written_in(written_in));
        }
        Ok(self)
    }

    /// Decides one call: the first matching deny rule, else the first matching
    /// grant, ask rule, or allow rule, in this order. Without any, a tool that
    /// says it is read-only is allowed if its server is trusted, and every
    /// other call is needs approval.
    pub fn decide(&self, facts: &CallFacts<'_>) -> Decision {
        for effect in Effect::IN_ORDER {
            if let Some(rule) = self.first(effect, facts.function) {
                return Decision {
                    verdict: effect.verdict(),
                    because: Because::Rule(rule.clone()),
                };
            }
        }
        let (verdict, because) = match (facts.read_only, facts.trusted) {
            (true, true) => (Verdict::Allow, Because::ReadOnlyHint),
            (true, false) => (Verdict::Ask, Because::UntrustedHint),
            (false, _) => (Verdict::Ask, Because::NoRule),
        };
        Decision { verdict, because }
    }

    /// The rules that can decide nothing about the functions given: those that
    /// match none of them, and those that only match functions which rules
    /// asked earlier have already taken.
    pub fn unmatched<'a>(&self, functions: impl IntoIterator<Item = &'a str>) -> Vec<Unmatched> {
        let functions: Vec<&str> = functions.into_iter().collect();
        self.rules
            .iter()
            .filter_map(|rule| self.why_unmatched(rule, &functions))
            .collect()
    }

    fn why_unmatched(&self, rule: &Rule, functions: &[&str]) -> Option<Unmatched> {
        let mut taken_by = None;
        for function in functions
            .iter()
            .filter(|function| rule.pattern.matches(function))
        {
            let earlier = Effect::IN_ORDER
                .into_iter()
                .take_while(|effect| *effect != rule.effect)
                // A grant is there to come before other rules, for one run.
                .filter(|effect| *effect != Effect::Grant)
                .find_map(|effect| self.first(effect, function));
            taken_by = Some(earlier?);
        }
        Some(Unmatched {
            rule: rule.clone(),
            taken_by: taken_by.cloned(),
        })
    }

    fn first(&self, effect: Effect, function: &str) -> Option<&Rule> {
        self.rules
            .iter()
            .find(|rule| rule.effect == effect && rule.pattern.matches(function))
    }
}

/// One rule. Later versions add constraints to it (on arguments, on the number
/// of calls, on time, on the tool's schema), which is why it is built by
/// [`Rule::new`] and not by a literal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Rule {
    /// What the rule does with the calls it matches.
    pub effect: Effect,
    /// The functions it matches.
    pub pattern: Pattern,
    /// Where a person finds the rule, such as `permissions.deny` or `--allow`.
    pub written_in: Cow<'static, str>,
}

impl Rule {
    /// A rule written in `permissions` of a configuration file.
    pub fn new(effect: Effect, pattern: Pattern) -> Self {
        let written_in = match effect {
            Effect::Grant => "grants of this run",
            Effect::Allow => "permissions.allow",
            Effect::Ask => "permissions.ask",
            Effect::Deny => "permissions.deny",
        };
        Self {
            effect,
            pattern,
            written_in: written_in.into(),
        }
    }

    /// The same rule, written elsewhere.
    #[must_use]
    pub fn written_in(self, place: impl Into<Cow<'static, str>>) -> Self {
        Self {
            written_in: place.into(),
            ..self
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule \"{}\" in {}", self.pattern, self.written_in)
    }
}

/// What a rule does with the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The call is sent.
    Allow,
    /// Somebody is asked.
    Ask,
    /// The call is sent, even where an ask rule matches: the answer was given
    /// beforehand, for one run.
    Grant,
    /// The call is not sent.
    Deny,
}

impl Effect {
    /// The order in which rules are asked.
    const IN_ORDER: [Self; 4] = [Self::Deny, Self::Grant, Self::Ask, Self::Allow];

    fn verdict(self) -> Verdict {
        match self {
            Self::Allow | Self::Grant => Verdict::Allow,
            Self::Ask => Verdict::Ask,
            Self::Deny => Verdict::Deny,
        }
    }
}

/// What is known about a call when it is decided.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The generated name; patterns match this.
    pub function: &'a str,
    /// The server's name in the configuration. No rule reads it yet.
    pub server: &'a str,
    /// The tool's own name. No rule reads it yet.
    pub tool: &'a str,
    /// The tool's `readOnlyHint`: its server's word, worth something only if
    /// the server is trusted.
    pub read_only: bool,
    /// Whether the configuration marks the server as trusted.
    pub trusted: bool,
    /// The arguments as JSON text, if they are known. No rule reads them yet.
    pub arguments: Option<&'a str>,
}

/// A rule that can decide nothing, and why. Its `Display` is a warning for a
/// person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// The rule.
    pub rule: Rule,
    /// A rule that takes what this one matches; `None` if it matches nothing.
    pub taken_by: Option<Rule>,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.taken_by {
            None => write!(f, "{} matches no tool", self.rule),
            Some(earlier) => {
                write!(f, "{} never decides: {earlier} comes first", self.rule)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn rules() -> Rules {
        let rules = Rules::new(
            ["logging_*", "ticketing_createIssue"],
            ["*_write*"],
            ["*delete*", "ticketing_close"],
        )
        .expect("patterns");
        rules.with_grants(["git_log"], "--allow").expect("patterns")
    }

    fn check(rules: &Rules, function: &str, read_only: bool, trusted: bool, expected: Expect) {
        let decision = rules.decide(&CallFacts {
            function,
            server: "server",
            tool: "tool",
            read_only,
            trusted,
            arguments: None,
        });
        expected.assert_eq(&format!("{:?}: {decision}", decision.verdict));
    }

    #[test]
    fn a_grant_comes_after_deny_and_before_ask() {
        let rules = rules().with_grants(["*"], "--allow").expect("patterns");
        let check = |function, expected: Expect| check(&rules, function, false, false, expected);
        check(
            "notes_write",
            expect![[r#"Allow: allowed by rule "*" in --allow"#]],
        );
        check(
            "notes_delete",
            expect![[r#"Deny: denied by rule "*delete*" in permissions.deny"#]],
        );
    }

    #[test]
    fn deny_comes_before_ask_and_ask_before_allow() {
        let rules = rules();
        check(
            &rules,
            "logging_getLogs",
            false,
            false,
            expect![[r#"Allow: allowed by rule "logging_*" in permissions.allow"#]],
        );
        check(
            &rules,
            "logging_writeLog",
            true,
            true,
            expect![[r#"Ask: needs approval by rule "*_write*" in permissions.ask"#]],
        );
        check(
            &rules,
            "logging_write_or_delete",
            true,
            true,
            expect![[r#"Deny: denied by rule "*delete*" in permissions.deny"#]],
        );
        check(
            &rules,
            "git_log",
            false,
            false,
            expect![[r#"Allow: allowed by rule "git_log" in --allow"#]],
        );
    }

    #[test]
    fn without_a_rule_only_a_trusted_read_only_tool_is_allowed() {
        let rules = rules();
        check(
            &rules,
            "git_show",
            true,
            true,
            expect!["Allow: allowed: a read-only tool of a trusted server"],
        );
        check(
            &rules,
            "git_show",
            true,
            false,
            expect![
                "Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted"
            ],
        );
        check(
            &rules,
            "git_show",
            false,
            true,
            expect!["Ask: needs approval: no rule matches"],
        );
        check(
            &Rules::default(),
            "git_show",
            false,
            false,
            expect!["Ask: needs approval: no rule matches"],
        );
    }

    #[test]
    fn rules_that_can_decide_nothing_are_found() {
        let rules = Rules::new(
            ["logging_*", "ticketing_*", "ticktng_*", "git_deleteBranch"],
            ["ticketing_*"],
            ["*delete*"],
        )
        .expect("patterns");
        let found: Vec<String> = rules
            .unmatched([
                "logging_getLogs",
                "ticketing_createIssue",
                "git_deleteBranch",
            ])
            .iter()
            .map(ToString::to_string)
            .collect();
        expect![[r#"
            rule "ticketing_*" in permissions.allow never decides: rule "ticketing_*" in permissions.ask comes first
            rule "ticktng_*" in permissions.allow matches no tool
            rule "git_deleteBranch" in permissions.allow never decides: rule "*delete*" in permissions.deny comes first"#]]
        .assert_eq(&found.join("\n"));
    }

    #[test]
    fn the_first_bad_pattern_is_the_error() {
        let error = Rules::new(["good_*"], ["bad pattern"], [""]).expect_err("bad pattern");
        assert_eq!(error.pattern(), "bad pattern");
    }
}

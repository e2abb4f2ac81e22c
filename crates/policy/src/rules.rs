//! All rules of a run, and the loop that decides.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::condition::Condition;
use crate::decision::{Because, Decision, Permission};
use crate::error::RuleError;
use crate::facts::CallFacts;
use crate::grants::{Answer, Inapplicable, Scope};
use crate::rule::{Effect, Rank, Rule};
use crate::rule_match::{Match, rule_match};
use crate::verdict::Verdict;

/// All rules of a run. Empty rules are the default: they allow what a trusted
/// server calls read-only, and ask about everything else.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Arc<Rule>>,
    /// The indexes of the rules for this run only.
    of_run: Vec<usize>,
}

/// Makes [`Rules`] of entries as `permissions` of a configuration has them: a pattern over names,
/// such as `"time_*"`, or an object with further tests, such as
/// `json!({ "tool": "fs_write", "arguments": [{ "at": "/path", "prefix": "/tmp/" }] })`.
#[derive(Default)]
#[must_use]
pub struct RulesBuilder {
    rules: Rules,
    fault: Option<RuleError>,
}

impl RulesBuilder {
    /// Allows calls that match.
    pub fn allow(self, rule: impl Into<Value>) -> Self {
        self.add(Effect::Allow, &rule.into())
    }

    /// Asks before calls that match, whatever else allows them.
    pub fn ask(self, rule: impl Into<Value>) -> Self {
        self.add(Effect::Ask, &rule.into())
    }

    /// Denies calls that match, whatever else allows them.
    pub fn deny(self, rule: impl Into<Value>) -> Self {
        self.add(Effect::Deny, &rule.into())
    }

    fn add(mut self, effect: Effect, rule: &Value) -> Self {
        match Rule::parse(effect, rule) {
            Ok(rule) => self.rules.push(rule),
            Err(fault) => self.fault = self.fault.or(Some(fault)),
        }
        self
    }

    /// The rules.
    ///
    /// # Errors
    ///
    /// [`RuleError`] for the first entry that is not a rule.
    pub fn build(self) -> Result<Rules, RuleError> {
        self.fault.map_or(Ok(self.rules), Err)
    }
}

impl Rules {
    /// A builder without rules.
    pub fn builder() -> RulesBuilder {
        RulesBuilder::default()
    }

    /// Adds one rule, as a configuration file has it.
    #[doc(hidden)]
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(Arc::new(rule));
    }

    /// Adds one rule for this run, as a command-line flag does. Where an ask rule of the run matches,
    /// allow rules bound to a definition do not count: they are answers from before the run.
    #[doc(hidden)]
    pub fn push_for_run(&mut self, rule: Rule) {
        self.of_run.push(self.rules.len());
        self.push(rule);
    }

    /// The rules in the order in which they were added.
    #[doc(hidden)]
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(Arc::as_ref)
    }

    /// All rules with their lists, as one value to compare or to hash.
    #[doc(hidden)]
    pub fn to_json(&self) -> Value {
        let rules = self.rules.iter().enumerate();
        let rules = rules.map(|(index, rule)| {
            json!({
                "list": rule.effect.list(),
                "isOfRun": self.of_run.contains(&index),
                "rule": rule.to_json(),
            })
        });
        rules.collect()
    }

    /// Decides a call as if no rule had been used yet:
    /// the first matching deny rule, else the first matching grant (an allow
    /// rule bound to a definition is one, unless an ask rule of
    /// [`Rules::push_for_run`] matches), ask rule, or allow rule, in this
    /// order. Without any, a tool that says it is read-only is allowed if its
    /// server is trusted, and every other call needs approval.
    ///
    /// [`crate::Permissions`] decides the calls of a run: it counts, and knows
    /// what was granted.
    #[doc(hidden)]
    pub fn decide(&self, facts: &CallFacts<'_>) -> Decision {
        self.decide_with(facts, |_, _| true, |_| Answer::Nothing)
    }

    /// Decides with counts and grants. `usable` says whether a rule that counts
    /// its calls may let one more through, and counts it.
    pub(crate) fn decide_with(
        &self,
        facts: &CallFacts<'_>,
        usable: impl Fn(usize, u32) -> bool,
        granted: impl Fn(Scope) -> Answer,
    ) -> Decision {
        let mut doubts = Doubts::default();
        for rank in [Rank::Deny, Rank::Grant, Rank::Ask, Rank::Allow] {
            if rank == Rank::Ask
                && let Some(because) = doubts.ask_grants(&granted)
            {
                return doubts.conclude(Verdict::Allow, because);
            }
            for (index, rule) in self.rules.iter().enumerate() {
                if rule.rank() != rank {
                    continue;
                }
                let permission = || Permission::Rule(Arc::clone(rule));
                match rule_match(rule, facts) {
                    Match::No => {}
                    Match::Depends => doubts.depends_on(rule),
                    Match::Inapplicable(why) => doubts.note(why, permission),
                    // Before a use of it is counted.
                    Match::Yes
                        if is_kept_answer(rule) && self.is_asked_in_run(facts, &mut doubts) => {}
                    Match::Yes => match rule.counted() {
                        Some(max) if !usable(index, max) => {
                            doubts.note(Inapplicable::Spent, permission)
                        }
                        _ => {
                            let because = Because::Rule(Arc::clone(rule));
                            return doubts.conclude(rule.effect.verdict(), because);
                        }
                    },
                }
            }
        }
        let others = self.for_other_arguments(facts);
        let (verdict, because) = match (facts.hints.read_only, facts.trusted) {
            // Calls beyond a permission's limit are not allowed by a hint of the server.
            _ if doubts.inapplicable.is_some() => (Verdict::Ask, Because::NoRule),
            (Some(true), true) => (Verdict::Allow, Because::ReadOnlyHint),
            _ if !others.is_empty() => (Verdict::Ask, Because::OtherArguments(others)),
            (Some(true), false) => (Verdict::Ask, Because::UntrustedHint),
            (_, _) => (Verdict::Ask, Because::NoRule),
        };
        doubts.conclude(verdict, because)
    }

    /// The arguments with which rules allow calls of a tool, in words: a text for each rule that has
    /// conditions on them. `facts` are without arguments.
    #[doc(hidden)]
    pub fn allowed_arguments(&self, facts: &CallFacts<'_>) -> Vec<String> {
        let rules = self.allowing_some_arguments(facts);
        rules
            .map(|rule| {
                let conditions = rule.arguments.iter().map(Condition::in_short);
                conditions.collect::<Vec<_>>().join(" and ")
            })
            .collect()
    }

    /// The rules that would allow the call with other arguments. None match it.
    fn for_other_arguments(&self, facts: &CallFacts<'_>) -> Vec<Arc<Rule>> {
        if facts.arguments.is_none() {
            return Vec::new();
        }
        let unknown = CallFacts {
            arguments: None,
            ..*facts
        };
        self.allowing_some_arguments(&unknown).cloned().collect()
    }

    /// The rules that allow calls of a tool with some arguments. `facts` are without arguments.
    fn allowing_some_arguments(&self, facts: &CallFacts<'_>) -> impl Iterator<Item = &Arc<Rule>> {
        let rules = self.rules.iter();
        rules.filter(|rule| rule.effect.widens() && rule_match(rule, facts) == Match::Depends)
    }

    /// True if an ask rule of this run matches the call, so that answers from before the run do not
    /// count.
    fn is_asked_in_run(&self, facts: &CallFacts<'_>, doubts: &mut Doubts) -> bool {
        let of_run = self
            .of_run
            .iter()
            .filter_map(|index| self.rules.get(*index));
        for rule in of_run.filter(|rule| rule.effect == Effect::Ask) {
            match rule_match(rule, facts) {
                Match::Yes => return true,
                Match::Depends => doubts.depends_on(rule),
                Match::No | Match::Inapplicable(_) => {}
            }
        }
        false
    }

    pub(crate) fn as_slice(&self) -> &[Arc<Rule>] {
        &self.rules
    }
}

/// True for a rule that the answer "always" wrote into a file.
fn is_kept_answer(rule: &Rule) -> bool {
    rule.effect == Effect::Allow && rule.definition.is_some()
}

/// The rules and grants that were passed over on the way to a decision.
#[derive(Default)]
struct Doubts {
    inapplicable: Option<(Inapplicable, Permission)>,
    /// A rule that would restrict the call, depending on the arguments.
    may_narrow: Option<Arc<Rule>>,
    /// A rule that would let the call through, depending on the arguments.
    may_widen: Option<Arc<Rule>>,
}

impl Doubts {
    fn depends_on(&mut self, rule: &Arc<Rule>) {
        let place = if rule.effect.widens() {
            &mut self.may_widen
        } else {
            &mut self.may_narrow
        };
        place.get_or_insert_with(|| Arc::clone(rule));
    }

    /// Keeps the permission with the most important reason, and the first of several such.
    fn note(&mut self, why: Inapplicable, permission: impl FnOnce() -> Permission) {
        let known = self.inapplicable.as_ref();
        if known.is_none_or(|(known, _)| *known > why) {
            self.inapplicable = Some((why, permission()));
        }
    }

    /// Asks the grants of the run, and then those of the session.
    fn ask_grants(&mut self, granted: impl Fn(Scope) -> Answer) -> Option<Because> {
        for scope in [Scope::Run, Scope::Session] {
            match granted(scope) {
                Answer::Granted(grant) => return Some(Because::Grant(grant, scope)),
                Answer::OtherDefinition(grant) => {
                    self.note(Inapplicable::OtherDefinition, || {
                        Permission::Grant(grant, scope)
                    });
                }
                Answer::Nothing => {}
            }
        }
        None
    }

    fn conclude(self, verdict: Verdict, because: Because) -> Decision {
        let Self {
            inapplicable,
            may_narrow,
            may_widen,
        } = self;
        match (verdict, may_narrow) {
            (Verdict::Allow, Some(rule)) => Decision::new(Verdict::Ask, Because::Depends(rule)),
            (Verdict::Ask, may_narrow) => Decision {
                may_deny: may_narrow.filter(|rule| rule.effect == Effect::Deny),
                ..ask(inapplicable, may_widen, because)
            },
            (verdict, _) => Decision::new(verdict, because),
        }
    }
}

/// The decision to ask. A permission that depends on the arguments, or does not apply any more, is
/// the reason if there is one.
fn ask(
    inapplicable: Option<(Inapplicable, Permission)>,
    may_widen: Option<Arc<Rule>>,
    because: Because,
) -> Decision {
    if let Some(rule) = may_widen {
        return Decision::new(Verdict::Ask, Because::Depends(rule));
    }
    if let Some((why, permission)) = inapplicable {
        let asked_by = match because {
            Because::Rule(rule) => Some(rule),
            _ => None,
        };
        return Decision {
            asked_by,
            ..Decision::new(Verdict::Ask, Because::Inapplicable(why, permission))
        };
    }
    Decision::new(Verdict::Ask, because)
}

impl FromIterator<Rule> for Rules {
    fn from_iter<T: IntoIterator<Item = Rule>>(rules: T) -> Self {
        Self {
            rules: rules.into_iter().map(Arc::new).collect(),
            of_run: Vec::new(),
        }
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.rules).finish()
    }
}

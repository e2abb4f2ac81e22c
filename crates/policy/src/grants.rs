//! Grants: permission to call a function, given while a run or a session goes on.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

use crate::condition::Condition;
use crate::definition::Definition;
use crate::facts::CallFacts;
use crate::name_pattern::{Pattern, PatternError};
use crate::rule::{Effect, Rule};
use crate::rule_match::{Match, arguments_match};

/// Permission to call one function, given by a person who was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The function's generated name.
    pub function: String,
    /// The conditions on its arguments; empty for any.
    pub arguments: Vec<Condition>,
    /// The number of calls that it lets through; `None` for any number.
    pub uses: Option<u32>,
    /// The definition of the tool for which it holds; `None` for any.
    pub definition: Option<Arc<Definition>>,
    /// The time from which it is void.
    pub expires: Option<Timestamp>,
}

/// The duration of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// For one run.
    Run,
    /// For all runs of a session, those too that are under way.
    Session,
}

impl Grant {
    /// A grant for every call of a function.
    pub fn new(function: impl Into<String>) -> Self {
        Self {
            function: function.into(),
            arguments: Vec::new(),
            uses: None,
            definition: None,
            expires: None,
        }
    }

    /// Only for these arguments.
    #[must_use]
    pub fn exactly(mut self, arguments: Value) -> Self {
        self.arguments = vec![Condition::exactly(arguments)];
        self
    }

    /// Only for so many calls.
    #[must_use]
    pub fn uses(mut self, uses: u32) -> Self {
        self.uses = Some(uses);
        self
    }

    /// Only as long as the tool is what it is.
    #[must_use]
    pub fn of(mut self, definition: Arc<Definition>) -> Self {
        self.definition = Some(definition);
        self
    }

    /// Only until then.
    #[must_use]
    pub fn until(mut self, expires: Timestamp) -> Self {
        self.expires = Some(expires);
        self
    }

    /// The grant as an allow rule for a configuration file.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for a function that no generated name can be.
    pub fn to_rule(&self) -> Result<Rule, PatternError> {
        let mut rule = Rule::new(Effect::Allow, Pattern::name(&self.function)?);
        rule.arguments = self.arguments.clone();
        rule.max_calls = self.uses;
        rule.definition = self.definition.as_deref().map(|known| *known.hash());
        rule.expires = self.expires;
        Ok(rule)
    }

    fn matches(&self, facts: &CallFacts<'_>) -> Match {
        let arguments = arguments_match(&self.arguments, facts.arguments, true);
        if arguments == Match::No {
            return Match::No;
        }
        if self.expires.is_some_and(|expires| expires <= facts.now) {
            return Match::Void(Void::Expired);
        }
        let bound_to = self.definition.as_deref().map(Definition::hash);
        if bound_to.is_some() && bound_to != facts.definition {
            return Match::Void(Void::OtherDefinition);
        }
        arguments
    }
}

/// The grants of a session, or of one run. They are shared between threads, and no use is given
/// twice. Those of a session also count the uses of rules by calls without a script.
#[derive(Default)]
pub struct SessionGrants(Mutex<Granted>);

#[derive(Default)]
struct Granted {
    by_function: HashMap<String, Vec<Given>>,
    /// The uses of each rule by calls without a script, by the text of the rule.
    rules: HashMap<String, u32>,
}

struct Given {
    grant: Arc<Grant>,
    used: u32,
}

/// The answer of the grants to a call.
pub(crate) enum Answer {
    /// This one lets it through.
    Granted(Arc<Grant>),
    /// This one would let it through if it were not void.
    Void(Arc<Grant>, Void),
    /// None lets it through, as far as the arguments are known: a grant only makes it easier.
    Nothing,
}

/// The reason why a rule or grant does not let calls through any more, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Void {
    OtherDefinition,
    Spent,
    Expired,
    OtherName,
}

impl SessionGrants {
    /// No grants.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a grant. Those of the same function that are used up are forgotten.
    pub fn add(&self, grant: Grant) {
        let mut granted = self.lock();
        let grants = granted
            .by_function
            .entry(grant.function.clone())
            .or_default();
        grants.retain_mut(|given| given.use_once(false));
        let grant = Arc::new(grant);
        grants.push(Given { grant, used: 0 });
    }

    /// Every grant, used up or not, by function.
    pub fn list(&self) -> Vec<Arc<Grant>> {
        let granted = self.lock();
        let grants = granted.by_function.values().flatten();
        let mut grants: Vec<_> = grants.map(|given| Arc::clone(&given.grant)).collect();
        grants.sort_by(|a, b| a.function.cmp(&b.function));
        grants
    }

    /// Takes back every grant. The counts of rules stay.
    pub fn clear(&self) {
        self.lock().by_function.clear();
    }

    /// True if this rule, which lets `most` calls without a script through in a session, lets
    /// one more through. `take` counts it.
    pub(crate) fn use_rule(&self, rule: &Rule, most: u32, take: bool) -> bool {
        let text = format!("{:?} {} {}", rule.effect, rule.written_in, rule.to_json());
        use_once(self.lock().rules.entry(text).or_default(), most, take)
    }

    /// Asks the grants about a call. `take` counts the use.
    pub(crate) fn answer(&self, facts: &CallFacts<'_>, take: bool) -> Answer {
        let mut granted = self.lock();
        let mut answer = Answer::Nothing;
        let long = facts.other_names.and_then(|names| names.long());
        for name in [Some(facts.function), long].into_iter().flatten() {
            for given in granted.by_function.get_mut(name).into_iter().flatten() {
                let void = match given.grant.matches(facts) {
                    Match::No | Match::Depends => continue,
                    Match::Yes if given.use_once(take) => {
                        return Answer::Granted(Arc::clone(&given.grant));
                    }
                    Match::Yes => Void::Spent,
                    Match::Void(void) => void,
                };
                if !matches!(&answer, Answer::Void(_, known) if *known <= void) {
                    answer = Answer::Void(Arc::clone(&given.grant), void);
                }
            }
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Granted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Given {
    fn use_once(&mut self, take: bool) -> bool {
        let most = self.grant.uses;
        most.is_none_or(|most| use_once(&mut self.used, most, take))
    }
}

/// True if a use is left. `take` counts it.
pub(crate) fn use_once(used: &mut u32, most: u32, take: bool) -> bool {
    let is_left = *used < most;
    *used += u32::from(is_left && take);
    is_left
}

impl fmt::Debug for SessionGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

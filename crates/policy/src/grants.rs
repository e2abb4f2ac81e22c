//! Grants: permission to call a function, given while a run or a session goes on.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::definition::Definition;
use crate::error::RuleError;
use crate::facts::CallFacts;
use crate::name_pattern::Pattern;
use crate::rule::{Effect, Rule};

/// Permission to call one function, given by a person who was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The function's generated name.
    pub function: String,
    /// The definition of the tool for which it holds; `None` for any.
    #[doc(hidden)]
    pub definition: Option<Arc<Definition>>,
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
            definition: None,
        }
    }

    /// Limits the grant to this definition of the tool.
    #[doc(hidden)]
    #[must_use]
    pub fn of(mut self, definition: Arc<Definition>) -> Self {
        self.definition = Some(definition);
        self
    }

    /// The grant as an allow rule for a configuration file.
    /// The error: no generated name can be that of the function.
    #[doc(hidden)]
    pub fn to_rule(&self) -> Result<Rule, RuleError> {
        let mut rule = Rule::new(Effect::Allow, Pattern::name(&self.function)?);
        rule.definition = self.definition.as_deref().map(|known| *known.hash());
        Ok(rule)
    }

    fn is_bound_to_another(&self, facts: &CallFacts<'_>) -> bool {
        let bound_to = self.definition.as_deref().map(Definition::hash);
        bound_to.is_some() && bound_to != facts.definition
    }
}

/// The grants of a session, or of one run. They are shared between threads. Those of a session
/// also count the uses of rules by calls without a script.
#[derive(Debug, Default)]
pub struct SessionGrants(Mutex<Granted>);

#[derive(Debug, Default)]
struct Granted {
    by_function: HashMap<String, Vec<Arc<Grant>>>,
    /// The uses of each rule by calls without a script, by the text of the rule.
    rules: HashMap<String, u32>,
}

/// The answer of the grants to a call.
pub(crate) enum Answer {
    /// This one lets it through.
    Granted(Arc<Grant>),
    /// This one would let it through if the tool's definition were still the same.
    OtherDefinition(Arc<Grant>),
    /// None lets it through.
    Nothing,
}

/// The reason why a rule or grant does not let calls through any more, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inapplicable {
    /// It is for an earlier definition of the tool.
    OtherDefinition,
    /// All of its uses are counted.
    Spent,
    /// Its time is over.
    Expired,
    /// It is a rule with a limit for an alias of the tool.
    OtherName,
}

impl SessionGrants {
    /// No grants.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a grant.
    pub fn add(&self, grant: Grant) {
        let mut granted = self.0.lock();
        let name = grant.function.clone();
        granted
            .by_function
            .entry(name)
            .or_default()
            .push(Arc::new(grant));
    }

    /// True if this rule, which lets `max` calls without a script through in a session, lets
    /// one more through. `take` counts it.
    pub(crate) fn use_rule(&self, rule: &Rule, max: u32, take: bool) -> bool {
        let text = format!("{:?} {} {}", rule.effect, rule.written_in, rule.to_json());
        use_once(self.0.lock().rules.entry(text).or_default(), max, take)
    }

    /// Asks the grants about a call.
    pub(crate) fn answer(&self, facts: &CallFacts<'_>) -> Answer {
        let granted = self.0.lock();
        let grants = granted.by_function.get(facts.name.function);
        let mut bound_to_another = None;
        for grant in grants.into_iter().flatten() {
            if !grant.is_bound_to_another(facts) {
                return Answer::Granted(Arc::clone(grant));
            }
            bound_to_another.get_or_insert(grant);
        }
        bound_to_another.map_or(Answer::Nothing, |it| {
            Answer::OtherDefinition(Arc::clone(it))
        })
    }
}

/// True if a use is left. `take` counts it.
pub(crate) fn use_once(used: &mut u32, max: u32, take: bool) -> bool {
    let is_left = *used < max;
    *used += u32::from(is_left && take);
    is_left
}

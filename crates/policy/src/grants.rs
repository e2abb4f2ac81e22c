//! What somebody granted while a run or a session went on.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::condition::Condition;
use crate::definition::Definition;
use crate::facts::CallFacts;
use crate::name_pattern::{Pattern, PatternError};
use crate::rule::{Effect, Rule};
use crate::rule_match::{Match, arguments_match};

/// Leave to call one function, given by somebody who was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The function's generated name.
    pub function: String,
    /// What the arguments must be like; nothing here means any.
    pub arguments: Vec<Condition>,
    /// How many calls it lets through; `None` for any number.
    pub uses: Option<u32>,
    /// What the tool was when it was granted. The grant is void for a tool that
    /// has become another. `None` for whatever the tool becomes.
    pub definition: Option<Arc<Definition>>,
    /// From when on it is void.
    pub expires: Option<Timestamp>,
}

/// For how long a grant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
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
    pub fn exactly(self, arguments: Value) -> Self {
        self.only(vec![Condition::exactly(arguments)])
    }

    /// Only for arguments that are so.
    #[must_use]
    pub fn only(self, arguments: Vec<Condition>) -> Self {
        Self { arguments, ..self }
    }

    /// Only for so many calls.
    #[must_use]
    pub fn uses(self, uses: u32) -> Self {
        Self {
            uses: Some(uses),
            ..self
        }
    }

    /// Only as long as the tool is what it is.
    #[must_use]
    pub fn of(self, definition: Arc<Definition>) -> Self {
        Self {
            definition: Some(definition),
            ..self
        }
    }

    /// Only until then.
    #[must_use]
    pub fn until(self, expires: Timestamp) -> Self {
        Self {
            expires: Some(expires),
            ..self
        }
    }

    /// The grant as an allow rule, for the file of somebody who says "always".
    /// Its [`Rule::to_json`] is what goes into the list. The count of uses
    /// becomes one for each run.
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

impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.to_rule() {
            Ok(rule) => rule.to_json().serialize(serializer),
            Err(_) => self.function.serialize(serializer),
        }
    }
}

/// From how many rules on the counts of those that are over are forgotten.
const MANY_RULES: usize = 256;
/// How long they are kept at the least: a call that is being decided may have an earlier clock.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// The grants of a session, or of one run: shared between threads, and counted
/// so that no use is given twice. Those of a session know, too, how often rules were used
/// by its calls without a script.
#[derive(Default)]
pub struct SessionGrants {
    by_function: RwLock<FxHashMap<String, Vec<Given>>>,
    /// The uses of rules by calls without a script, which are no run of their own. Rules that
    /// read the same have one count.
    used: Mutex<Used>,
}

/// How often rules were used, by what they say.
#[derive(Default)]
struct Used {
    by_rule: FxHashMap<String, OfRule>,
    /// How many rules there were when those were last forgotten that let nothing through any
    /// more.
    kept: usize,
}

#[derive(Default)]
struct OfRule {
    count: AtomicU32,
    expires: Option<Timestamp>,
}

#[derive(Clone)]
struct Given {
    grant: Arc<Grant>,
    used: Arc<AtomicU32>,
}

/// What grants say of a call.
pub(crate) enum Answer {
    /// This one lets it through.
    Granted(Arc<Grant>),
    /// One would have, but for this.
    Void(Arc<Grant>, Void),
    /// One might, depending on the arguments.
    Depends,
    /// None does.
    Nothing,
}

/// Why leave that was given does not count any more, the weightiest first.
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

    /// Adds one. Those of the same function that can let nothing through any
    /// more for being used up are forgotten.
    pub fn add(&self, grant: Grant) {
        let function = grant.function.clone();
        let given = Given {
            grant: Arc::new(grant),
            used: Arc::default(),
        };
        let mut by_function = self
            .by_function
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let grants = by_function.entry(function).or_default();
        grants.retain(|given| !given.is_spent());
        grants.push(given);
    }

    /// Every grant there is, used up or not, by function.
    pub fn list(&self) -> Vec<Arc<Grant>> {
        let mut grants: Vec<_> = self
            .by_function
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .flatten()
            .map(|given| Arc::clone(&given.grant))
            .collect();
        grants.sort_by(|a, b| a.function.cmp(&b.function));
        grants
    }

    /// Takes back every grant. What rules have counted stays.
    pub fn clear(&self) {
        self.by_function
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Whether this rule, which lets through so many calls without a script in a session,
    /// may let one more through; and if `take`, one use less.
    pub(crate) fn use_rule(&self, rule: &Rule, most: u32, take: bool, now: Timestamp) -> bool {
        let text = format!("{:?} {} {}", rule.effect, rule.written_in, rule.to_json());
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !take {
            let count = used.by_rule.get(&text).map(|of_rule| &of_rule.count);
            return count.map_or(most > 0, |count| use_once(count, most, false));
        }
        used.forget_expired(now);
        let of_rule = used.by_rule.entry(text).or_insert_with(|| OfRule {
            expires: rule.expires,
            ..OfRule::default()
        });
        use_once(&of_rule.count, most, true)
    }

    /// What the grants say, and if `take`, one use less of the one that says
    /// yes.
    pub(crate) fn answer(&self, facts: &CallFacts<'_>, take: bool) -> Answer {
        let by_function = self
            .by_function
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let mut answer = Answer::Nothing;
        for given in by_function.get(facts.function).into_iter().flatten() {
            let void = match given.grant.matches(facts) {
                Match::No => continue,
                Match::Depends => {
                    if matches!(answer, Answer::Nothing) {
                        answer = Answer::Depends;
                    }
                    continue;
                }
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
        answer
    }
}

impl Used {
    /// Forgets the counts of rules that are over, whenever there are twice as many: a host may
    /// bring other rules with each call.
    fn forget_expired(&mut self, now: Timestamp) {
        if self.by_rule.len() >= (self.kept * 2).max(MANY_RULES) {
            let long_ago = now.saturating_sub(KEPT);
            let long_ago = long_ago.unwrap_or(Timestamp::MIN);
            let is_over = |of: &OfRule| of.expires.is_some_and(|expires| expires <= long_ago);
            self.by_rule.retain(|_, of_rule| !is_over(of_rule));
            self.kept = self.by_rule.len();
        }
    }
}

impl Given {
    fn is_spent(&self) -> bool {
        !self.use_once(false)
    }

    fn use_once(&self, take: bool) -> bool {
        self.grant
            .uses
            .is_none_or(|most| use_once(&self.used, most, take))
    }
}

/// Whether a use is left, and if `take`, one less. Two threads never take the
/// same one.
pub(crate) fn use_once(used: &AtomicU32, most: u32, take: bool) -> bool {
    if !take {
        return used.load(Ordering::Acquire) < most;
    }
    used.try_update(Ordering::AcqRel, Ordering::Acquire, |used| {
        (used < most).then_some(used.saturating_add(1))
    })
    .is_ok()
}

impl fmt::Debug for SessionGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_of_rules_that_are_over_are_forgotten_and_others_stay() {
        let grants = SessionGrants::new();
        let take = |entry: Value, second: i64| {
            let rule = Rule::parse(Effect::Allow, &entry).expect("a rule");
            let now = Timestamp::from_second(second).expect("a time");
            grants.use_rule(&rule, 1, true, now)
        };
        let lasting = json!({ "tool": "fs_write", "maxCalls": 1 });
        assert!(take(lasting.clone(), 0));
        let count = || {
            let used = grants.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.by_rule.len()
        };
        for second in 0..20_000 {
            let expires = Timestamp::from_second(second + 10).expect("a time");
            let rule = json!({ "tool": "fs_*", "maxCalls": 1, "expires": expires.to_string() });
            assert!(take(rule.clone(), second), "{second}");
            assert!(!take(rule, second), "{second}");
        }
        assert!(!take(lasting, 20_000));
        // Those of the last hour and ten seconds, and as many again.
        assert!(count() <= 2 * 3_612, "{}", count());
    }
}

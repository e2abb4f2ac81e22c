//! The rules, and how they decide.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::decision::{Because, Decision, Leave, Verdict};
use crate::facts::CallFacts;
use crate::fit::{Fit, fit};
use crate::grants::{Answer, Scope, Void};
use crate::index::{Index, Look};
use crate::other_names::OtherNames;
use crate::pattern::{Pattern, PatternError};
use crate::rule::{Effect, Rank, Rule};

/// The most functions for which the list of rules is kept.
const MAX_KEPT: usize = 16_384;

/// The rules that are asked about the calls of one function.
struct Candidates {
    /// Those of the tool that they were found for.
    other_names: Option<Arc<OtherNames>>,
    rules: Arc<[Candidate]>,
}

/// One of them.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    /// Its place among the rules.
    pub(crate) number: usize,
    /// Whether it is leave for another name of the tool.
    has_lost: bool,
}

/// All rules of a run. Empty rules are the default: they allow what a trusted
/// server calls read-only, and ask about everything else.
#[derive(Default)]
pub struct Rules {
    rules: Vec<Arc<Rule>>,
    /// The indexes of those that are of this run alone.
    of_run: Vec<usize>,
    /// The rules that are asked about each function's calls, in the order in which they are
    /// asked. Filled as functions are asked about.
    by_function: RwLock<FxHashMap<String, Candidates>>,
    /// What the rules say of arguments; made when the first call is decided.
    index: OnceLock<Arc<Index>>,
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
        allow
            .chain(ask)
            .chain(deny)
            .map(|(effect, pattern)| Ok(Rule::new(effect, Pattern::new(pattern)?)))
            .collect()
    }

    /// Adds one rule, as a configuration file has it.
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(Arc::new(rule));
        self.index.take();
        self.by_function
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Adds one rule that somebody gives for this run, as a command-line flag does. It is as
    /// any other, but for an ask rule: where that matches, an allow rule bound to a definition
    /// is passed over, since that is what was answered before the run.
    pub fn push_for_run(&mut self, rule: Rule) {
        self.of_run.push(self.rules.len());
        self.push(rule);
    }

    /// The rules in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(Arc::as_ref)
    }

    /// What the rules say of a call, as if none of them had been used yet:
    /// the first matching deny rule, else the first matching grant (an allow
    /// rule bound to a definition is one, unless an ask rule of
    /// [`Rules::push_for_run`] matches), ask rule, or allow rule, in this
    /// order. Without any, a tool that says it is read-only is allowed if its
    /// server is trusted, and every other call needs approval.
    ///
    /// [`crate::Authority`] decides the calls of a run: it counts, and knows
    /// what was granted.
    pub fn decide(&self, facts: &CallFacts<'_>) -> Decision {
        self.walk(facts, |_, _| true, |_, _| Answer::Nothing)
    }

    /// Decides with counts and grants. `usable` says whether a rule that counts
    /// its calls may let one more through, and counts it.
    pub(crate) fn walk(
        &self,
        facts: &CallFacts<'_>,
        usable: impl Fn(usize, u32) -> bool,
        granted: impl Fn(Scope, &CallFacts<'_>) -> Answer,
    ) -> Decision {
        let mut doubts = Doubts::default();
        let mut heard = false;
        let index = self.index.get_or_init(|| Arc::new(Index::of(&self.rules)));
        let mut look = index.look(&self.rules, facts.arguments);
        let candidates = self.candidates(facts.function, facts.other_names);
        for candidate in candidates.iter() {
            let Candidate { number, has_lost } = *candidate;
            if index.rank(number) > Some(Rank::Grant)
                && !std::mem::replace(&mut heard, true)
                && let Some(because) = doubts.hear(|scope| granted(scope, facts))
            {
                return doubts.conclude(Verdict::Allow, because);
            }
            // First of all, since it can be told without the rule.
            let arguments = look.fits(number);
            let Some(rule) = self.rules.get(number).filter(|_| arguments != Fit::No) else {
                continue;
            };
            let leave = || Leave::Rule(Arc::clone(rule));
            match fit(rule, facts, arguments) {
                Fit::No => {}
                _ if has_lost => doubts.note(Void::OtherName, leave),
                Fit::Depends => doubts.depends_on(rule),
                Fit::Expired => doubts.note(Void::Expired, leave),
                Fit::OtherDefinition => doubts.note(Void::OtherDefinition, leave),
                // Before a use of it is counted.
                Fit::Yes
                    if is_kept_answer(rule)
                        && self.is_asked_in_run(&candidates, facts, &mut look, &mut doubts) => {}
                Fit::Yes => match rule.counted() {
                    Some(most) if !usable(number, most) => doubts.note(Void::Spent, leave),
                    _ => {
                        let because = Because::Rule(Arc::clone(rule));
                        return doubts.conclude(rule.effect.verdict(), because);
                    }
                },
            }
        }
        if !heard && let Some(because) = doubts.hear(|scope| granted(scope, facts)) {
            return doubts.conclude(Verdict::Allow, because);
        }
        let (verdict, because) = match (facts.hints.read_only, facts.trusted) {
            // Whoever bound their leave to something did not leave the rest to
            // the server's word.
            _ if doubts.void.is_some() => (Verdict::Ask, Because::NoRule),
            (Some(true), true) => (Verdict::Allow, Because::ReadOnlyHint),
            (Some(true), false) => (Verdict::Ask, Because::UntrustedHint),
            (_, _) => (Verdict::Ask, Because::NoRule),
        };
        doubts.conclude(verdict, because)
    }

    /// Whether an ask rule of this run takes a call from an answer that was kept before it.
    fn is_asked_in_run(
        &self,
        candidates: &[Candidate],
        facts: &CallFacts<'_>,
        look: &mut Look<'_>,
        doubts: &mut Doubts,
    ) -> bool {
        let of_run = candidates.iter().map(|candidate| candidate.number);
        for number in of_run.filter(|number| self.of_run.contains(number)) {
            let rule = self.rules.get(number);
            let Some(rule) = rule.filter(|rule| rule.effect == Effect::Ask) else {
                continue;
            };
            match fit(rule, facts, look.fits(number)) {
                Fit::Yes => return true,
                Fit::Depends => doubts.depends_on(rule),
                _ => {}
            }
        }
        false
    }

    /// The number of rules; their indexes are below it.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(crate) fn shared(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The rules that mean a tool, and leave that is void for its name, in the order of their
    /// ranks and, within one, of their writing.
    pub(crate) fn candidates(
        &self,
        function: &str,
        other_names: Option<&Arc<OtherNames>>,
    ) -> Arc<[Candidate]> {
        let kept = self
            .by_function
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(candidates) = kept.get(function)
            && candidates.other_names.as_ref() == other_names
        {
            return Arc::clone(&candidates.rules);
        }
        drop(kept);
        let rules = self.rules.iter().enumerate();
        let matching = rules.filter_map(|(number, rule)| {
            let has_lost = rule.can_become_void() && rule.has_lost(function, other_names);
            let is_one = has_lost || rule.means(function, other_names);
            is_one.then(|| (rule.rank(), Candidate { number, has_lost }))
        });
        let mut matching: Vec<_> = matching.collect();
        // A stable sort: within a rank they stay in the order of their writing.
        matching.sort_by_key(|(rank, _)| *rank);
        let candidates: Arc<[Candidate]> = matching.into_iter().map(|(_, one)| one).collect();
        let mut kept = self
            .by_function
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            let kept_for = Candidates {
                other_names: other_names.cloned(),
                rules: Arc::clone(&candidates),
            };
            kept.insert(function.to_owned(), kept_for);
        }
        candidates
    }
}

/// Whether it is what an answer "always" leaves in a file.
fn is_kept_answer(rule: &Rule) -> bool {
    rule.effect == Effect::Allow && rule.definition.is_some()
}

/// What was passed over on the way to a decision.
#[derive(Default)]
struct Doubts {
    void: Option<(Void, Leave)>,
    /// A rule that would hold the call up, depending on the arguments.
    may_narrow: Option<Arc<Rule>>,
    /// A rule that would let it through, depending on the arguments.
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

    /// Keeps the weightiest, and of two alike the first.
    fn note(&mut self, void: Void, leave: impl FnOnce() -> Leave) {
        if self.void.as_ref().is_none_or(|(known, _)| *known > void) {
            self.void = Some((void, leave()));
        }
    }

    /// What the grants of the run say, and then those of the session.
    fn hear(&mut self, granted: impl Fn(Scope) -> Answer) -> Option<Because> {
        for scope in [Scope::Run, Scope::Session] {
            match granted(scope) {
                Answer::Granted(grant) => return Some(Because::Grant(grant, scope)),
                Answer::Void(grant, void) => self.note(void, || Leave::Grant(grant, scope)),
                // Nobody is told beforehand: a grant only ever makes it easier.
                Answer::Depends | Answer::Nothing => {}
            }
        }
        None
    }

    fn conclude(self, verdict: Verdict, because: Because) -> Decision {
        let Self {
            void,
            may_narrow,
            may_widen,
        } = self;
        match (verdict, may_narrow) {
            (Verdict::Allow, Some(rule)) => Decision::new(Verdict::Ask, Because::Depends(rule)),
            (Verdict::Ask, may_narrow) => Decision {
                may_deny: may_narrow.filter(|rule| rule.effect == Effect::Deny),
                ..ask(void, may_widen, because)
            },
            (verdict, _) => Decision::new(verdict, because),
        }
    }
}

/// What is asked about, for leave that the arguments decide about, or that is void, rather than
/// for what comes after it.
fn ask(void: Option<(Void, Leave)>, may_widen: Option<Arc<Rule>>, because: Because) -> Decision {
    // As long as the arguments are not known: in a call, such leave counts or is none.
    if let Some(rule) = may_widen {
        return Decision::new(Verdict::Ask, Because::Depends(rule));
    }
    if let Some((void, leave)) = void {
        let asked_by = match because {
            Because::Rule(rule) => Some(rule),
            _ => None,
        };
        let because = match void {
            Void::OtherDefinition => Because::DefinitionChanged(leave),
            Void::Spent => Because::Spent(leave),
            Void::Expired => Because::Expired(leave),
            Void::OtherName => Because::OtherName(leave),
        };
        return Decision {
            asked_by,
            ..Decision::new(Verdict::Ask, because)
        };
    }
    Decision::new(Verdict::Ask, because)
}

impl FromIterator<Rule> for Rules {
    fn from_iter<T: IntoIterator<Item = Rule>>(rules: T) -> Self {
        Self {
            rules: rules.into_iter().map(Arc::new).collect(),
            of_run: Vec::new(),
            by_function: RwLock::default(),
            index: OnceLock::new(),
        }
    }
}

impl Clone for Rules {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            of_run: self.of_run.clone(),
            by_function: RwLock::default(),
            index: self.index.clone(),
        }
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules && self.of_run == other.of_run
    }
}

impl Eq for Rules {}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.rules).finish()
    }
}

//! The permissions of one run: the rules with the uses that are left of them, and the grants.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::decision::Decision;
use crate::facts::CallFacts;
use crate::grants::{Grant, Scope, SessionGrants, use_once};
use crate::rules::Rules;

/// The permissions of one run. They are shared between threads: no two calls take the same use
/// of a rule.
#[derive(Debug)]
pub struct Permissions {
    rules: Arc<Rules>,
    /// The uses of each rule in this run; `None` where the session counts them.
    used: Option<Mutex<Vec<u32>>>,
    run: SessionGrants,
    session: Arc<SessionGrants>,
}

impl Permissions {
    /// The permissions of a new run: no use of a rule is counted, and only the session has grants.
    pub fn new(rules: Arc<Rules>, session: Arc<SessionGrants>) -> Self {
        let used = vec![0; rules.as_slice().len()];
        Self {
            used: Some(Mutex::new(used)),
            ..Self::of_one_call(rules, session)
        }
    }

    /// The permissions of one call without a script.
    pub fn of_one_call(rules: Arc<Rules>, session: Arc<SessionGrants>) -> Self {
        Self {
            rules,
            used: None,
            run: SessionGrants::new(),
            session,
        }
    }

    /// Decides one call.
    pub fn decide(&self, facts: &CallFacts<'_>, count: Count) -> Decision {
        let of_run = count != Count::Nothing;
        let of_session = count == Count::All;
        let can_use = |index: usize, max: u32| match &self.used {
            Some(used) => {
                let mut used = used.lock();
                let used = used.get_mut(index);
                used.is_some_and(|used| use_once(used, max, of_run))
            }
            None => {
                let rule = self.rules.as_slice().get(index);
                rule.is_some_and(|rule| self.session.use_rule(rule, max, of_session))
            }
        };
        self.rules.decide_with(facts, can_use, |scope| match scope {
            Scope::Run => self.run.answer(facts),
            Scope::Session => self.session.answer(facts),
        })
    }

    /// Adds a grant for this run or for the session.
    pub fn grant(&self, grant: Grant, scope: Scope) {
        match scope {
            Scope::Run => self.run.add(grant),
            Scope::Session => self.session.add(grant),
        }
    }
}

/// The uses that a decision counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// None: the call is not made now, and is decided again later.
    Nothing,
    /// Those of the run: the call is not made, even if it is allowed.
    OfRun,
    /// Those of the run and of the session.
    All,
}

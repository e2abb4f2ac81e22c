//! What one run may do: the rules, what was granted, and how much of both is
//! used up.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use crate::decision::Decision;
use crate::facts::CallFacts;
use crate::grants::{Grant, Scope, SessionGrants, use_once};
use crate::rules::Rules;

/// The authority of one run. It is shared between threads: of calls that are
/// decided at one time, no two take the same use of a rule or of a grant.
#[derive(Debug)]
pub struct Authority {
    rules: Arc<Rules>,
    /// The uses of each rule in this run; `None` where the session counts them.
    used: Option<Box<[AtomicU32]>>,
    run: SessionGrants,
    session: Arc<SessionGrants>,
}

impl Authority {
    /// The authority of a run that begins: nothing is used up, and nothing is
    /// granted but what the session has.
    pub fn new(rules: Arc<Rules>, session: Arc<SessionGrants>) -> Self {
        let used = (0..rules.len()).map(|_| AtomicU32::new(0)).collect();
        Self {
            used: Some(used),
            ..Self::of_one_call(rules, session)
        }
    }

    /// The authority of one call without a script: what rules count, they count over all
    /// such calls of the session.
    pub fn of_one_call(rules: Arc<Rules>, session: Arc<SessionGrants>) -> Self {
        Self {
            rules,
            used: None,
            run: SessionGrants::new(),
            session,
        }
    }

    /// The rules of the run.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// What [`Authority::take`] would answer now. Nothing is counted, so the
    /// answer may be another one by the time of the call.
    pub fn look(&self, facts: &CallFacts<'_>) -> Decision {
        self.decide(facts, Taken::Nothing)
    }

    /// Decides one call and, if a rule or grant that counts lets it through,
    /// counts it. A rule or grant that is used up is passed over, and the next
    /// one decides.
    pub fn take(&self, facts: &CallFacts<'_>) -> Decision {
        self.decide(facts, Taken::All)
    }

    /// As [`Authority::take`] for a call that is not made whatever is decided. The run counts
    /// it; what belongs to the session is not used up by it.
    pub fn foresee(&self, facts: &CallFacts<'_>) -> Decision {
        self.decide(facts, Taken::OfRun)
    }

    /// Adds what somebody granted, for this run or for the session. It comes
    /// after deny rules and before ask rules.
    pub fn grant(&self, grant: Grant, scope: Scope) {
        match scope {
            Scope::Run => self.run.add(grant),
            Scope::Session => self.session.add(grant),
        }
    }

    fn decide(&self, facts: &CallFacts<'_>, taken: Taken) -> Decision {
        let of_run = taken != Taken::Nothing;
        let of_session = taken == Taken::All;
        self.rules.walk(
            facts,
            |index, most| match &self.used {
                Some(used) => used
                    .get(index)
                    .is_some_and(|used| use_once(used, most, of_run)),
                None => {
                    self.rules.shared().get(index).is_some_and(|rule| {
                        self.session.use_rule(rule, most, of_session, facts.now)
                    })
                }
            },
            |scope, facts| match scope {
                Scope::Run => self.run.answer(facts, of_run),
                Scope::Session => self.session.answer(facts, of_session),
            },
        )
    }
}

/// Of which uses a call takes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Nothing,
    /// Of what the run alone counts.
    OfRun,
    All,
}

//! Whether a call may go: by the rules of its run, by what was granted, and by
//! asking.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use callgate_policy::{
    Authority, Because, CallFacts, Decision, Definition, DefinitionHash, Grant, Scope, Verdict,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::ask::{About, Answer, Asker, Changed, Question, ScriptLine};
use crate::keep::{Definitions, Keep};
use crate::ledger::Ledger;
use crate::options::Place;
use crate::review::{Findings, Reviews};
use crate::ruling::Ruling;
use crate::setup::{LineText, RunSetup};
use crate::target::Target;

/// Decides the calls of one run.
pub(crate) struct Judge {
    authority: Authority,
    asker: Arc<dyn Asker>,
    keep: Option<Arc<dyn Keep>>,
    definitions: Option<Arc<dyn Definitions>>,
    /// What `definitions` had for the hashes of rules.
    found: StdMutex<HashMap<DefinitionHash, Option<Arc<Definition>>>>,
    lines: Option<LineText>,
    is_script: bool,
    reviews: Arc<Reviews>,
    /// How many questions have been answered.
    answered: AtomicU64,
    /// Held while somebody is asked, so that questions come one at a time and
    /// an answer serves those who wait.
    refusals: Mutex<Refusals>,
}

/// A call to decide about.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) target: &'a Target,
    /// Whether the target's server is marked so.
    pub(crate) trusted: bool,
    /// The arguments that will be sent.
    pub(crate) arguments: &'a Value,
    /// The same as text.
    pub(crate) text: &'a str,
    pub(crate) place: Option<Place>,
}

impl Judge {
    pub(crate) fn new(setup: RunSetup, reviews: Arc<Reviews>) -> Self {
        let authority = match setup.one_call {
            true => Authority::of_one_call(setup.rules, setup.session),
            false => Authority::new(setup.rules, setup.session),
        };
        for grant in setup.grants {
            authority.grant(grant, Scope::Run);
        }
        Self {
            authority,
            asker: setup.asker,
            keep: setup.keep,
            definitions: setup.definitions,
            found: StdMutex::default(),
            is_script: setup.script.is_some() || setup.lines.is_some(),
            lines: setup.lines,
            reviews,
            answered: AtomicU64::new(0),
            refusals: Mutex::default(),
        }
    }

    /// Decides one call with what was found in its arguments, without asking anybody; a use that rules or grants
    /// count is taken.
    pub(crate) fn take(&self, case: &Case<'_>, findings: &Findings) -> Decision {
        self.decide(case, findings, Authority::take)
    }

    /// The same for a call that is not made: of what the session counts, no use is taken.
    pub(crate) fn foresee(&self, case: &Case<'_>, findings: &Findings) -> Decision {
        self.decide(case, findings, Authority::foresee)
    }

    fn decide(
        &self,
        case: &Case<'_>,
        findings: &Findings,
        authorize: fn(&Authority, &CallFacts<'_>) -> Decision,
    ) -> Decision {
        let target = case.target;
        let authorized = || {
            let facts = CallFacts {
                function: &target.function,
                other_names: target.other_names.as_ref(),
                server: &target.server,
                tool: &target.tool,
                hints: target.hints,
                trusted: case.trusted,
                definition: target.definition.as_deref().map(Definition::hash),
                arguments: Some(case.arguments),
                now: Timestamp::now(),
            };
            authorize(&self.authority, &facts)
        };
        let review = self.reviews.decide(findings);
        match review {
            Some(denied) if denied.verdict == Verdict::Deny => denied,
            Some(asked) => {
                let decision = authorized();
                match decision.verdict {
                    Verdict::Allow => asked,
                    Verdict::Ask | Verdict::Deny => decision,
                }
            }
            None => authorized(),
        }
    }

    /// Asks about a call where that was decided.
    pub(crate) async fn settle(
        &self,
        case: &Case<'_>,
        findings: &Findings,
        decision: Decision,
        ledger: &Ledger,
    ) -> Ruling {
        if decision.verdict != Verdict::Ask {
            return Ruling::by_rules(decision);
        }
        let before = self.answered.load(Ordering::Acquire);
        let mut refusals = self.refusals.lock().await;
        // Somebody may have granted it while this call waited for its turn.
        let decision = match &decision.because {
            // The call itself may be made, and that is counted already.
            Because::Flow(_) | Because::Reviewer(_) => match self.reviews.decide(findings) {
                Some(decision) => decision,
                None => return Ruling::passed(decision),
            },
            _ => self.take(case, findings),
        };
        if decision.verdict != Verdict::Ask {
            return Ruling::by_rules(decision);
        }
        if refusals.since(before, case) {
            return Ruling {
                decision,
                answer: Some(Answer::Deny),
            };
        }
        let question = self.question(case, findings, &decision, ledger);
        let about = question.about.clone();
        let answer = about.limit(self.asker.ask(question).await);
        let number = self.answered.fetch_add(1, Ordering::AcqRel) + 1;
        if matches!(answer, Answer::Run | Answer::Session | Answer::Always) {
            self.reviews.pass(findings);
        }
        match answer {
            Answer::Deny => refusals.note(number, case),
            // That these data may go there says nothing of the function's other
            // calls.
            _ if !about.call => {}
            Answer::Run => self.authority.grant(grant(case.target), Scope::Run),
            Answer::Session => self.authority.grant(grant(case.target), Scope::Session),
            Answer::Always => self.keep(grant(case.target)).await,
            _ => {}
        }
        Ruling {
            decision,
            answer: Some(answer),
        }
    }

    /// Keeps a grant for good, and for this session in any case: what is kept
    /// counts when it is read next.
    async fn keep(&self, grant: Grant) {
        self.authority.grant(grant.clone(), Scope::Session);
        let Some(keep) = &self.keep else {
            return;
        };
        if let (Some(definitions), Some(definition)) = (&self.definitions, &grant.definition) {
            definitions.keep(definition);
        }
        if let Err(reason) = keep.keep(std::slice::from_ref(&grant)).await {
            tracing::error!(
                "{} is allowed for this session only: {reason}",
                grant.function
            );
        }
    }

    /// What a tool was that a rule is for. It is read once in a run, however often a call of
    /// the tool is asked about.
    fn find(&self, hash: DefinitionHash) -> Option<Arc<Definition>> {
        let definitions = self.definitions.as_ref()?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let definition = found.entry(hash).or_insert_with(|| definitions.find(&hash));
        definition.clone()
    }

    fn question(
        &self,
        case: &Case<'_>,
        findings: &Findings,
        decision: &Decision,
        ledger: &Ledger,
    ) -> Question {
        let target = case.target;
        let find = |hash: &DefinitionHash| self.find(*hash);
        let changed = Changed::of(decision, target.definition.as_ref(), find);
        let line = case.place.map(|place| ScriptLine {
            number: place.line,
            text: self.lines.as_ref().and_then(|text| text(place.line)),
        });
        let call = !matches!(decision.because, Because::Flow(_) | Because::Reviewer(_));
        let (done, more_done) = ledger.done();
        let flows = self.reviews.weighed(findings);
        Question {
            function: target.function.clone(),
            server: target.server.clone(),
            tool: target.tool.clone(),
            title: target.title.clone(),
            description: target
                .definition
                .as_deref()
                .and_then(Definition::description),
            arguments: case.text.to_owned(),
            decision: decision.clone(),
            besides: self.reviews.decide(findings).filter(|_| call),
            about: About {
                call,
                data: self.reviews.asks(findings),
            },
            script: self.is_script,
            line,
            done,
            more_done,
            changed,
            flows: flows.into_iter().cloned().collect(),
            keeps_in: self.keep.as_ref().map(|keep| keep.place()),
        }
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

/// What a person refused, so that a call that waited meanwhile with the very
/// same arguments is not asked about once more.
#[derive(Default)]
struct Refusals {
    hasher: RandomState,
    /// The number of the last refusal, by call.
    by_call: HashMap<u64, u64>,
}

impl Refusals {
    /// Whether such a call was refused after this many answers.
    fn since(&self, answered: u64, case: &Case<'_>) -> bool {
        let number = self.by_call.get(&self.key(case));
        number.is_some_and(|number| *number > answered)
    }

    fn note(&mut self, number: u64, case: &Case<'_>) {
        self.by_call.insert(self.key(case), number);
    }

    fn key(&self, case: &Case<'_>) -> u64 {
        self.hasher.hash_one((&case.target.function, case.text))
    }
}

/// Leave for every call of a tool as it is now.
fn grant(target: &Target) -> Grant {
    let grant = Grant::new(target.function.as_str());
    match &target.definition {
        Some(definition) => grant.of(Arc::clone(definition)),
        None => grant,
    }
}

//! Decides the calls of one run: rules, grants, data flows, reviewers and the asker.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Instant;

use callgate_catalog::Tool;
use callgate_policy::flow::Finding;
use callgate_policy::{
    Because, CallFacts, Count, Decision, DefinitionHash, Grant, Permissions, Scope, Verdict,
};
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::arguments::Arguments;
use crate::ask::{About, Answer, Asker, Changed, Question, ScriptLine};
use crate::flows::Flows;
use crate::grant_store::{Definitions, GrantStore};
use crate::ledger::Ledger;
use crate::review::{Reviewed, Reviewers};
use crate::ruling::Ruling;
use crate::setup::Setup;

/// Decides the calls of one run.
pub(crate) struct Authority {
    permissions: Permissions,
    flows: Arc<Flows>,
    reviewers: Arc<Reviewers>,
    asker: Option<Arc<dyn Asker>>,
    keep: Option<Arc<dyn GrantStore>>,
    definitions: Option<Arc<dyn Definitions>>,
    script: Option<Arc<str>>,
    /// The last refusal or dismissal and its time, by the hash of function and arguments. Held
    /// while the asker is asked, so that questions come one at a time.
    refusals: Mutex<HashMap<u64, (Instant, Answer)>>,
    hasher: RandomState,
}

/// A call that is being decided.
#[derive(Clone, Copy)]
pub(crate) struct PendingCall<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) arguments: &'a Arguments,
    pub(crate) flows: &'a [Finding],
    /// The script's line, from 1, where it is known.
    pub(crate) line: Option<u32>,
    /// True if the tool's server is marked so.
    pub(crate) is_trusted: bool,
    /// True if it is sent if it is allowed. A dry run sends only calls that read.
    pub(crate) is_sent: bool,
}

impl Authority {
    pub(crate) fn new(setup: Setup, flows: Arc<Flows>, reviewers: Arc<Reviewers>) -> Self {
        let permissions = if setup.one_call {
            Permissions::of_one_call(setup.rules, setup.session)
        } else {
            Permissions::new(setup.rules, setup.session)
        };
        for grant in setup.grants {
            permissions.grant(grant, Scope::Run);
        }
        Self {
            permissions,
            flows,
            reviewers,
            asker: setup.asker,
            keep: setup.keep,
            definitions: setup.definitions,
            script: setup.script,
            refusals: Mutex::default(),
            hasher: RandomState::new(),
        }
    }

    /// Decides a call. For one that a dry run does not send, the asker is not asked, and the
    /// session counts no use.
    pub(crate) async fn decide(&self, call: &PendingCall<'_>, ledger: &Ledger) -> Ruling {
        let review = self.reviewers.review_arguments(call.reviewed()).await;
        let data = self.about_data(call, review.as_ref());
        let decision = match data {
            Some(denied) if denied.verdict == Verdict::Deny => denied,
            data => match (self.about_call(call), data) {
                (decision, Some(asked)) if decision.verdict == Verdict::Allow => asked,
                (decision, _) => decision,
            },
        };
        if decision.verdict != Verdict::Ask || !call.is_sent {
            return Ruling::by_rules(decision);
        }
        self.ask(call, review.as_ref(), decision, ledger).await
    }

    /// The decision of rules and grants. A use that they count is taken.
    fn about_call(&self, call: &PendingCall<'_>) -> Decision {
        let arguments = call.arguments.value();
        let facts = CallFacts {
            arguments: Some(&arguments),
            ..call.tool.facts(call.is_trusted, Timestamp::now())
        };
        let count = if call.is_sent {
            Count::All
        } else {
            Count::OfRun
        };
        self.permissions.decide(&facts, count)
    }

    /// The stricter of reviewers and flow rules, if they do not let the call pass.
    fn about_data(&self, call: &PendingCall<'_>, review: Option<&Decision>) -> Option<Decision> {
        match (self.flows.decide(call.flows), review) {
            (Some(flows), Some(review))
                if flows.verdict == Verdict::Deny && review.verdict != Verdict::Deny =>
            {
                Some(flows)
            }
            (_, Some(review)) => Some(review.clone()),
            (flows, None) => flows,
        }
    }

    /// Asks about a call, when its turn comes.
    async fn ask(
        &self,
        call: &PendingCall<'_>,
        review: Option<&Decision>,
        decision: Decision,
        ledger: &Ledger,
    ) -> Ruling {
        let asked = Instant::now();
        let mut refusals = self.refusals.lock().await;
        // An earlier answer may have granted it.
        let decision = match &decision.because {
            // The call itself may be made, and that is counted already.
            Because::Flow(_) | Because::Reviewer(_) => match self.about_data(call, review) {
                Some(decision) => decision,
                // An earlier answer for the run lets the data pass.
                None => return Ruling::new(decision, Some(Answer::Run)),
            },
            _ => self.about_call(call),
        };
        if decision.verdict != Verdict::Ask {
            return Ruling::by_rules(decision);
        }
        // The same call may have been refused while this one waited.
        let key = (&call.tool.function, call.arguments.text());
        let key = self.hasher.hash_one(key);
        if let Some((refused, answer)) = refusals.get(&key)
            && *refused > asked
        {
            return Ruling::new(decision, Some(*answer));
        }
        let question = self.question(call, review, &decision, ledger);
        let about = question.about.clone();
        let answer = match &self.asker {
            Some(asker) => about.limit(asker.ask(question).await),
            None => Answer::NoAsker,
        };
        if matches!(answer, Answer::Run | Answer::Session | Answer::Always) {
            self.flows.pass(call.flows);
        }
        match answer {
            Answer::Deny | Answer::Dismissed => {
                refusals.insert(key, (Instant::now(), answer));
            }
            // Approval of this data flow does not approve later calls of the function.
            _ if !about.call => {}
            Answer::Run => self.permissions.grant(call.tool.grant(), Scope::Run),
            Answer::Session => self.permissions.grant(call.tool.grant(), Scope::Session),
            Answer::Always => self.keep(call.tool.grant()).await,
            _ => {}
        }
        Ruling::new(decision, Some(answer))
    }

    /// Keeps a grant for good, and for this session in any case: a kept grant counts from the
    /// next start on.
    async fn keep(&self, grant: Grant) {
        self.permissions.grant(grant.clone(), Scope::Session);
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

    fn question(
        &self,
        call: &PendingCall<'_>,
        review: Option<&Decision>,
        decision: &Decision,
        ledger: &Ledger,
    ) -> Question {
        let (tool, definition) = (call.tool, &call.tool.definition);
        let find = |hash: &DefinitionHash| self.definitions.as_ref()?.find(hash);
        let line = call.line.and_then(|number| {
            let text = callgate_script::line(self.script.as_deref()?, number)?.to_owned();
            Some(ScriptLine { number, text })
        });
        let is_about_call = !matches!(decision.because, Because::Flow(_) | Because::Reviewer(_));
        Question {
            function: tool.function.clone(),
            server: definition.server.clone(),
            tool: definition.name.clone(),
            title: definition.title.clone(),
            description: definition.description.clone(),
            arguments: call.arguments.text().to_string(),
            decision: decision.clone(),
            besides: self.about_data(call, review).filter(|_| is_about_call),
            about: About {
                call: is_about_call,
                data: self.flows.to_ask(call.flows),
            },
            script: self.script.is_some(),
            line,
            done: ledger.done(),
            changed: Changed::of(decision, Some(&definition.identity), find),
            flows: call.flows.to_vec(),
            keeps_in: self.keep.as_ref().map(|keep| keep.place()),
        }
    }
}

impl<'a> PendingCall<'a> {
    /// The call as reviewers see it.
    pub(crate) fn reviewed(&self) -> Reviewed<'a> {
        Reviewed {
            function: &self.tool.function,
            server: &self.tool.definition.server,
            tool: &self.tool.definition.name,
            arguments: self.arguments.text(),
            flows: self.flows,
        }
    }
}

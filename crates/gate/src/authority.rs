//! Decides the calls of one run: rules, grants, data flows, reviewers and the asker.

use std::sync::Arc;

use callgate_policy::{
    Because, CallFacts, Count, Decision, DefinitionHash, Grant, Permissions, Scope, Verdict,
};
use callgate_servers::Audience;
use jiff::Timestamp;

use crate::ask::{About, Answer, Asker, Changed, Question, ScriptLine};
use crate::flows::Flows;
use crate::grant_store::{Definitions, GrantStore};
use crate::ledger::Ledger;
use crate::pending_call::PendingCall;
use crate::question_turn::QuestionTurns;
use crate::review::Reviewers;
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
    turns: QuestionTurns,
    audience: Audience,
    /// The configuration file, for the operator.
    file: Option<String>,
}

impl Authority {
    pub(crate) fn new(setup: Setup, flows: Arc<Flows>, reviewers: Arc<Reviewers>) -> Self {
        let Setup {
            rules,
            people,
            records,
            options,
        } = setup;
        let permissions = if options.one_call {
            Permissions::of_one_call(rules.calls, rules.session)
        } else {
            Permissions::new(rules.calls, rules.session)
        };
        for grant in rules.grants {
            permissions.grant(grant, Scope::Run);
        }
        let is_operator = people.audience == Audience::Operator;
        let keep = records.keep.as_ref().filter(|_| is_operator);
        let file = keep
            .map(|keep| keep.place())
            .filter(|file| !file.is_empty());
        Self {
            audience: people.audience,
            file,
            permissions,
            flows,
            reviewers,
            asker: people.asker,
            keep: records.keep,
            definitions: records.definitions,
            script: options.script,
            turns: QuestionTurns::default(),
        }
    }

    /// Decides a call. If a dry run withholds it, the asker is not asked, and the session does not
    /// count a use.
    pub(crate) async fn decide(&self, call: &PendingCall<'_>, ledger: &Ledger) -> Ruling {
        Ruling {
            audience: self.audience,
            file: self.file.clone(),
            ..self.ruling(call, ledger).await
        }
    }

    async fn ruling(&self, call: &PendingCall<'_>, ledger: &Ledger) -> Ruling {
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

    /// The decision of rules and grants, which count this use.
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

    /// The stricter decision of reviewers and flow rules, unless both let the call pass.
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
        let mut turn = self.turns.take(call).await;
        // An answer during the wait may have granted the call.
        let decision = match &decision.because {
            // The call itself is allowed, and its use is counted already.
            Because::Flow(_) | Because::Reviewer(_) => match self.about_data(call, review) {
                Some(decision) => decision,
                // An answer for the run lets the data pass.
                None => return Ruling::new(decision, Some(Answer::Run)),
            },
            _ => self.about_call(call),
        };
        if decision.verdict != Verdict::Ask {
            return Ruling::by_rules(decision);
        }
        if let Some(answer) = turn.refusal() {
            return Ruling::new(decision, Some(answer));
        }
        let question = self.question(call, review, &decision, ledger);
        let about = question.about.clone();
        let answer = match &self.asker {
            Some(asker) => about.limit(asker.ask(question).await.answer),
            None => Answer::NoAsker,
        };
        if matches!(answer, Answer::Run | Answer::Session | Answer::Always) {
            self.flows.pass(call.flows);
        }
        match answer {
            Answer::Deny | Answer::DenyRun | Answer::Dismissed => turn.refuse(answer),
            // Approval of this data flow does not approve later calls of the function.
            _ if !about.call => {}
            Answer::Run => self.permissions.grant(call.tool.grant(), Scope::Run),
            Answer::Session => self.permissions.grant(call.tool.grant(), Scope::Session),
            Answer::Always => self.keep(call.tool.grant()).await,
            _ => {}
        }
        Ruling::new(decision, Some(answer))
    }

    /// Keeps a grant for good, and adds it to this session: a kept grant counts from the next
    /// start on.
    async fn keep(&self, grant: Grant) {
        self.permissions.grant(grant.clone(), Scope::Session);
        let Some(keep) = &self.keep else {
            return;
        };
        if let (Some(definitions), Some(definition)) = (&self.definitions, &grant.definition) {
            definitions.keep(definition);
        }
        let kept = keep.keep(std::slice::from_ref(&grant)).await;
        if let Err(reason) = &kept {
            // The asker says it to the person.
            tracing::warn!(
                "{} is allowed for this session only: {reason}",
                grant.function
            );
        }
        if let Some(asker) = &self.asker {
            asker.kept(&grant.function, &keep.place(), kept).await;
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
            also_asked: self.about_data(call, review).filter(|_| is_about_call),
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

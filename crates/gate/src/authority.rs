//! Decides the calls of one run: rules, grants, data flows, reviewers and the asker.

use std::collections::HashMap;
use std::sync::Arc;

use callgate_policy::{
    Because, CallFacts, Count, Decision, Definition, DefinitionHash, Grant, Permissions, Scope,
    Verdict,
};
use callgate_servers::Audience;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::approval_clock::ApprovalClock;
use crate::arguments::{Arguments, schema_problem};
use crate::ask::{About, Answer, Asker, Changed, Question, Reply, ScriptLine};
use crate::flows::Flows;
use crate::grant_store::{Definitions, GrantStore};
use crate::ids::question_id;
use crate::ledger::Ledger;
use crate::open_question::{OpenQuestion, OpenQuestions};
use crate::pending_call::PendingCall;
use crate::review::Reviewers;
use crate::ruling::{Details, Ruling};
use crate::setup::Setup;

/// Decides the calls of one run.
pub(crate) struct Authority {
    permissions: Permissions,
    pub(crate) flows: Flows,
    pub(crate) reviewers: Reviewers,
    asker: Option<Arc<dyn Asker>>,
    keep: Option<Arc<dyn GrantStore>>,
    definitions: Option<Arc<dyn Definitions>>,
    script: Option<Arc<str>>,
    questions: OpenQuestions,
    pub(crate) approvals: ApprovalClock,
    /// The definitions of tools when a call of them was last allowed by an answer, by function.
    allowed: Mutex<HashMap<String, Arc<Definition>>>,
    pub(crate) audience: Audience,
    /// The configuration file, for the operator.
    file: Option<String>,
}

impl Authority {
    /// The authority of a run whose data comes from this many servers and models.
    pub(crate) fn new(setup: Setup, sources: usize) -> Self {
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
            flows: Flows::new(rules.flows, options.script.as_deref(), sources),
            reviewers: Reviewers(people.reviewers),
            asker: people.asker,
            keep: records.keep,
            definitions: records.definitions,
            script: options.script,
            questions: OpenQuestions::default(),
            approvals: ApprovalClock::default(),
            allowed: Mutex::default(),
        }
    }

    /// Decides a call. If a dry run withholds it, the asker is not asked, and the session does not
    /// count a use. An answer may change the call's arguments.
    pub(crate) async fn decide(&self, call: &mut PendingCall<'_>, ledger: &Ledger) -> Ruling {
        Ruling {
            audience: self.audience,
            file: self.file.clone(),
            ..self.ruling(call, ledger).await
        }
    }

    async fn ruling(&self, call: &mut PendingCall<'_>, ledger: &Ledger) -> Ruling {
        let review = self.reviewers.review_arguments(call.reviewed()).await;
        let decision = self.decision(call, review.as_ref());
        if decision.verdict != Verdict::Ask || !call.is_sent {
            return Ruling::by_rules(decision);
        }
        self.ask(call, review.as_ref(), decision, ledger).await
    }

    /// The strictest decision about a call and its data, which counts this use.
    fn decision(&self, call: &PendingCall<'_>, review: Option<&Decision>) -> Decision {
        let count = if call.is_sent {
            Count::All
        } else {
            Count::OfRun
        };
        match self.about_data(call, review) {
            Some(denied) if denied.verdict == Verdict::Deny => denied,
            data => match (self.about_call(call, count), data) {
                (decision, Some(asked)) if decision.verdict == Verdict::Allow => asked,
                (decision, _) => decision,
            },
        }
    }

    /// The decision of rules and grants. A call that could not be sent is asked about again.
    fn about_call(&self, call: &PendingCall<'_>, count: Count) -> Decision {
        let arguments = call.arguments.value();
        let facts = CallFacts {
            arguments: Some(&arguments),
            ..call.tool.facts(call.is_trusted, Timestamp::now())
        };
        let decision = self.permissions.decide(&facts, count);
        match call.unsent {
            Some(reason) if decision.verdict != Verdict::Deny => {
                Decision::new(Verdict::Ask, Because::Unsent(reason.to_owned()))
            }
            _ => decision,
        }
    }

    /// The stricter decision of reviewers and flow rules, unless both let the call pass.
    fn about_data(&self, call: &PendingCall<'_>, review: Option<&Decision>) -> Option<Decision> {
        match (self.flows.decide(&call.flows), review) {
            (Some(flows), Some(review))
                if flows.verdict == Verdict::Deny && review.verdict != Verdict::Deny =>
            {
                Some(flows)
            }
            (_, Some(review)) => Some(review.clone()),
            (flows, None) => flows,
        }
    }

    /// Asks about a call, until there is an answer to this question, or one that covers the call.
    async fn ask(
        &self,
        call: &mut PendingCall<'_>,
        review: Option<&Decision>,
        decision: Decision,
        ledger: &Ledger,
    ) -> Ruling {
        let mut open = self.questions.open(call);
        // An answer since the decision may cover the call.
        if let Some(ruling) = self.covered(call, review, &decision, &open) {
            return ruling;
        }
        let Some(asker) = &self.asker else {
            return Ruling::new(decision, Some(Answer::NoAsker));
        };
        let question = self.question(call, review, &decision, ledger);
        let about = question.about.clone();
        let covered_by = Arc::clone(&question.covered_by);
        let mut asked = asker.ask(question);
        let waiting = self.approvals.ask();
        let mut reply = loop {
            tokio::select! {
                biased;
                reply = &mut asked => break reply,
                () = open.others() => {
                    if let Some(ruling) = self.covered(call, review, &decision, &open) {
                        if let Some(reply) = ruling.reply() {
                            let _ = covered_by.set(reply);
                        }
                        return ruling;
                    }
                }
            }
        };
        drop(waiting);
        reply.answer = about.limit(reply.answer);
        let edited = edited(call, &mut reply);
        let mut ruling = self.apply(call, &about, decision, &reply, &open);
        if ruling.answer == Some(Answer::Always) {
            self.keep(call.tool.grant()).await;
        }
        match edited.filter(|_| ruling.allows()) {
            Some(Ok(edited)) => {
                self.decide_edited(call, edited, &about, review, ruling)
                    .await
            }
            Some(Err(problem)) => {
                ruling.details.problem = Some(problem);
                ruling
            }
            None => ruling,
        }
    }

    /// The ruling about a call with an open question that an answer to a different one covers.
    fn covered(
        &self,
        call: &PendingCall<'_>,
        review: Option<&Decision>,
        decision: &Decision,
        open: &OpenQuestion<'_>,
    ) -> Option<Ruling> {
        let turn = open.turn();
        let refused = turn.refused(Ruling::by_rules(decision.clone()));
        if refused.is_some() {
            return refused;
        }
        let anew = match &decision.because {
            // The call itself is allowed, and its use is counted already.
            Because::Flow(..) | Because::Reviewer(_) => match self.about_data(call, review) {
                Some(decision) => decision,
                // An answer for the run lets the data pass.
                None => {
                    let ruling = Ruling::new(decision.clone(), Some(Answer::Run));
                    return Some(turn.covered(ruling));
                }
            },
            _ => self.decision(call, review),
        };
        let is_unsent = matches!(anew.because, Because::Unsent(_));
        if anew.verdict == Verdict::Ask && !is_unsent {
            return None;
        }
        let ruling = turn.covered(Ruling::by_rules(anew));
        (ruling.decision.verdict != Verdict::Ask || ruling.allows()).then_some(ruling)
    }

    /// Applies the answer to a call's question, unless the call was refused meanwhile.
    fn apply(
        &self,
        call: &PendingCall<'_>,
        about: &About,
        decision: Decision,
        reply: &Reply,
        open: &OpenQuestion<'_>,
    ) -> Ruling {
        let answer = reply.answer;
        let turn = open.turn();
        if answer.allows()
            && let Some(refused) = turn.refused(Ruling::by_rules(decision.clone()))
        {
            return refused;
        }
        let mut ruling = Ruling::new(decision, Some(answer));
        ruling.details = Details::of(reply);
        if answer.allows() {
            let (function, now) = (&call.tool.function, &call.tool.definition.identity);
            let mut allowed = self.allowed.lock();
            allowed.insert(function.clone(), Arc::clone(now));
        }
        if matches!(answer, Answer::Run | Answer::Session | Answer::Always) {
            self.flows.pass(&call.flows);
            // Approval of a data flow does not approve later calls of the function.
            let scope = match answer {
                Answer::Run => Scope::Run,
                // A kept grant counts from the next start on.
                _ => Scope::Session,
            };
            if about.call {
                self.permissions.grant(call.tool.grant(), scope);
            }
            turn.cover(answer, &ruling.details);
        } else if matches!(answer, Answer::Deny | Answer::DenyRun | Answer::Dismissed) {
            turn.cover(answer, &ruling.details);
        }
        ruling
    }

    /// Decides a call anew with the arguments of an answer that allows it. The answer stands for an
    /// approval, but not of data and objections that its question did not show.
    async fn decide_edited(
        &self,
        call: &mut PendingCall<'_>,
        edited: Arguments,
        asked: &About,
        review: Option<&Decision>,
        mut ruling: Ruling,
    ) -> Ruling {
        if let Some(problem) = schema_problem(call.tool, &edited).await {
            ruling.details.problem = Some(problem);
            return ruling;
        }
        call.arguments = edited;
        call.flows = self.flows.find(call.tool, &call.arguments).await;
        ruling.details.is_edited = true;
        let objection = self.reviewers.review_arguments(call.reviewed()).await;
        let data = self.flows.to_ask(&call.flows);
        let is_shown = objection.as_ref().is_none_or(|it| Some(it) == review)
            && data.iter().all(|from| asked.data.contains(from));
        match self.about_data(call, objection.as_ref()) {
            Some(denied) if denied.verdict == Verdict::Deny => ruling.decision = denied,
            Some(unasked) if !is_shown => {
                ruling.details.problem = Some(format!(
                    "with the operator's changed arguments, it {unasked}, and the answer was not \
                     about that"
                ));
                ruling.decision = unasked;
            }
            _ => {
                let decision = self.about_call(call, Count::Nothing);
                if decision.verdict == Verdict::Deny {
                    ruling.decision = decision;
                }
            }
        }
        ruling
    }

    /// Keeps a grant for good.
    async fn keep(&self, grant: Grant) {
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
        let is_about_call = !matches!(decision.because, Because::Flow(..) | Because::Reviewer(_));
        let now = &definition.identity;
        // A tool that changed after an answer is not called, and asked about anew.
        let changed_since_answer = || {
            let allowed = self.allowed.lock();
            let before = allowed.get(&tool.function)?;
            (before.hash() != now.hash()).then(|| Changed {
                before: Some(Arc::clone(before)),
                now: Some(Arc::clone(now)),
            })
        };
        Question {
            id: question_id(),
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
                data: self.flows.to_ask(&call.flows),
            },
            script: self.script.is_some(),
            line,
            done: ledger.done(),
            changed: Changed::of(decision, Some(now), find).or_else(changed_since_answer),
            flows: call.flows.clone(),
            keeps_in: self.keep.as_ref().map(|keep| keep.place()),
            covered_by: Arc::default(),
        }
    }
}

/// The arguments of an allowing reply, or why they cannot be sent; `None` if they are the call's
/// own. With others, the reply is for this call only.
fn edited(call: &PendingCall<'_>, reply: &mut Reply) -> Option<Result<Arguments, String>> {
    let given = reply.arguments.take();
    let given = given.filter(|_| reply.answer.allows())?;
    let edited = Arguments::parse(&given, "operator's changed arguments");
    let own = call.arguments.text();
    if edited.as_ref().is_ok_and(|edited| edited.text() == own) {
        return None;
    }
    if reply.answer != Answer::Standing {
        reply.answer = Answer::Once;
    }
    Some(edited)
}

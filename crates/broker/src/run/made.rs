//! A call up to its server's answer: decided about, written down, sent.

use std::sync::Arc;

use callgate_policy::{Definition, Verdict};
use serde_json::value::RawValue;

use super::Run;
use super::line::{Opened, denied, fail, sending};
use crate::calls::Call;
use crate::dry_run::DryRun;
use crate::error::{CallError, code};
use crate::failure::Failure;
use crate::judge::Case;
use crate::ledger::Entry;
use crate::options::CallOptions;
use crate::review::Findings;
use crate::ruling::Ruling;
use crate::target::Target;

/// How often one call is decided about, as its tool changes meanwhile.
const MAX_DECISIONS: usize = 3;

/// What is made of a call.
pub(super) enum Making {
    Made(Box<Made>),
    /// It is not made in a dry run, which has this in its place.
    Withheld(Box<RawValue>),
}

/// A call that was handed on to its server, and what came of it.
pub(super) struct Made {
    pub(super) target: Target,
    pub(super) entry: Entry,
    pub(super) text: Arc<String>,
    pub(super) findings: Findings,
    /// A failure comes with one clause about it.
    pub(super) result: Result<Box<RawValue>, (Failure, String)>,
}

impl Run {
    /// Makes a call, if it may be made.
    pub(super) async fn make(
        &self,
        mut target: Target,
        given: Arc<String>,
        options: &CallOptions,
    ) -> Result<Making, CallError> {
        let look = self.inner.reviews.begin(&target, &given);
        let Opened {
            mut entry,
            arguments,
            text,
        } = self.open(&target, "arguments", given, options.place)?;
        let Some(server) = self.inner.broker.find(&target.server) else {
            let message = format!("there is no server `{}`", target.server);
            return Err(fail(
                entry,
                &target,
                code::CONNECTION_CLOSED,
                &message,
                false,
            ));
        };

        let reviews = &self.inner.reviews;
        // A journal has what a call carries in the line before it.
        let may_overlap = self.inner.dry_run.is_none() && !self.inner.ledger.has_journal();
        let mut findings = reviews.arguments(&target, &text, look, may_overlap).await;
        entry.carries(findings.records());
        let mut decisions = 0;
        let ruling = loop {
            let case = Case {
                target: &target,
                trusted: server.trusted(),
                arguments: &arguments,
                text: &text,
                place: options.place,
            };
            let judge = &self.inner.judge;
            let decision = judge.take(&case, &findings);
            let dry_run = self.inner.dry_run.as_deref();
            let ruling = match dry_run.filter(|dry_run| !dry_run.makes(&target, case.trusted)) {
                Some(dry_run) if decision.verdict != Verdict::Deny => {
                    let ruling = Ruling::by_rules(decision);
                    let withheld = self.withhold(entry, dry_run, &case, &ruling);
                    return withheld.map(Making::Withheld);
                }
                // Nobody is asked about a call that is not made.
                Some(_) => Ruling::by_rules(decision),
                None => {
                    if decision.verdict == Verdict::Ask {
                        self.look_to_the_end(&entry, &text, &mut findings).await;
                    }
                    let ledger = &self.inner.ledger;
                    judge.settle(&case, &findings, decision, ledger).await
                }
            };
            if !ruling.allows() {
                return Err(denied(entry, target, ruling));
            }
            // Whoever was asked may have thought about it for long.
            let definition = target.definition.as_deref().map(Definition::hash);
            let decided = definition.map(|definition| server.decided(definition));
            let still_is = decided.map_or(Ok(()), |decided| decided.still_is(&target.tool));
            let Err(changed) = still_is else {
                break ruling;
            };
            decisions += 1;
            target = match self.renewed(&target).await {
                Some(renewed) if decisions < MAX_DECISIONS => renewed,
                _ => {
                    entry.decided(&ruling);
                    let message = changed.to_string();
                    return Err(fail(entry, &target, code::TOOL_CHANGED, &message, true));
                }
            };
        };
        // While it waits for its answer, the text will do.
        drop(arguments);
        let entry = sending(entry, &target, &ruling).await?;

        let definition = target.definition.as_deref().map(Definition::hash);
        let call = Call {
            tool: &target.tool,
            arguments: &text,
            caller: self.inner.caller.clone().unwrap_or_else(|| server.caller()),
            patience: options.patience(server.patience()),
            decided: definition.map(|definition| server.decided(definition)),
        };
        let result = server.call(&call).await;
        self.look_to_the_end(&entry, &text, &mut findings).await;
        Ok(Making::Made(Box::new(Made {
            target,
            entry,
            text,
            findings,
            result,
        })))
    }

    /// The tool as it is by now.
    pub(super) async fn renewed(&self, target: &Target) -> Option<Target> {
        let renewed = self.inner.renew.as_ref()?(&target.function).await?;
        (renewed.server == target.server && renewed.tool == target.tool).then_some(renewed)
    }

    /// Waits for a look that goes on, and notes what it found.
    async fn look_to_the_end(
        &self,
        entry: &Entry,
        arguments: &Arc<String>,
        findings: &mut Findings,
    ) {
        if self.inner.reviews.complete(arguments, findings).await {
            entry.carries(findings.records());
        }
    }

    /// Answers a call in its tool's place.
    fn withhold(
        &self,
        entry: Entry,
        dry_run: &DryRun,
        case: &Case<'_>,
        ruling: &Ruling,
    ) -> Result<Box<RawValue>, CallError> {
        let answer = dry_run.answer(&case.target.function);
        let decision = ruling.decision.to_string();
        self.inner
            .withheld
            .add(entry.ordinal(), case, &decision, answer.is_some());
        entry.withheld(ruling, answer.as_deref().map(RawValue::get));
        answer.ok_or_else(|| CallError::DryRun {
            server: case.target.server.clone(),
            tool: case.target.tool.clone(),
            function: case.target.function.clone(),
            decision,
        })
    }
}

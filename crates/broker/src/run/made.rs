//! A call up to its server's answer: decided about, written down, sent.

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::{Definition, DefinitionHash, Verdict};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::Run;
use super::line::{Opened, denied, fail, late, sending};
use crate::calls::Call;
use crate::dry_run::DryRun;
use crate::error::{CallError, code};
use crate::failure::Failure;
use crate::judge::Case;
use crate::ledger::Entry;
use crate::listed::Change;
use crate::options::{CallOptions, CallTime};
use crate::patience::Patience;
use crate::review::Findings;
use crate::ruling::Ruling;
use crate::server::Server;
use crate::target::Target;

/// How often one call is decided about, as its tool changes meanwhile.
pub(super) const MAX_DECISIONS: usize = 3;

/// How often a call is handed on that was decided about once, as its login changes before it is
/// sent.
const MAX_LOGINS: usize = 3;

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
    /// As it was before it was handed on the last time.
    pub(super) time: CallTime,
    /// A failure comes with one clause about it.
    pub(super) result: Result<Box<RawValue>, (Failure, String)>,
    /// What the tool is by now, if it is another and the call was not sent for that.
    pub(super) renewed: Option<Target>,
}

impl Run {
    /// Makes a call, if it may be made: in what is left of its `time`, if it was made before.
    /// Counts how often it was decided about.
    pub(super) async fn make(
        &self,
        mut target: Target,
        given: Arc<String>,
        options: &CallOptions,
        time: Option<CallTime>,
        decisions: &mut usize,
    ) -> Result<Making, CallError> {
        let reviews = &self.inner.reviews;
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

        let mut time = time.unwrap_or_else(|| options.time(server.patience()));
        let findings = reviews.arguments(&target, &text).await;
        entry.carries(&reviews.weighed(&findings));
        let ruling = loop {
            *decisions += 1;
            let case = Case {
                target: &target,
                trusted: server.trusted(),
                arguments: &arguments,
                text: &text,
                place: options.place,
            };
            let judge = &self.inner.judge;
            let dry_run = self.inner.dry_run.as_deref();
            let dry_run = dry_run.filter(|dry_run| !dry_run.makes(&target, case.trusted));
            let decision = match dry_run {
                Some(_) => judge.foresee(&case, &findings),
                None => judge.take(&case, &findings),
            };
            let ruling = match dry_run {
                Some(dry_run) if decision.verdict != Verdict::Deny => {
                    let ruling = Ruling::by_rules(decision);
                    let withheld = self.withhold(entry, dry_run, &case, &ruling);
                    return withheld.map(Making::Withheld);
                }
                // Nobody is asked about a call that is not made.
                Some(_) => Ruling::by_rules(decision),
                None => {
                    let ledger = &self.inner.ledger;
                    judge.settle(&case, &findings, decision, ledger).await
                }
            };
            if !ruling.allows() {
                return Err(denied(entry, target, ruling));
            }
            // Whoever was asked may have thought about it for long.
            let definition = target.definition.as_deref().map(Definition::hash).copied();
            let decided = definition.map(|definition| server.decided(definition));
            let still_is = decided.map_or(Ok(()), |decided| decided.still_is(&target.tool));
            // By a list that is on its way it may be another.
            if still_is.is_ok() && server.is_settled() {
                break ruling;
            }
            let renewed = match self.renewed(&target, &mut time).await {
                Ok(renewed) => renewed,
                Err(limit) => {
                    entry.decided(&ruling);
                    return Err(late(entry, target, limit, true));
                }
            };
            let is_same = match &renewed {
                Some(renewed) => is_same(renewed, definition.as_ref()),
                // Nobody looks tools up anew.
                None => self.inner.renew.is_none(),
            };
            let changed = match still_is {
                Ok(()) if is_same => break ruling,
                Ok(()) if renewed.is_none() => Change::Gone,
                Ok(()) => Change::Tool,
                Err(changed) => changed,
            };
            target = match renewed {
                Some(renewed) if *decisions < MAX_DECISIONS => renewed,
                _ => {
                    entry.decided(&ruling);
                    let message = Failure::changed(changed).to_string();
                    return Err(fail(entry, &target, code::TOOL_CHANGED, &message, true));
                }
            };
        };
        // While it waits for its answer, the text will do.
        drop(arguments);
        let mut entry = sending(entry, &target, &ruling)?;

        let definition = target.definition.as_deref().map(Definition::hash).copied();
        entry.hash();
        let mut logins = 0;
        let (result, renewed) = loop {
            let call = Call {
                tool: &target.tool,
                arguments: &text,
                caller: self.inner.caller.clone().unwrap_or_else(|| server.caller()),
                patience: time.left(),
                decided: definition.map(|definition| server.decided(definition)),
            };
            let result = server.call(&call).await;
            let Err((
                Failure::Changed {
                    what,
                    sent: false,
                    spent,
                },
                _,
            )) = &result
            else {
                break (result, None);
            };
            time.spend(*spent);
            let is_by_login = *what == Change::Login;
            if is_by_login {
                logins += 1;
                match self.listed_by_login(server, &mut time).await {
                    Ok(true) if logins <= MAX_LOGINS => {}
                    Ok(_) => break (result, None),
                    Err(limit) => return Err(late(entry, target, limit, true)),
                }
            }
            match self.renewed(&target, &mut time).await {
                // What was decided holds for the same tool with another login.
                Ok(Some(renewed)) if is_by_login && is_same(&renewed, definition.as_ref()) => {
                    target = renewed;
                }
                Ok(Some(renewed)) if is_by_login => {
                    break (Err(changed(Change::Tool)), Some(renewed));
                }
                Ok(None) if self.inner.renew.is_some() => break (Err(changed(Change::Gone)), None),
                // Nobody looks tools up anew, and what is sent is held to the newest list.
                Ok(None) if is_by_login => {}
                Ok(renewed) => break (result, renewed),
                // Nothing was done.
                Err(limit) => return Err(late(entry, target, limit, true)),
            }
        };
        Ok(Making::Made(Box::new(Made {
            target,
            entry,
            text,
            findings,
            time,
            result,
            renewed,
        })))
    }

    /// Has a server's tools listed with the login that there is now, in the call's time; false if
    /// there is no such list.
    ///
    /// # Errors
    ///
    /// That is over, or as much of it as passes without a sign of work: how long it was.
    async fn listed_by_login(
        &self,
        server: &Server,
        time: &mut CallTime,
    ) -> Result<bool, Duration> {
        let Patience { idle, most } = time.left();
        let (patience, began) = (idle.min(most), Instant::now());
        let limit = time.whole(patience);
        let mut changes = self.inner.broker.watch();
        if !server.is_listed_by_login() {
            // One may have been asked for before, and not have come.
            server.refresh();
        }
        let listed = timeout(patience, async {
            // Other reasons for a list may come with each.
            while !server.is_listed_by_login() {
                if server.is_settled() || changes.changed().await.is_err() {
                    return false;
                }
            }
            true
        });
        let listed = listed.await;
        time.spend(began.elapsed());
        listed.map_err(|_| limit)
    }

    /// The tool as it is by now, looked up in the call's time.
    ///
    /// # Errors
    ///
    /// That is over: how long it was.
    async fn renewed(
        &self,
        target: &Target,
        time: &mut CallTime,
    ) -> Result<Option<Target>, Duration> {
        let Some(renew) = &self.inner.renew else {
            return Ok(None);
        };
        let began = Instant::now();
        let renewed = timeout(time.left().most, renew(&target.function)).await;
        time.spend(began.elapsed());
        match renewed {
            Ok(renewed) if !time.left().most.is_zero() => Ok(renewed
                .filter(|renewed| renewed.server == target.server && renewed.tool == target.tool)),
            _ => Err(time.limit()),
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
            function: case.target.function.clone(),
            decision,
        })
    }
}

/// The failure of a call that was not sent.
fn changed(what: Change) -> (Failure, String) {
    let failure = Failure::changed(what);
    let said = failure.to_string();
    (failure, said)
}

/// Whether a tool is what was decided about.
fn is_same(renewed: &Target, definition: Option<&DefinitionHash>) -> bool {
    renewed.definition.as_deref().map(Definition::hash) == definition
}

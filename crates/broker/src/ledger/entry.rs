//! One line of a ledger while it is written, and what the journal has of it.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use serde_json::Value;

use super::{Ledger, LedgerLine, Outcome, millis};
use crate::journal::{
    About, Body, Event, Journal, JournalError, Pending, Record, digest, wall_time,
};
use crate::ruling::Ruling;

/// One line that is still being written. Dropped before its outcome is known,
/// it says that the call was cancelled.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Ledger,
    index: usize,
    before: Before,
    sent: Option<Instant>,
    /// The arguments, where the journal is to have them.
    arguments: Option<String>,
    closed: bool,
}

/// What the journal has of a call that is to be sent.
#[derive(Debug)]
enum Before {
    None,
    /// Its line waits to be written.
    Pending(Pending),
    Written,
}

impl Entry {
    pub(super) fn new(ledger: Ledger, index: usize) -> Self {
        Self {
            ledger,
            index,
            before: Before::None,
            sent: None,
            arguments: None,
            closed: false,
        }
    }

    /// Its number in the ledger, from 1.
    pub(crate) fn ordinal(&self) -> usize {
        self.index + 1
    }

    /// Notes the arguments as they will be sent, and what was seen in them of
    /// other servers' results. Comes before every decision.
    pub(crate) fn reviewed(&mut self, arguments: &str, flows: Vec<Value>) {
        let journal = self.ledger.journal.as_ref();
        if journal.is_some_and(|journal| journal.bodies()) {
            self.arguments = Some(arguments.to_owned());
        }
        self.change(|line| {
            line.argument_bytes = arguments.len();
            line.argument_sha256 = Some(digest(arguments));
            line.flows = flows;
        });
    }

    /// Notes the decision that lets the call through. Comes before the call: before
    /// this returns, or where it fails, the call must not be sent.
    pub(crate) async fn sending(&mut self, ruling: &Ruling) -> Result<(), JournalError> {
        let decision = ruling.to_string();
        if let Some(journal) = self.ledger.journal.clone() {
            let rule = ruling.rule().map(|rule| rule.to_json().to_string());
            let now = wall_time(Timestamp::now());
            let line = self.change(|line| {
                line.decision = decision;
                let mut record = self.record(Event::Before, line, &now);
                record.rule = rule.as_deref();
                record.line()
            });
            if let Some(line) = line {
                self.before(&journal, &line).await?;
            }
            self.change(|line| line.outcome = Outcome::InFlight);
        } else {
            self.change(|line| {
                line.decision = decision;
                line.outcome = Outcome::InFlight;
            });
        }
        self.sent = Some(Instant::now());
        Ok(())
    }

    async fn before(&mut self, journal: &Arc<Journal>, line: &str) -> Result<(), JournalError> {
        self.before = match journal.take(line, About::Before)? {
            None => Before::Written,
            Some(pending) => Before::Pending(pending),
        };
        if let Before::Pending(pending) = &self.before {
            let written = pending.written().await;
            self.before = match &written {
                Ok(()) => Before::Written,
                Err(_) => Before::None,
            };
            return written;
        }
        Ok(())
    }

    /// Notes that the call was not let through.
    pub(crate) fn denied(mut self, ruling: &Ruling) {
        self.change(|line| line.decision = ruling.to_string());
        self.end_at_once(Outcome::Denied, None);
    }

    /// Notes that it was answered in its tool's place; the text is that of a
    /// recorded result.
    pub(crate) fn withheld(mut self, decision: &str, result: Option<&str>) {
        self.change(|line| line.decision = decision.to_owned());
        let outcome = match result {
            Some(_) => Outcome::Recorded,
            None => Outcome::Withheld,
        };
        self.end_at_once(outcome, result);
    }

    /// Notes why its result was not held to its tool's schema.
    pub(crate) fn unchecked(&self, reason: String) {
        self.change(|line| line.unchecked = Some(reason));
    }

    /// Notes how it ended, and with what JSON text if there is one. Before this
    /// returns, nobody is to have that.
    pub(crate) async fn close(mut self, outcome: Outcome, result: Option<&str>) {
        let Some((journal, line, about)) = self.end(outcome, result) else {
            return;
        };
        match journal.take(&line, about) {
            Ok(None) => {}
            Ok(Some(pending)) => note(about, pending.written().await),
            Err(error) => note(about, Err(error)),
        }
    }

    fn end_at_once(&mut self, outcome: Outcome, result: Option<&str>) {
        if let Some((journal, line, about)) = self.end(outcome, result) {
            note(about, journal.write(&line, about));
        }
    }

    /// Ends the entry, and says what the journal is to have of it.
    fn end(
        &mut self,
        outcome: Outcome,
        result: Option<&str>,
    ) -> Option<(Arc<Journal>, String, About)> {
        self.closed = true;
        // It waited with others, and nobody waits for it any more.
        if let Before::Pending(pending) = &self.before {
            self.before = match pending.write() {
                Ok(()) => Before::Written,
                Err(_) => Before::None,
            };
        }
        let took_ms = self.sent.map(millis);
        let sha256 = result.map(digest);
        let journal = self.ledger.journal.clone();
        let written = self.change(|line| {
            line.outcome = outcome;
            line.result_bytes = result.map(str::len);
            line.result_sha256 = sha256;
            line.took_ms = took_ms;
            journal
                .as_deref()
                .map(|journal| self.last_line(journal, line, result))
        });
        let about = match self.before {
            Before::None => About::NotSent,
            Before::Pending(_) | Before::Written => About::After,
        };
        Some((journal?, written.flatten()?, about))
    }

    /// The line after the call, or the only one of a call not sent.
    fn last_line(&self, journal: &Journal, line: &LedgerLine, result: Option<&str>) -> String {
        let unsaid;
        let outcome = if journal.bodies() {
            &line.outcome
        } else {
            unsaid = line.outcome.without_message();
            &unsaid
        };
        let is_after = !matches!(self.before, Before::None);
        let event = match is_after {
            true => Event::After,
            false => Event::NotSent,
        };
        let now = wall_time(Timestamp::now());
        let mut record = self.record(event, line, &now);
        record.outcome = Some(outcome);
        record.took_ms = line.took_ms;
        record.result = line.result_sha256.as_deref().map(|sha256| Body {
            bytes: line.result_bytes.unwrap_or_default(),
            sha256,
            text: result.filter(|_| journal.bodies()),
        });
        if is_after {
            record.decision = None;
            record.arguments = None;
            record.flows = &[];
        }
        record.line()
    }

    fn record<'a>(&'a self, event: Event, line: &'a LedgerLine, now: &'a str) -> Record<'a> {
        let mut record = Record::new(event, self.ledger.run(), line.ordinal, now);
        record.function = &line.function;
        record.server = &line.server;
        record.tool = &line.tool;
        record.user = self.ledger.journal.as_deref().and_then(Journal::user);
        record.decision = Some(line.decision.as_str()).filter(|text| !text.is_empty());
        record.flows = &line.flows;
        record.arguments = line.argument_sha256.as_deref().map(|sha256| Body {
            bytes: line.argument_bytes,
            sha256,
            text: self.arguments.as_deref(),
        });
        record
    }

    /// Changes the line, and returns what comes of it; `None` if there is none,
    /// which cannot be.
    fn change<T>(&self, change: impl FnOnce(&mut LedgerLine) -> T) -> Option<T> {
        self.ledger.lines().get_mut(self.index).map(change)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.closed {
            self.end_at_once(Outcome::Cancelled, None);
        }
    }
}

/// Complains of a line that is lost. One that is kept is the journal's to complain
/// of.
fn note(about: About, written: Result<(), JournalError>) {
    if about == About::NotSent
        && let Err(error) = written
    {
        tracing::error!(%error, "a call that was not sent has no line");
    }
}

#[cfg(test)]
mod tests;

//! What was called, in what order, by whose leave, and with what outcome.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callgate_policy::Rule;
use callgate_policy::flow::{Finding, FlowRecord};
use serde::Serialize;

use crate::ask::Done;
use crate::journal::{Body, Event, Journal, JournalError, Line, Record, digest};
use crate::moment::{Dated, Moment, WallTime};
use crate::outcome::Outcome;
use crate::ruling::Ruling;
use crate::tally::{Counts, Tally};
use crate::unique::unique_id;

/// The most lines of one ledger. A call beyond it is not sent.
pub(crate) const MAX_LINES: usize = 10_000;

/// The most flows that one line has.
const FLOWS_OF_ONE: usize = 16;

/// The most flows that all lines of a ledger have together, but that each has one if there is
/// any: what a script makes the host keep must not grow with the calls times the tools.
const FLOWS_IN_ALL: usize = 10_000;

/// From how many bytes on arguments are hashed while their server has them: that takes half a
/// millisecond for each MiB.
const LARGE: usize = 64 << 10;

/// What the line of a call has for a decision that was given up before there was one.
const UNDECIDED: &str = "undecided: it was given up first";

/// One call of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerLine {
    /// 1 for the run's first call.
    pub ordinal: usize,
    /// The generated function name.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// What was decided about it, in words; empty while somebody is asked.
    pub decision: String,
    /// The script's line that called, from 1, where it is known. The worker's
    /// word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// When the call was asked for, by the clock on the wall: RFC 3339, UTC.
    pub at: String,
    /// The arguments' size, in bytes of JSON.
    pub argument_bytes: usize,
    /// SHA-256 of the arguments as they are sent, in hexadecimal; absent for
    /// those that are no JSON object. Of 64 KiB and more, without a journal, it may come only
    /// after the call is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_sha256: Option<String>,
    /// What was seen of other servers' results in the arguments: everything but
    /// the data. Those first that rules have most against; at most 16, and 10,000 of a
    /// run's calls together, but of each call one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// How many flows there are besides those in `flows`.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_flows: usize,
    /// The size of the value the script got, in bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// SHA-256 of that value, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// Why the result was not held to the tool's `outputSchema`; absent where it
    /// was, and where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// When the call was made, in milliseconds since the run began.
    pub started_ms: u64,
    /// From the line before the call to its outcome, in milliseconds, with the time that the machine
    /// slept (on Linux); absent for a call
    /// that was not sent or has no outcome yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The ledger of one run.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    began: Moment,
    run: Arc<str>,
    journal: Option<Arc<Journal>>,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    all: Vec<LedgerLine>,
    tally: Tally,
    /// How many flows the lines have.
    flows: usize,
}

impl Ledger {
    /// The ledger of a run that begins. With a journal, every line goes there
    /// too.
    pub(crate) fn new(journal: Option<Arc<Journal>>) -> Self {
        Self {
            began: Moment::now(),
            run: unique_id().into(),
            journal,
            lines: Arc::default(),
        }
    }

    /// Adds a line for a call that is about to be decided. `None` if the ledger
    /// is full.
    pub(crate) fn open(
        &self,
        function: &str,
        server: &str,
        tool: &str,
        line: Option<u32>,
        argument_bytes: usize,
    ) -> Option<Entry> {
        let mut lines = self.lines();
        let lines = &mut lines.all;
        if lines.len() >= MAX_LINES {
            return None;
        }
        let index = lines.len();
        let opened = Dated::now();
        lines.push(LedgerLine {
            ordinal: index + 1,
            function: function.to_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            decision: String::new(),
            line,
            at: str::to_owned(&WallTime::of(opened.time)),
            argument_bytes,
            argument_sha256: None,
            flows: Vec::new(),
            more_flows: 0,
            result_bytes: None,
            result_sha256: None,
            unchecked: None,
            started_ms: millis(opened.moment.since(self.began)),
            took_ms: None,
            outcome: Outcome::Asking,
        });
        Some(Entry {
            ledger: self.clone(),
            index,
            opened,
            sent: None,
            arguments: None,
            unhashed: None,
            rule: None,
            is_looked_at_late: false,
            closed: false,
        })
    }

    /// The run, as 32 hexadecimal digits.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Whether its lines are written down.
    pub(crate) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Has the journal's file take all lines, as far as it does.
    pub(crate) fn catch_up(&self) {
        if let Some(journal) = &self.journal {
            journal.catch_up();
        }
    }

    /// Every line so far, in the order of the calls.
    pub(crate) fn snapshot(&self) -> Vec<LedgerLine> {
        self.lines().all.clone()
    }

    /// What was called so far, by function in the order of the first calls, and how many
    /// functions there are besides.
    pub(crate) fn done(&self) -> (Vec<Done>, usize) {
        self.lines().tally.done()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One line that is still being written. Dropped before its outcome is known,
/// it says that the call was cancelled.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Ledger,
    index: usize,
    opened: Dated,
    sent: Option<Moment>,
    /// The arguments, where the journal is to have them.
    arguments: Option<Arc<String>>,
    /// Large arguments whose hash nobody needs yet.
    unhashed: Option<Arc<String>>,
    /// The rule over a call that is not sent, where the journal is to have it.
    rule: Option<Rule>,
    /// Whether the line before the call could not have its flows.
    is_looked_at_late: bool,
    closed: bool,
}

impl Entry {
    /// Its number in the ledger, from 1.
    pub(crate) fn ordinal(&self) -> usize {
        self.index + 1
    }

    /// Notes the arguments as they will be sent. Comes before every decision. Without a journal,
    /// the hash of large ones may come [later](Self::hash).
    pub(crate) fn takes(&mut self, arguments: &Arc<String>) {
        let journal = self.ledger.journal.as_ref();
        if journal.is_some_and(|journal| journal.bodies()) {
            self.arguments = Some(Arc::clone(arguments));
        }
        self.unhashed = Some(Arc::clone(arguments));
        if journal.is_some() || arguments.len() < LARGE {
            self.hash();
        }
        self.change(|line| line.argument_bytes = arguments.len());
    }

    /// Notes the arguments' hash, if that was put off.
    pub(crate) fn hash(&mut self) {
        if let Some(arguments) = self.unhashed.take() {
            let sha256 = digest(&arguments);
            self.change(|line| line.argument_sha256 = Some(sha256));
        }
    }

    /// Notes what was seen in the arguments of other servers' results, or what is to be
    /// said of them until somebody has looked: as many of the first as a line has room for.
    /// Comes before every decision, and again, also after the call was sent, when somebody has.
    pub(crate) fn carries(&mut self, flows: &[&Finding]) {
        self.is_looked_at_late |= self.sent.is_some();
        let first = flows.iter().take(FLOWS_OF_ONE);
        let mut first: Vec<FlowRecord> = first.map(|flow| flow.record()).collect();
        let mut lines = self.ledger.lines();
        let lines = &mut *lines;
        let Some(line) = lines.all.get_mut(self.index) else {
            return;
        };
        let others = lines.flows.saturating_sub(line.flows.len());
        first.truncate(FLOWS_IN_ALL.saturating_sub(others).max(1));
        first.shrink_to_fit();
        lines.flows = others + first.len();
        line.more_flows = flows.len() - first.len();
        line.flows = first;
    }

    /// Notes the decision that lets the call through. Comes before the call:
    /// where it fails, the call must not be sent.
    pub(crate) fn sending(&mut self, ruling: &Ruling) -> Result<(), JournalError> {
        let decision = ruling.to_string();
        let journal = self.ledger.journal.as_deref();
        let now = Moment::now();
        let written = self.change(|line| {
            line.decision = decision;
            line.outcome = Outcome::InFlight;
            journal.map(|_| {
                let time = WallTime::of(self.opened.time_of(now));
                let mut record = self.record(Event::Before, line, &time);
                record.rule = ruling.rule();
                record.line()
            })
        });
        if let (Some(journal), Some(written)) = (journal, written.flatten()) {
            journal.write(&written, now)?;
        }
        self.sent = Some(now);
        Ok(())
    }

    /// Notes the decision about a call that may not be sent all the same.
    pub(crate) fn decided(&mut self, ruling: &Ruling) {
        self.ruled_by(ruling);
        self.change(|line| line.decision = ruling.to_string());
    }

    /// Notes that the call was not let through.
    pub(crate) fn denied(mut self, ruling: &Ruling) {
        self.decided(ruling);
        self.finish(Outcome::Denied, None);
    }

    /// Notes that it was answered in its tool's place; the text is that of a
    /// recorded result.
    pub(crate) fn withheld(mut self, ruling: &Ruling, result: Option<&str>) {
        self.ruled_by(ruling);
        self.change(|line| line.decision = ruling.decision.to_string());
        let outcome = match result {
            Some(_) => Outcome::Recorded,
            None => Outcome::Withheld,
        };
        self.finish(outcome, result);
    }

    fn ruled_by(&mut self, ruling: &Ruling) {
        if self.ledger.has_journal() {
            self.rule = ruling.rule().cloned();
        }
    }

    /// Notes why its result was not held to its tool's schema.
    pub(crate) fn unchecked(&self, reason: String) {
        self.change(|line| line.unchecked = Some(reason));
    }

    /// Notes how it ended, and with what JSON text if there is one.
    pub(crate) fn close(mut self, outcome: Outcome, result: Option<&str>) {
        self.finish(outcome, result);
    }

    fn finish(&mut self, outcome: Outcome, result: Option<&str>) {
        self.closed = true;
        self.hash();
        let now = Moment::now();
        let took_ms = self.sent.map(|sent| millis(now.since(sent)));
        let sha256 = result.map(digest);
        let journal = self.ledger.journal.as_deref();
        let written = self.change(|line| {
            line.outcome = outcome;
            line.result_bytes = result.map(str::len);
            line.result_sha256 = sha256;
            line.took_ms = took_ms;
            journal.map(|journal| self.last_line(journal, line, now, result))
        });
        let (Some(journal), Some(written)) = (journal, written.flatten()) else {
            return;
        };
        match self.sent {
            Some(_) => journal.write_or_wait(&written, now),
            None => journal.write_if_taken(&written, now),
        }
    }

    /// The line after the call, or the only one of a call not sent.
    fn last_line(
        &self,
        journal: &Journal,
        line: &LedgerLine,
        now: Moment,
        result: Option<&str>,
    ) -> Line {
        let unsaid;
        let outcome = if journal.bodies() {
            &line.outcome
        } else {
            unsaid = line.outcome.without_message();
            &unsaid
        };
        let event = match self.sent {
            Some(_) => Event::After,
            None => Event::NotSent,
        };
        let time = WallTime::of(self.opened.time_of(now));
        let mut record = self.record(event, line, &time);
        record.outcome = Some(outcome);
        record.took_ms = line.took_ms;
        record.result = line.result_sha256.as_deref().map(|sha256| Body {
            bytes: line.result_bytes.unwrap_or_default(),
            sha256,
            text: result.filter(|_| journal.bodies()),
        });
        if self.sent.is_none() {
            record.rule = self.rule.as_ref();
        } else {
            record.decision = None;
            record.arguments = None;
            record.flows = self.is_looked_at_late.then_some(&line.flows);
            if !self.is_looked_at_late {
                record.more_flows = 0;
            }
        }
        record.line()
    }

    fn record<'a>(&'a self, event: Event, line: &'a LedgerLine, time: &'a str) -> Record<'a> {
        let mut record = Record::new(event, self.ledger.run(), line.ordinal, time);
        record.function = &line.function;
        record.server = &line.server;
        record.tool = &line.tool;
        record.user = self.ledger.journal.as_deref().and_then(Journal::user);
        record.decision = Some(line.decision.as_str()).filter(|text| !text.is_empty());
        record.flows = Some(line.flows.as_slice()).filter(|flows| !flows.is_empty());
        record.more_flows = line.more_flows;
        record.arguments = line.argument_sha256.as_deref().map(|sha256| Body {
            bytes: line.argument_bytes,
            sha256,
            text: self.arguments.as_deref().map(String::as_str),
        });
        record
    }

    /// Changes the line, and returns what comes of it; `None` if there is none,
    /// which cannot be.
    fn change<T>(&self, change: impl FnOnce(&mut LedgerLine) -> T) -> Option<T> {
        let mut lines = self.ledger.lines();
        let Lines { all, tally, .. } = &mut *lines;
        let line = all.get_mut(self.index)?;
        let before = Counts::of(line);
        let changed = change(line);
        tally.recount(self.index, line, before);
        Some(changed)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.closed {
            self.change(|line| {
                if line.decision.is_empty() {
                    line.decision = UNDECIDED.to_owned();
                }
            });
            self.finish(Outcome::Cancelled, None);
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

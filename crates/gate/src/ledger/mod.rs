//! The ledger of a run: one line for each call, with its decision and its outcome.

mod counts;
mod events;
mod file;
mod line;
mod outcome;
mod reader;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use callgate_catalog::Tool;
use callgate_policy::Rule;
use callgate_policy::flow::{Finding, FlowRecord};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

pub use events::{CallEvent, LedgerEvent, LedgerSink};
pub use file::{DEFAULT_LEDGER_BYTES, LedgerError, LedgerFile, LedgerOptions};
use line::digest;
pub use outcome::Outcome;
pub use reader::{LedgerReader, LedgerRecord};

use crate::arguments::Arguments;
use crate::ask::{Done, Place};
use crate::error::{CallError, code};
use crate::ruling::Ruling;

/// The most lines of one ledger. A call beyond it is not sent.
const MAX_LINES: usize = 10_000;

/// The most flows of one line.
const MAX_FLOWS_OF_LINE: usize = 16;

/// The most flows of all lines of a ledger, but for one of each line: a script must not make the
/// host keep calls times tools.
const MAX_FLOWS: usize = 10_000;

/// The decision of a call that was given up before there was one.
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
    /// The decision in words; empty while the asker is asked.
    pub decision: String,
    /// The script's line that called, from 1, where it is known. The worker says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The time when the call was asked for: RFC 3339, UTC.
    pub at: String,
    /// The arguments' size, in bytes of JSON.
    pub argument_bytes: usize,
    /// SHA-256 of the arguments as they are sent, in hexadecimal; absent if they are no JSON
    /// object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_sha256: Option<String>,
    /// Copies of other servers' results in the arguments, without the data. Those that rules
    /// are strictest about come first. At most 16, and 10,000 of a run's calls together, but
    /// one of each call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// The number of flows besides those in `flows`.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_flows: usize,
    /// The size of the value the script got, in bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// SHA-256 of that value, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// The reason why the result was not held to the tool's `outputSchema`; absent if it was,
    /// or if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// The time from the run's beginning to the call, in milliseconds.
    pub started_ms: u64,
    /// The time from the decision to the outcome, in milliseconds; absent for a call that was
    /// not sent or has no outcome yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// How the call ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The ledger of one run. Clones are the same ledger.
#[derive(Clone)]
pub(crate) struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    run: String,
    began: Instant,
    sinks: Vec<Arc<dyn LedgerSink>>,
    lines: Mutex<Vec<LedgerLine>>,
}

impl Ledger {
    /// The ledger of a run that begins. The sinks receive its events.
    pub(crate) fn new(sinks: Vec<Arc<dyn LedgerSink>>) -> Self {
        let inner = Inner {
            run: run_id(),
            began: Instant::now(),
            sinks,
            lines: Mutex::default(),
        };
        let started = LedgerEvent::RunStarted {
            run: &inner.run,
            time: Timestamp::now(),
        };
        inner.emit_or_log(&started);
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Adds the line of a call that begins.
    ///
    /// # Errors
    ///
    /// The ledger is full.
    pub(crate) fn open(
        &self,
        tool: &Tool,
        arguments: &RawValue,
        place: Option<Place>,
    ) -> Result<Entry, CallError> {
        let mut lines = self.inner.lines();
        let index = lines.len();
        let (function, server) = (tool.function.clone(), tool.server.clone());
        if index >= MAX_LINES {
            return Err(CallError::Protocol {
                server,
                function,
                code: code::TOO_MANY_CALLS,
                message: format!("a run may make {MAX_LINES} calls, and this one has"),
                data: None,
                retryable: false,
            });
        }
        lines.push(LedgerLine {
            ordinal: index + 1,
            function: function.clone(),
            server: server.clone(),
            tool: tool.name.clone(),
            decision: String::new(),
            line: place.map(|place| place.line),
            at: format!("{:.3}", Timestamp::now()),
            argument_bytes: arguments.get().len(),
            argument_sha256: None,
            flows: Vec::new(),
            more_flows: 0,
            result_bytes: None,
            result_sha256: None,
            unchecked: None,
            started_ms: millis(self.inner.began.elapsed()),
            took_ms: None,
            outcome: Outcome::Asking,
        });
        Ok(Entry {
            ledger: self.clone(),
            index,
            function,
            server,
            sent: None,
            arguments: None,
            rule: None,
            is_closed: false,
        })
    }

    /// The run, as 32 hexadecimal digits.
    pub(crate) fn run(&self) -> &str {
        &self.inner.run
    }

    /// Every line so far, in the order of the calls.
    pub(crate) fn lines(&self) -> Vec<LedgerLine> {
        self.inner.lines().clone()
    }

    /// The calls so far by function, and the number of further functions.
    pub(crate) fn done(&self) -> (Vec<Done>, usize) {
        counts::count(&self.inner.lines())
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = &self.inner.run;
        f.debug_struct("Ledger")
            .field("run", run)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn lines(&self) -> MutexGuard<'_, Vec<LedgerLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emit_or_log(&self, event: &LedgerEvent<'_>) {
        for sink in &self.sinks {
            if let Err(error) = sink.event(event) {
                tracing::error!(%error, "an event is missing in a ledger");
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.emit_or_log(&LedgerEvent::RunEnded {
            run: &self.run,
            time: Timestamp::now(),
            calls: self.lines().len(),
        });
    }
}

/// The line of a call that goes on. A call whose entry is dropped before its end was cancelled.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Ledger,
    index: usize,
    function: String,
    server: String,
    sent: Option<Instant>,
    arguments: Option<Arc<str>>,
    rule: Option<Rule>,
    is_closed: bool,
}

impl Entry {
    /// The call's number in the ledger, from 1.
    pub(crate) fn ordinal(&self) -> usize {
        self.index + 1
    }

    /// Parses the arguments, and notes them as they will be sent. `noun` names them in the error.
    ///
    /// # Errors
    ///
    /// They are no JSON object, or not one that can be kept exactly. The entry is closed.
    pub(crate) fn parse(&mut self, given: &RawValue, noun: &str) -> Result<Arguments, CallError> {
        let parsed = Arguments::parse(given.get(), noun);
        let arguments =
            parsed.map_err(|message| self.fail(code::INVALID_ARGUMENTS, message, false))?;
        let text = arguments.text();
        self.arguments = Some(Arc::clone(text));
        let sha256 = digest(text);
        self.change(|line| {
            line.argument_bytes = text.len();
            line.argument_sha256 = Some(sha256);
        });
        Ok(arguments)
    }

    /// Notes the flows found in the arguments: as many of the first as the line has room for.
    pub(crate) fn found(&mut self, flows: &[Finding]) {
        let mut lines = self.ledger.inner.lines();
        let kept: usize = lines.iter().map(|line| line.flows.len()).sum();
        let Some(line) = lines.get_mut(self.index) else {
            return;
        };
        let room = MAX_FLOWS.saturating_sub(kept).max(1);
        let first = flows.iter().take(room.min(MAX_FLOWS_OF_LINE));
        line.flows = first.map(Finding::record).collect();
        line.more_flows = flows.len() - line.flows.len();
    }

    /// Notes the decision.
    pub(crate) fn decided(&mut self, ruling: &Ruling) {
        self.rule = ruling.rule().cloned();
        self.change(|line| line.decision = ruling.to_string());
    }

    /// Tells the sinks that the call is about to be sent. If this fails, it must not be.
    pub(crate) fn sending(&mut self) -> Result<(), CallError> {
        if let Some(line) = self.change(|line| line.outcome = Outcome::InFlight) {
            let event = LedgerEvent::CallDecided(self.event(&line, None));
            let emitted = self
                .ledger
                .inner
                .sinks
                .iter()
                .try_for_each(|sink| sink.event(&event));
            if let Err(error) = emitted {
                let message = format!("{error}; no call is made that is not written down");
                return Err(self.fail(code::NOT_RECORDED, message, true));
            }
        }
        self.sent = Some(Instant::now());
        Ok(())
    }

    /// Notes the reason why the result was not held to the tool's schema.
    pub(crate) fn unchecked(&mut self, reason: String) {
        self.change(|line| line.unchecked = Some(reason));
    }

    /// Closes the line of a call that was not allowed.
    pub(crate) fn denied(&mut self, ruling: Ruling) -> CallError {
        self.close(Outcome::Denied, None);
        CallError::Denied {
            server: self.server.clone(),
            function: self.function.clone(),
            ruling: Box::new(ruling),
        }
    }

    /// Closes the line of a call that a dry run answers; the text is that of a recorded result.
    pub(crate) fn withheld(&mut self, decision: &str, recorded: Option<&str>) {
        self.change(|line| line.decision = decision.to_owned());
        let outcome = match recorded {
            Some(_) => Outcome::Recorded,
            None => Outcome::Withheld,
        };
        self.close(outcome, recorded);
    }

    /// Closes the line of a call whose result a reviewer keeps from the script.
    pub(crate) fn kept(&mut self, reason: String, result: &str) -> CallError {
        self.close(Outcome::kept(&reason), Some(result));
        CallError::Kept {
            server: self.server.clone(),
            function: self.function.clone(),
            reason,
        }
    }

    /// Closes the line of a call whose time is over.
    pub(crate) fn timed_out(&mut self, limit: Duration, retryable: bool) -> CallError {
        let limit_ms = millis(limit);
        self.close(Outcome::TimedOut { limit_ms }, None);
        CallError::Timeout {
            server: self.server.clone(),
            function: self.function.clone(),
            limit,
            retryable,
        }
    }

    /// Closes the line of a call that has no result.
    pub(crate) fn fail(&mut self, code: i64, message: String, retryable: bool) -> CallError {
        self.close(Outcome::protocol_error(code, &message), None);
        CallError::Protocol {
            server: self.server.clone(),
            function: self.function.clone(),
            code,
            message,
            data: None,
            retryable,
        }
    }

    /// Closes the line: how the call ended, and the JSON text of its result if there is one.
    pub(crate) fn close(&mut self, outcome: Outcome, result: Option<&str>) {
        self.is_closed = true;
        let took_ms = self.sent.map(|sent| millis(sent.elapsed()));
        let line = self.change(|line| {
            line.outcome = outcome;
            line.result_bytes = result.map(str::len);
            line.result_sha256 = result.map(digest);
            line.took_ms = took_ms;
        });
        if let Some(line) = &line {
            let event = LedgerEvent::CallEnded(self.event(line, result));
            self.ledger.inner.emit_or_log(&event);
        }
    }

    fn event<'a>(&'a self, line: &'a LedgerLine, result: Option<&'a str>) -> CallEvent<'a> {
        CallEvent {
            run: &self.ledger.inner.run,
            time: Timestamp::now(),
            line,
            was_sent: self.sent.is_some(),
            rule: self.rule.as_ref(),
            arguments: self.arguments.as_deref(),
            result,
        }
    }

    /// Changes the line, and returns it as it is then.
    fn change(&self, change: impl FnOnce(&mut LedgerLine)) -> Option<LedgerLine> {
        let mut lines = self.ledger.inner.lines();
        let line = lines.get_mut(self.index)?;
        change(line);
        Some(line.clone())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_closed {
            self.change(|line| {
                if line.decision.is_empty() {
                    line.decision = UNDECIDED.to_owned();
                }
            });
            self.close(Outcome::Cancelled, None);
        }
    }
}

/// 128 random bits as 32 hexadecimal digits. They are no secret, so the seeds that the system
/// gives to hash tables will do.
fn run_id() -> String {
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_i128(Timestamp::now().as_nanosecond());
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(), half())
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

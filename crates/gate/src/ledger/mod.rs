//! The ledger of a run: one line for each call, with its decision and its outcome.

mod call_line;
mod chain;
mod events;
mod file;
mod line;
mod open_line;
mod outcome;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callgate_catalog::Tool;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::value::RawValue;

pub use call_line::LedgerLine;
pub use events::{CallEvent, LedgerEvent, LedgerSink};
pub use file::{DEFAULT_LEDGER_BYTES, LedgerError, LedgerFile, LedgerOptions};
pub(crate) use open_line::OpenLine;
pub use outcome::Outcome;
pub use verify::{Finding, Head, MAX_LINE_BYTES, Summary, Verifier};

use crate::ask::Done;
use crate::error::{CallError, code};
use crate::ids::run_id;
use crate::setup::Setup;

/// The limit of lines. Further calls are not sent.
const MAX_LINES: usize = 10_000;

/// The limit of flows in one line.
const MAX_FLOWS_OF_LINE: usize = 16;

/// The limit of flows in all lines, except for the first of each line: a script must not make the
/// host keep calls times tools.
const MAX_FLOWS: usize = 10_000;

/// The ledger of one run.
pub(crate) struct Ledger {
    run: String,
    began: Instant,
    sinks: Vec<Arc<dyn LedgerSink>>,
    /// True once it is logged that a sink has failed.
    has_failed: AtomicBool,
    lines: Mutex<Vec<LedgerLine>>,
    is_one_call: bool,
    end: Mutex<Option<RunEnd>>,
}

/// The end of a run, as its report has it.
struct RunEnd {
    status: &'static str,
    total_ms: u64,
    script_ms: Option<u64>,
}

impl Ledger {
    /// Starts the ledger of a run, with an event for the sinks.
    pub(crate) fn new(setup: &Setup) -> Arc<Self> {
        let options = &setup.options;
        let ledger = Self {
            run: options.id.clone().unwrap_or_else(run_id),
            began: Instant::now(),
            sinks: setup.records.sinks.clone(),
            has_failed: AtomicBool::new(false),
            lines: Mutex::default(),
            is_one_call: options.one_call,
            end: Mutex::default(),
        };
        ledger.emit_or_log(&LedgerEvent::RunStarted {
            run: &ledger.run,
            time: Timestamp::now(),
            script: options.given.as_deref().or(options.script.as_deref()),
            client: options.client.as_deref(),
            rules: &setup.rules.calls,
            flows: &setup.rules.flows,
        });
        Arc::new(ledger)
    }

    /// Notes the status of the run. Its last event comes when no call is left.
    pub(crate) fn end(&self, status: &'static str, script_ms: Option<u64>) {
        *self.end.lock() = Some(RunEnd {
            status,
            total_ms: millis(self.began.elapsed()),
            script_ms,
        });
    }

    /// Opens the line of a call.
    pub(crate) fn open(
        self: &Arc<Self>,
        tool: &Tool,
        arguments: &RawValue,
        line: Option<u32>,
    ) -> Result<OpenLine, CallError> {
        let mut lines = self.lines.lock();
        let index = lines.len();
        let (function, server) = (tool.function.clone(), tool.definition.server.clone());
        if index >= MAX_LINES {
            let message = format!("a run may make {MAX_LINES} calls, and this one has");
            let code = code::TOO_MANY_CALLS;
            return Err(CallError::protocol(&function, &server, code, message));
        }
        lines.push(LedgerLine {
            ordinal: index + 1,
            function: function.clone(),
            server: server.clone(),
            tool: tool.definition.name.clone(),
            line,
            at: format!("{:.3}", Timestamp::now()),
            argument_bytes: arguments.get().len(),
            started_ms: millis(self.began.elapsed()),
            ..LedgerLine::default()
        });
        Ok(OpenLine::new(Arc::clone(self), index, function, server))
    }

    /// The run's id.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Every line so far, in the order of the calls.
    pub(crate) fn lines(&self) -> Vec<LedgerLine> {
        self.lines.lock().clone()
    }

    /// The calls so far by function, in the order of their first calls. A call without an answer
    /// yet counts as sent.
    pub(crate) fn done(&self) -> Vec<Done> {
        let lines = self.lines.lock();
        let mut counts: Vec<Done> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for line in lines.iter() {
            let (sent, failed, denied) = match line.outcome {
                Outcome::Denied => (0, 0, 1),
                Outcome::Ok | Outcome::InFlight => (1, 0, 0),
                // Refused, given up, or still with the asker.
                _ if line.took_ms.is_none() => continue,
                _ => (1, 1, 0),
            };
            let place = *places.entry(&line.function).or_insert(counts.len());
            if place == counts.len() {
                counts.push(Done {
                    function: line.function.clone(),
                    ..Done::default()
                });
            }
            if let Some(count) = counts.get_mut(place) {
                count.sent += sent;
                count.failed += failed;
                count.denied += denied;
            }
        }
        counts
    }

    fn emit_or_log(&self, event: &LedgerEvent<'_>) {
        for sink in &self.sinks {
            if let Err(error) = sink.event(event)
                && !self.has_failed.swap(true, Ordering::Relaxed)
            {
                tracing::error!(%error, "events of a run are missing in a ledger");
            }
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let end = self.end.get_mut().take().unwrap_or_else(|| RunEnd {
            // The caller of one call gave it up; the reader of a script's report is gone.
            status: if self.is_one_call {
                "cancelled"
            } else {
                "lost"
            },
            total_ms: millis(self.began.elapsed()),
            script_ms: None,
        });
        let done = self.done();
        self.emit_or_log(&LedgerEvent::RunEnded {
            run: &self.run,
            time: Timestamp::now(),
            status: end.status,
            total_ms: end.total_ms,
            script_ms: end.script_ms,
            calls: self.lines.lock().len(),
            denied: done.iter().map(|done| done.denied).sum(),
            failed: done.iter().map(|done| done.failed).sum(),
        });
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

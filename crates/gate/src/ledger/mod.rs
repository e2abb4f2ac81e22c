//! The ledger of a run: one line for each call, with its decision and its outcome.

mod counts;
mod entry;
mod events;
mod file;
mod line;
mod outcome;
mod reader;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use callgate_catalog::Tool;
use callgate_policy::flow::FlowRecord;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) use entry::Entry;
pub use events::{CallEvent, LedgerEvent, LedgerSink};
pub use file::{DEFAULT_LEDGER_BYTES, LedgerError, LedgerFile, LedgerOptions};
pub use outcome::Outcome;
pub use reader::{LedgerReader, LedgerRecord};

use crate::ask::{Done, Place};
use crate::error::{CallError, code};

/// The most lines of one ledger. A call beyond it is not sent.
const MAX_LINES: usize = 10_000;

/// The most flows of one line.
const MAX_FLOWS_OF_LINE: usize = 16;

/// The most flows of all lines of a ledger, but for one of each line: a script must not make the
/// host keep calls times tools.
const MAX_FLOWS: usize = 10_000;

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
        Ok(Entry::new(self.clone(), index, function, server))
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

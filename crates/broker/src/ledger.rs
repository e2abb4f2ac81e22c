//! What was called, in what order, by whose leave, and with what outcome.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;

/// The most lines of one ledger. A call beyond it is not sent.
pub(crate) const MAX_LINES: usize = 10_000;

/// The most bytes of a failure's message that a line keeps.
const MAX_MESSAGE_BYTES: usize = 300;

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
    /// The arguments' size, in bytes of JSON.
    pub argument_bytes: usize,
    /// The size of the value the script got, in bytes of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    /// When the call was made, in milliseconds since the run began.
    pub started_ms: u64,
    /// From sending the call to its outcome, in milliseconds; absent for a call
    /// that was not sent or has no outcome yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Outcome {
    /// Somebody is being asked; nothing was sent.
    Asking,
    /// It was sent, and there is no answer yet.
    InFlight,
    /// It gave a result.
    Ok,
    /// The tool failed.
    ToolError {
        /// At most 300 bytes of what it said.
        message: String,
    },
    /// There was no result to speak of.
    ProtocolError {
        /// See [`crate::CallError::Protocol`].
        code: i64,
        /// At most 300 bytes of what is known.
        message: String,
    },
    /// There was no answer in time.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// It was not sent.
    Denied,
    /// It was not sent, in a dry run: the script got an error in its place.
    Withheld,
    /// It was not sent, in a dry run: the script got a recorded result.
    Recorded,
    /// The run ended, or the caller gave up, before the answer.
    Cancelled,
}

impl Outcome {
    pub(crate) fn tool_error(message: &str) -> Self {
        Self::ToolError {
            message: cut(message),
        }
    }

    pub(crate) fn protocol_error(code: i64, message: &str) -> Self {
        Self::ProtocolError {
            code,
            message: cut(message),
        }
    }
}

fn cut(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_BYTES {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MAX_MESSAGE_BYTES);
    format!("{}…", message.get(..end).unwrap_or_default())
}

/// The ledger of one run.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    began: Instant,
    lines: Arc<Mutex<Vec<LedgerLine>>>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
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
        if lines.len() >= MAX_LINES {
            return None;
        }
        let index = lines.len();
        lines.push(LedgerLine {
            ordinal: index + 1,
            function: function.to_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            decision: String::new(),
            line,
            argument_bytes,
            result_bytes: None,
            started_ms: millis(self.began),
            took_ms: None,
            outcome: Outcome::Asking,
        });
        Some(Entry {
            ledger: self.clone(),
            index,
            sent: None,
            closed: false,
        })
    }

    /// Every line so far, in the order of the calls.
    pub(crate) fn snapshot(&self) -> Vec<LedgerLine> {
        self.lines().clone()
    }

    fn lines(&self) -> MutexGuard<'_, Vec<LedgerLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One line that is still being written. Dropped before its outcome is known,
/// it says that the call was cancelled.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Ledger,
    index: usize,
    sent: Option<Instant>,
    closed: bool,
}

impl Entry {
    /// Notes the decision that lets the call through. Comes before the call.
    pub(crate) fn sending(&mut self, decision: &str) {
        self.sent = Some(Instant::now());
        self.write(|line| {
            line.decision = decision.to_owned();
            line.outcome = Outcome::InFlight;
        });
    }

    /// Notes that the call was not let through.
    pub(crate) fn denied(mut self, decision: &str) {
        self.closed = true;
        self.write(|line| {
            line.decision = decision.to_owned();
            line.outcome = Outcome::Denied;
        });
    }

    /// Its number in the ledger, from 1.
    pub(crate) fn ordinal(&self) -> usize {
        self.index + 1
    }

    /// Notes that it was answered in its tool's place; the size is that of a
    /// recorded result.
    pub(crate) fn withheld(mut self, decision: &str, result_bytes: Option<usize>) {
        self.closed = true;
        self.write(|line| {
            line.decision = decision.to_owned();
            line.result_bytes = result_bytes;
            line.outcome = match result_bytes {
                Some(_) => Outcome::Recorded,
                None => Outcome::Withheld,
            };
        });
    }

    /// Notes how it ended.
    pub(crate) fn close(mut self, outcome: Outcome, result_bytes: Option<usize>) {
        self.finish(outcome, result_bytes);
    }

    fn finish(&mut self, outcome: Outcome, result_bytes: Option<usize>) {
        self.closed = true;
        let took_ms = self.sent.map(millis);
        self.write(|line| {
            line.outcome = outcome;
            line.result_bytes = result_bytes;
            line.took_ms = took_ms;
        });
    }

    fn write(&self, change: impl FnOnce(&mut LedgerLine)) {
        if let Some(line) = self.ledger.lines().get_mut(self.index) {
            change(line);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.closed {
            self.finish(Outcome::Cancelled, None);
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

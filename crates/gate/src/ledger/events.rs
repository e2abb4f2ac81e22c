//! Events of a run, and the sinks that receive them.

use std::sync::Arc;

use callgate_policy::flow::FlowRules;
use callgate_policy::{Rule, Rules};
use jiff::Timestamp;

use super::call_line::LedgerLine;
use super::file::LedgerError;

/// Receives the events of runs, such as a ledger file.
pub trait LedgerSink: Send + Sync {
    /// Records an event before it returns.
    ///
    /// # Errors
    ///
    /// The event was not recorded. A call whose [`LedgerEvent::CallDecided`] fails is not sent.
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError>;
}

/// An event of a run.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum LedgerEvent<'a> {
    /// A run began.
    RunStarted {
        /// The run's id.
        run: &'a str,
        /// The time of the event.
        time: Timestamp,
        /// The script as it was given; `None` for one call without a script.
        script: Option<&'a str>,
        /// The name and the version of the MCP client; `None` if no MCP client started the run.
        client: Option<&'a str>,
        /// The rules for calls.
        #[doc(hidden)]
        rules: &'a Arc<Rules>,
        /// The rules for data that goes from one server to another.
        #[doc(hidden)]
        flows: &'a Arc<FlowRules>,
    },
    /// A call was allowed and is about to be sent.
    CallDecided(CallEvent<'a>),
    /// A call ended, or was not sent.
    CallEnded(CallEvent<'a>),
    /// A run ended. It has no further events.
    RunEnded {
        /// The run's id.
        run: &'a str,
        /// The time of the event.
        time: Timestamp,
        /// The status, as in the report's JSON form; `lost` if a script's run was dropped before
        /// its report.
        status: &'a str,
        /// Milliseconds since the run began.
        total_ms: u64,
        /// Milliseconds that count against the script-time limit; `None` without a script, and for
        /// a lost run.
        script_ms: Option<u64>,
        /// The number of its calls.
        calls: usize,
        /// The number of calls that were denied.
        denied: usize,
        /// The number of calls that were sent and ended without a result.
        failed: usize,
    },
}

/// A call at the time of an event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallEvent<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The time of the event.
    pub time: Timestamp,
    /// The call's line, as the report has it.
    pub line: &'a LedgerLine,
    /// True if the call was sent before this event.
    pub was_sent: bool,
    /// The rule that decided, or that made the asker be asked.
    #[doc(hidden)]
    pub rule: Option<&'a Rule>,
    /// The arguments as they are sent; `None` if they are not a JSON object.
    pub arguments: Option<&'a str>,
    /// The result as the script gets it, or the whole answer of a failed tool.
    pub result: Option<&'a str>,
}

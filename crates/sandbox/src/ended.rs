//! The end of a run.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::host::jail::Jail;
use crate::wire::{LeftTimer, ScriptException};

/// The result of a run. Every run has exactly one, whatever happened.
#[derive(Debug)]
pub struct Ended {
    /// The reason for the end of the run.
    pub end: End,
    /// The console output of the script.
    pub output: Captured,
    /// The blocks that the script emitted by `mcp.emit`, in order, as JSON. They come from the
    /// worker and are unchecked.
    pub emitted: Vec<Box<RawValue>>,
    /// Timers that never fired, as the worker reports them, at most `LeftTimer::MAX`. If the script
    /// returned: timers of `setInterval` and timers due after the limits. If a limit or the caller
    /// ended the run: timers that the script waited for.
    pub timers: Vec<LeftTimer>,
    /// The jail of the worker; `None` where no script ran.
    pub jail: Option<Jail>,
    /// The script's own time, see [`Limits::script_time`](crate::Limits::script_time).
    pub script_time: Duration,
}

/// The reasons for the end of a run: a returned value, an exception, a limit, a failure, a cancel.
#[derive(Debug)]
pub enum End {
    /// The script returned.
    Returned(Returned),
    /// The script did not catch an exception, or did not handle the rejection of a promise.
    Threw(ScriptException),
    /// A limit was passed.
    Limit {
        /// The limit that was passed.
        which: WhichLimit,
        /// The value of the limit, in its own unit; milliseconds for times.
        limit: u64,
        /// The observed value, in the same unit.
        observed: u64,
    },
    /// The worker died or broke the protocol.
    Crashed {
        /// The known facts about the failure, for a person.
        reason: String,
    },
    /// The worker tried a system call that it may not make, and the kernel killed it. Either native
    /// code in the worker tried to get out, or the filter lacks a call that V8 needs.
    SystemCall {
        /// The name of the call, or its number. Comes from the worker; `None` if it could not say.
        name: Option<String>,
    },
    /// The script waits for a promise that nothing can settle any more.
    NeverSettled,
    /// The caller cancelled the run.
    Cancelled,
    /// No worker could be started.
    NotStarted {
        /// The reason, for a person.
        reason: String,
    },
}

/// The value that a script returned.
#[derive(Debug)]
pub enum Returned {
    /// `undefined`.
    Undefined,
    /// A value as JSON text.
    Json(Box<RawValue>),
    /// A value that JSON cannot express (a function, a BigInt, a cycle, a Map, a Set, an error), as
    /// the console shows it.
    Shown(String),
    /// A value over [`Limits::result_bytes`](crate::Limits::result_bytes).
    Cut {
        /// The beginning of its text.
        head: String,
        /// The end of its text.
        tail: String,
        /// Bytes of its whole text, as the worker says.
        total_bytes: u64,
        /// The whole text, where [`Limits::whole_bytes`](crate::Limits::whole_bytes) has room for
        /// it.
        whole: Option<String>,
    },
}

impl Ended {
    /// The end of a run whose script did nothing.
    pub fn without_script(end: End) -> Self {
        Self {
            end,
            output: Captured::default(),
            emitted: Vec::new(),
            timers: Vec::new(),
            jail: None,
            script_time: Duration::ZERO,
        }
    }
}

/// The limits that end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhichLimit {
    /// [`Limits::script_time`](crate::Limits::script_time), in milliseconds.
    ScriptTime,
    /// [`Limits::run_time`](crate::Limits::run_time), in milliseconds.
    RunTime,
    /// [`Limits::heap_bytes`](crate::Limits::heap_bytes).
    Memory,
    /// [`Limits::calls`](crate::Limits::calls).
    Calls,
    /// Entries that V8 can hold in one array or table. No setting changes it.
    Entries,
}

/// The console output of a script: the head, the size of the part cut after it, the tail.
///
/// Messages end with a line feed. When nothing was cut, `head` followed by `tail` is everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The beginning.
    pub head: String,
    /// The end.
    pub tail: String,
    /// Bytes cut between the two.
    pub cut_bytes: u64,
    /// Line feeds in the part that was cut.
    pub cut_lines: u64,
    /// The whole output, if a part was cut and [`Limits::whole_bytes`](crate::Limits::whole_bytes)
    /// has room for the whole. With less room: the beginning that fits, a line with the number of
    /// missing bytes, and the tail.
    pub whole: Option<String>,
}

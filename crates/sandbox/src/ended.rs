//! The end of a run.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::host::jail::Jail;
use crate::wire::{LeftTimer, ScriptException};

/// The result of a run. Every run has exactly one, whatever happened.
#[derive(Debug)]
pub struct Ended {
    pub end: End,
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
    Returned(Returned),
    /// An exception was not caught, or the rejection of a promise was not handled.
    Threw(ScriptException),
    Limit {
        which: WhichLimit,
        /// In the unit of the limit; milliseconds for times.
        limit: u64,
        /// In the same unit.
        observed: u64,
    },
    /// The worker died or broke the protocol.
    Crashed {
        reason: String,
    },
    /// The worker tried a system call that it may not make, and the kernel killed it. Either native
    /// code in the worker tried to get out, or the filter lacks a call that V8 needs.
    SystemCall {
        /// The name of the call, or its number. Comes from the worker; `None` if it reported none.
        name: Option<String>,
    },
    /// The script waits for a promise that nothing can settle any more.
    NeverSettled,
    Cancelled,
    /// No worker could be started.
    NotStarted {
        reason: String,
    },
}

/// The value that a script returned.
#[derive(Debug)]
pub enum Returned {
    Undefined,
    Json(Box<RawValue>),
    /// A value that JSON cannot express (a function, a BigInt, a cycle, a Map, a Set, an error), as
    /// the console shows it.
    Shown(String),
    /// A value over [`Limits::result_bytes`](crate::Limits::result_bytes).
    Cut {
        head: String,
        tail: String,
        /// Bytes of its whole text, as the worker reports them.
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
    /// [`Limits::wait_time`](crate::Limits::wait_time), in milliseconds.
    WaitTime,
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
    pub head: String,
    pub tail: String,
    /// True if all of the tail is for standard error.
    pub tail_is_error: bool,
    /// Bytes cut between the two.
    pub cut_bytes: u64,
    /// Line feeds in the part that was cut.
    pub cut_lines: u64,
    /// The whole output, if a part was cut and [`Limits::whole_bytes`](crate::Limits::whole_bytes)
    /// has room for the whole. With less room: the first part that fits, a line with the number of
    /// missing bytes, and the tail.
    pub whole: Option<String>,
}

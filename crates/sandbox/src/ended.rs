//! The end of a run.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::host::jail::Jail;
use crate::wire::{LeftTimer, ScriptException};

/// The end of a run. There is exactly one for every run, whatever happened.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// What the script printed.
    pub output: Captured,
    /// What it handed to its caller by `mcp.emit`, in order, as JSON. All of it comes from the
    /// worker, and nothing more is known about it.
    pub emitted: Vec<Box<RawValue>>,
    /// Timers that never fired: where a script has returned, those of `setInterval` and those that
    /// are due after the limits; where a limit or the caller ended the run, those that it waited for. As the worker says,
    /// and at most `LeftTimer::MAX`.
    pub timers: Vec<LeftTimer>,
    /// The jail of the worker; `None` where no script ran.
    pub jail: Option<Jail>,
    /// The script's own time, see [`Limits::script_time`](crate::Limits::script_time).
    pub script_time: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// The script returned.
    Returned(Returned),
    /// The script threw something it did not catch, or a promise it left alone was rejected.
    Threw(ScriptException),
    /// A limit was passed.
    Limit {
        /// Which one.
        which: WhichLimit,
        /// Its value, in the unit of the limit; milliseconds for times.
        limit: u64,
        /// What was observed, in the same unit.
        observed: u64,
    },
    /// The worker broke: it died, or it sent what no worker sends.
    Crashed {
        /// What is known about it, for a person.
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
        /// Why, for a person.
        reason: String,
    },
}

/// What a script returned.
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

/// What a script printed: the head, what was cut out of the middle, the tail.
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
    /// Line feeds in what was cut.
    pub cut_lines: u64,
    /// All of it, where something was cut and
    /// [`Limits::whole_bytes`](crate::Limits::whole_bytes) has room for it; else as much of the
    /// beginning as has, a line that says how much is missing, and the tail.
    pub whole: Option<String>,
}

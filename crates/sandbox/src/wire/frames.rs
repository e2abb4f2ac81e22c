//! The frames, as values.

use callgate_script::MappedRange;
use serde::{Deserialize, Serialize};

/// A frame from the host to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostFrame {
    /// Read this text, which is answered with [`WorkerFrame::Read`]. Sent before
    /// [`HostFrame::Start`], and also to a worker that is not [ready](WorkerFrame::Ready).
    Read(Read),
    /// Run this script. Sent once, after [`WorkerFrame::Ready`].
    Start(Start),
    /// The answer to one call.
    Reply(Reply),
}

/// A frame from a worker to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerFrame {
    /// The isolate is up and the jail is shut. The first frame of a worker.
    Ready(Ready),
    /// The outcome of parsing a text.
    Read {
        /// The parser's `Result` as JSON text, unchecked except for UTF-8.
        outcome: String,
    },
    /// The script calls a function.
    Call(Call),
    /// The script no longer waits for a call. The host drops the call without an answer, and
    /// ignores the frame if the call is answered already or was never made.
    Cancel { call: u64 },
    /// A message of the console with its line feed, or the first part of one that continues in the
    /// tail.
    Output { text: String, is_error: bool },
    /// Output after the head, up to [`WorkerLimits::more_bytes`]. The tail can have the same text
    /// again.
    More { text: String, is_error: bool },
    /// The script passes a block to its caller.
    Emit {
        /// JSON text, unchecked except for UTF-8.
        block: String,
    },
    /// The tail of the output; sent once, before `Done`, or when the script is stopped.
    OutputEnd(OutputEnd),
    /// The worker reached one of its own limits, and is about to end.
    LimitHit(LimitHit),
    /// The script has ended. The last frame of a worker.
    Done(Done),
}

/// The kernel layers that a worker has put around itself, and the memory it has so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ready {
    /// ABI version of Landlock; 0 where Landlock is not in force.
    pub landlock: u8,
    /// True if both seccomp filters are in force.
    pub seccomp: bool,
    /// Namespaces of the worker's own, as bits: user 1, net 2, ipc 4, uts 8.
    pub namespaces: u8,
    /// True if V8 protects its machine code by memory protection keys.
    pub protection_keys: bool,
    /// Bytes of private writable memory of the process: the amount that `RLIMIT_DATA` bounds.
    pub data_bytes: u64,
    /// Bytes of its address space: the amount that `RLIMIT_AS` bounds.
    pub space_bytes: u64,
}

/// A text to parse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    pub what: Readable,
    pub text: String,
}

/// The kinds of text that a worker parses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Readable {
    Script,
    /// A TypeScript type, of which a JSON Schema is to be made.
    Type,
}

/// The script and the settings that a worker needs to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub source_name: String,
    pub functions: Vec<String>,
    /// Ranges of `code` and their places in the author's text, in order.
    pub source_map: Vec<MappedRange>,
    pub limits: WorkerLimits,
    pub input: ScriptInput,
    /// JavaScript expression text whose value is the function to call.
    pub code: String,
}

/// The data that a script gets at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptInput {
    /// `mcp.args`.
    pub args: Vec<String>,
    /// `mcp.stdin`.
    pub stdin: String,
}

/// The limits that a worker enforces. The host enforces them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLimits {
    /// Console output that is kept, head and tail together.
    pub output_bytes: u64,
    pub output_lines: u64,
    pub message_bytes: u64,
    pub depth: u32,
    /// Bytes that follow the head of the output and are sent in any case.
    pub more_bytes: u64,
    pub emits: u64,
    pub emit_bytes: u64,
    /// Bytes of the return value that are kept; over it, half as head and half as tail.
    pub result_bytes: u64,
    /// Bytes that a frame may have, in either direction.
    pub frame_bytes: u64,
    pub buffer_bytes: u64,
    /// Milliseconds of script time. The host alone ends a script that passes it.
    pub script_ms: u64,
    pub run_ms: u64,
}

/// A call that a script makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the worker, to match the reply.
    pub id: u64,
    /// Time limit that the script sets, in milliseconds; `None` for the host's own.
    pub timeout_ms: Option<u64>,
    /// True if a [`WorkerFrame::Cancel`] may follow; otherwise the host ignores such a frame.
    pub cancellable: bool,
    /// Line and column of the call in the author's text, from 1, if the worker knows them. A hint
    /// for a person: the text may have no such place.
    pub place: Option<(u32, u32)>,
    /// Name of the function, unchecked.
    pub tool: String,
    /// The input as JSON text, unchecked except for UTF-8.
    pub input: String,
}

/// The answer to a [`Call`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub call: u64,
    /// JSON text of the result, or the error to throw in the script.
    pub outcome: Result<String, Thrown>,
}

/// An error that a script can catch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    pub class: ErrorClass,
    pub message: String,
    /// JSON text of an object whose members are assigned to the error: `tool`, `server`, ….
    pub fields: String,
}

/// The classes of error that a call can throw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ErrorClass {
    /// `McpToolError`: the tool ran and reported a failure.
    Tool,
    /// `McpProtocolError`: the server, or the connection to it, failed.
    Protocol,
    /// `McpTimeoutError`: no answer in time.
    Timeout,
    /// `McpDeniedError`: the policy or a person denied the call.
    Denied,
    /// `McpDryRunError`: the call was not made, because this is a dry run.
    DryRun,
    /// `McpExtractError`: `mcp.extract` has no value that fits the schema.
    Extract,
}

/// The end of the console output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputEnd {
    /// Bytes between head and tail that were dropped.
    pub cut_bytes: u64,
    /// Lines between head and tail that were dropped, whole or in part.
    pub cut_lines: u64,
    /// Bytes that were left out within messages, and are in none of the frames.
    pub missing_bytes: u64,
    /// Timers that were still set, the next to fire first; at most [`LeftTimer::MAX`].
    pub timers: Vec<LeftTimer>,
    /// The tail: whole messages, each ended by a line feed.
    pub tail: String,
    /// True if all of the tail is for standard error.
    pub is_error: bool,
}

/// A timer that was still set when the script ended or was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftTimer {
    /// True if it is one of `setInterval`.
    pub repeats: bool,
    /// Line in the author's text where it was set, from 1; 0 when it is not known.
    pub line: u32,
}

impl LeftTimer {
    /// Maximum number of timers in a report.
    pub const MAX: usize = 8;
}

/// The memory limit that was passed in the worker: of the heap, or of the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    pub limit: u64,
    pub observed: u64,
}

/// The end of a script: a value, an exception, an endless wait, or a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    Returned(ReturnValue),
    /// The script threw, or its code could not be compiled.
    Threw(ScriptException),
    /// The script waits for an event that can never happen.
    NeverSettled,
    /// The host or a limit of the worker stopped the script.
    Terminated,
}

/// The value that a script returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReturnValue {
    Undefined,
    Json(String),
    /// A value that JSON cannot express, as the console shows it.
    Shown(String),
    /// JSON text, or a shown value, that was too long.
    Cut {
        head: String,
        tail: String,
        total_bytes: u64,
    },
}

/// An exception that a script did not catch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScriptException {
    /// The error's name; empty if the thrown value is not an error.
    pub name: String,
    /// The error's message, or the thrown value as the console shows it.
    pub message: String,
    /// Line in the author's text, from 1; 0 when not known.
    pub line: u32,
    /// Column in that line, from 1; 0 when not known.
    pub column: u32,
    /// Class and message in one line, then the frames in the author's lines, and the same with
    /// `Caused by:` for each cause; may be empty.
    pub stack: String,
}

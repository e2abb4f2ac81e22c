//! A job: one script and its limits.

use std::time::Duration;

use callgate_script::MappedRange;

use crate::wire::ScriptInput;

/// One script to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// Name of the script in stacks and messages, such as `script.ts`.
    pub source_name: String,
    /// JavaScript expression text whose value is an async function without parameters. It is
    /// evaluated as a classic script, the function is called, and its promise is awaited.
    pub code: String,
    /// Source map: ranges of `code` and their places in the author's text, in order. Stacks and
    /// positions have the author's lines; frames of other code are left out.
    pub source_map: Vec<MappedRange>,
    /// Names of the functions to define in the global scope.
    pub functions: Vec<String>,
    pub input: ScriptInput,
    pub limits: Limits,
}

/// Bytes that an error may always have, even if [`Limits::reply_bytes`] is lower, so that a script
/// can learn why it has no result.
pub const ERROR_BYTES: usize = 16 << 10;

/// The limits of one run.
///
/// A limit that is passed ends the run, unless its description
/// says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time in which the script computes. Default 10 s.
    ///
    /// That is the time in which the worker's main thread runs or waits for a processor, or half
    /// the processor time of all its threads, if that is more. Waiting for calls and timers does not
    /// count. Where the kernel does not tell this, wall time counts while no call is under way.
    /// The script is stopped within 250 ms more. Does not cover the start of the worker. Parsing the
    /// script may take as much time of a processor besides.
    pub script_time: Duration,
    /// Time that the script may wait for timers alone, since its last call ended. Default 5 min.
    pub wait_time: Duration,
    /// Wall time of the whole run, with all waiting but the time in which every open call waits for
    /// approval. Default 1 h.
    pub run_time: Duration,
    /// Bytes of the JavaScript heap. Default 128 MiB, at least 16 MiB.
    ///
    /// Does not cover array buffers, and some of V8's own memory.
    pub heap_bytes: u64,
    /// Bytes of all array buffers together. Default 128 MiB. Passing it ends the run like
    /// `heap_bytes`. There are no resizable buffers: V8 would not ask for their memory.
    pub buffer_bytes: u64,
    /// Bytes of console output that are kept: half as the head, half as the tail. Default 16 KiB.
    /// Over it the run goes on, and the cut bytes are counted.
    pub output_bytes: u64,
    /// Lines of console output that are kept, in the same way. Default 2048.
    pub output_lines: u64,
    /// Bytes that are kept besides head and tail where the output, or the returned value, is cut.
    /// Default 0.
    pub whole_bytes: u64,
    /// True if the host keeps the output that fits into `whole_bytes`. Default true. Otherwise the
    /// output past the head only goes to events of the run.
    pub keeps_whole: bool,
    /// Blocks that a script may emit. Default 64. Over it `mcp.emit` throws.
    pub emits: u64,
    /// Bytes of all emitted blocks, as JSON text. Default 8 MiB. Over it `mcp.emit` throws.
    pub emit_bytes: u64,
    /// Approximate maximum bytes of one console message; over it, its middle or its end is left
    /// out. Default 64 KiB, at least `output_bytes`.
    pub message_bytes: u64,
    /// Levels of nesting that the console shows of a value. Default 8.
    pub depth: u32,
    /// Bytes of the returned value's JSON that are kept; over it, half as head and half as tail.
    /// Default 16 KiB.
    pub result_bytes: u64,
    /// Bytes of one call's input as JSON text. Default 16 MiB. Over it the call throws. A call also
    /// throws if the inputs of all unanswered calls exceed 64 MiB together; a single one may.
    pub input_bytes: u64,
    /// Bytes of one call's result as JSON text. Default 256 MiB. Over it the call throws
    /// `McpProtocolError`. A call also throws if the results that a script has not read yet exceed
    /// 256 MiB together. V8 takes no string of more than about 512 MiB.
    pub reply_bytes: u64,
    /// Calls that are under way at the same time. Default 1000. Further calls wait.
    pub calls_in_flight: u32,
    /// Calls of the whole run. Default 10000.
    pub calls: u64,
    /// True if V8 may compile to machine code. Default true. Without a compiler, scripts that compute
    /// are many times slower, and attacks on the compiler are impossible.
    pub jit: bool,
}

impl Limits {
    /// Keeps `bytes` of console output and of the returned value, and a line of output for every 8
    /// bytes, as the defaults do.
    pub fn keep_output(&mut self, bytes: u64) {
        self.output_bytes = bytes;
        self.output_lines = bytes.div_ceil(8);
        self.result_bytes = bytes;
    }

    /// Passes the console output on as it is printed, up to `bytes` with its tail, and keeps `bytes`
    /// of the returned value. Head and tail have at most the sizes of the defaults.
    pub fn pass_output_on(&mut self, bytes: u64) {
        self.output_bytes = bytes.min(Self::default().output_bytes);
        self.output_lines = u64::MAX;
        self.whole_bytes = bytes - self.output_bytes;
        self.keeps_whole = false;
        self.message_bytes = self.message_bytes.max(bytes);
        self.result_bytes = bytes;
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            script_time: Duration::from_secs(10),
            wait_time: Duration::from_secs(300),
            run_time: Duration::from_secs(3600),
            heap_bytes: 128 << 20,
            buffer_bytes: 128 << 20,
            output_bytes: 16 << 10,
            output_lines: 2048,
            whole_bytes: 0,
            keeps_whole: true,
            emits: 64,
            emit_bytes: 8 << 20,
            message_bytes: 64 << 10,
            depth: 8,
            result_bytes: 16 << 10,
            input_bytes: 16 << 20,
            reply_bytes: 256 << 20,
            calls_in_flight: 1000,
            calls: 10_000,
            jit: true,
        }
    }
}

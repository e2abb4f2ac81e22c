//! The protocol between host and worker, without the frames: the worker's command line, stop signal
//! and error texts.

use super::Readable;

/// The name a worker process gets as its argument 0.
pub const WORKER_NAME: &str = "callgate-worker";

/// The first argument of a worker process.
pub const WORKER_ARGUMENT: &str = "--callgate-sandbox-worker";

/// The version, and a hash of the sources of worker and host. It must be the same at both ends,
/// because the protocol is not negotiated.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("CALLGATE_SOURCES"));

/// Settings that must be known before the isolate is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the JavaScript heap.
    pub heap_bytes: u64,
    pub jit: Jit,
    /// The kernel layers of the jail, as bits.
    pub layers: u8,
}

/// The ways in which V8 makes machine code, the fastest first; the last works everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Jit {
    /// V8 compiles, and protects code by memory protection keys where the processor has them.
    Keys,
    /// V8 compiles to pages that stay writable, or changes their permissions.
    NoKeys,
    /// V8 interprets.
    Off,
}

impl Jit {
    const ALL: [Self; 3] = [Self::Keys, Self::NoKeys, Self::Off];

    /// The next simpler way.
    pub fn next(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }
}

impl Settings {
    /// The arguments of a worker: its settings, and the id of this process, its host.
    pub fn to_arguments(self) -> [String; 6] {
        [
            WORKER_ARGUMENT.to_owned(),
            BUILD.to_owned(),
            self.heap_bytes.to_string(),
            (self.jit as u8).to_string(),
            self.layers.to_string(),
            std::process::id().to_string(),
        ]
    }

    /// Reads settings and the host's process id from the arguments after the build.
    pub fn from_arguments(numbers: &[u64]) -> Option<(Self, u32)> {
        let &[heap_bytes, jit, layers, host] = numbers else {
            return None;
        };
        let settings = Self {
            heap_bytes,
            jit: *Jit::ALL.get(usize::try_from(jit).ok()?)?,
            layers: u8::try_from(layers).ok()?,
        };
        Some((settings, u32::try_from(host).ok()?))
    }
}

/// The signal by which the host asks a worker to stop.
pub const STOP_SIGNAL: libc::c_int = libc::SIGTERM;

/// Prefix of the line of standard error with the number of a refused system call.
pub const REFUSED_CALL: &str = "refused system call ";

/// Maximum bytes of the JSON that a worker's parser makes of a text.
pub fn max_read_bytes(what: Readable) -> usize {
    match what {
        // Reprinted code may be much longer than the text: it repeats constants where they are used.
        Readable::Script => 64 << 20,
        // The text is short.
        Readable::Type => 1 << 20,
    }
}

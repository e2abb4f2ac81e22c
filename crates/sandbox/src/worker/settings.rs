//! Settings that a worker gets on its command line.

/// The name a worker process gets as its argument 0.
pub(crate) const WORKER_NAME: &str = "callgate-worker";

/// The first argument of a worker process.
pub(super) const WORKER_ARGUMENT: &str = "--callgate-sandbox-worker";

/// The version and a hash of the sources that worker and host are built from. They must be the
/// same at both ends, because the meaning of the frames is not negotiated.
pub(super) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("CALLGATE_SOURCES"));

/// Settings that must be known before the isolate is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes of the JavaScript heap.
    pub(crate) heap_bytes: u64,
    /// The way in which V8 makes machine code.
    pub(crate) jit: Jit,
    /// The kernel layers of the jail, as bits.
    pub(crate) layers: u8,
}

/// The ways in which V8 makes machine code, the fastest first; the last one works everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Jit {
    /// V8 compiles, and protects code by memory protection keys where the processor has them.
    Keys,
    /// V8 compiles to pages that stay writable or whose rights it changes.
    NoKeys,
    /// V8 interprets.
    Off,
}

impl Jit {
    const ALL: [Self; 3] = [Self::Keys, Self::NoKeys, Self::Off];

    /// The next simpler way.
    pub(crate) fn next(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }
}

impl Settings {
    /// The arguments that tell a worker its settings, and the id of this process, its host.
    pub(crate) fn to_arguments(self) -> [String; 6] {
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
    pub(super) fn from_arguments(numbers: &[u64]) -> Option<(Self, u32)> {
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

/// Ends the process without running destructors: taking V8 down in order would take longer than
/// the run of a small script.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

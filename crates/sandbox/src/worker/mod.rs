//! The worker: one process, one isolate, one script.

mod buffers;
mod calls;
mod capture;
mod channel;
mod emits;
mod failures;
mod isolate;
mod jail;
mod reading;
mod rejections;
mod replies;
mod timers;
mod waiting;

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use jail::Jail;

pub(crate) use jail::{Layers, REFUSED_CALL, STOP_SIGNAL};
pub(crate) use reading::outcome_bytes;

/// The first argument of a worker process.
pub(crate) const WORKER_ARGUMENT: &str = "--callgate-sandbox-worker";

/// The version and a hash of the sources that a worker and its host are built from. They must be
/// the same at both ends: what the frames mean is not negotiated.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("CALLGATE_SOURCES"));

/// The name a worker process gets as its argument 0.
pub(crate) const WORKER_NAME: &str = "callgate-worker";

/// Standard input is the socket to the host: the one descriptor that every way to start a process
/// hands on, so that no other has to be inherited.
const SOCKET: i32 = 0;

/// Becomes a worker if this process was started as one, and then never returns.
///
/// A host that uses its own executable for the workers calls this first thing in `main`, before any
/// thread is started. It returns at once unless argument 0 and 1 are the ones a host gives, and
/// standard input is a socket.
pub fn worker_main_if_requested() {
    become_worker_if_requested(None);
}

/// Native code in place of a script, for tests of the jail: it gets the code of the script, and its
/// answer is the JSON that the run returns.
#[doc(hidden)]
pub type NativeCode = fn(&str) -> String;

/// As [`worker_main_if_requested`], for a worker that runs native code in place of scripts, as one
/// does that a script has taken over.
#[doc(hidden)]
pub fn native_worker_main_if_requested(code: NativeCode) {
    become_worker_if_requested(Some(code));
}

fn become_worker_if_requested(code: Option<NativeCode>) {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != WORKER_NAME)
        || arguments
            .next()
            .is_none_or(|argument| argument != WORKER_ARGUMENT)
    {
        return;
    }
    if arguments.next().is_none_or(|build| build != BUILD) {
        fail(
            "the worker program and its host are not from the same build; install them together, \
             and restart a host that was replaced while it ran",
        );
    }
    let settings: Option<Vec<u64>> = arguments
        .map(|a| a.to_str().and_then(|a| a.parse().ok()))
        .collect();
    let (Some(settings), true) = (
        settings.as_deref().and_then(Settings::of_arguments),
        is_socket(SOCKET),
    ) else {
        return;
    };
    run(settings, code)
}

/// What must be known before the isolate is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes of the JavaScript heap.
    pub(crate) heap_bytes: u64,
    /// How V8 makes machine code.
    pub(crate) jit: Jit,
    /// The kernel layers of the jail.
    pub(crate) layers: Layers,
}

/// How V8 makes machine code, from the fastest way to the one that works everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Jit {
    /// It does, protected by memory protection keys where the processor has them.
    Keys,
    /// It does, in pages that stay writable or whose rights it changes.
    NoKeys,
    /// It interprets.
    Off,
}

impl Jit {
    const ALL: [Self; 3] = [Self::Keys, Self::NoKeys, Self::Off];

    /// The next simpler way.
    pub(crate) fn next(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }

    pub(crate) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Whether V8 is to use protection keys where there are any.
    pub(crate) fn uses_keys(self) -> bool {
        self == Self::Keys
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
            self.layers.bits().to_string(),
            std::process::id().to_string(),
        ]
    }

    /// Settings and host, of the arguments after the build; `None` if they are not a worker's.
    fn of_arguments(numbers: &[u64]) -> Option<(Self, u32)> {
        let &[heap_bytes, jit, layers, host] = numbers else {
            return None;
        };
        let settings = Self {
            heap_bytes,
            jit: *Jit::ALL.get(usize::try_from(jit).ok()?)?,
            layers: Layers::from_bits(u8::try_from(layers).ok()?),
        };
        Some((settings, u32::try_from(host).ok()?))
    }
}

fn run((settings, host): (Settings, u32), code: Option<NativeCode>) -> ! {
    let jail = Jail::enter(settings, host).unwrap_or_else(|step| {
        fail(&format!("the worker cannot shut itself in: {step}"));
    });
    // SAFETY: the descriptor is open, as `is_socket` found, and stays so for the whole process.
    let socket = unsafe { BorrowedFd::borrow_raw(SOCKET) };
    let code = match socket.try_clone_to_owned() {
        Ok(socket) => isolate::run(UnixStream::from(socket), settings, jail, code),
        Err(_) => 1,
    };
    exit(code)
}

/// Ends a worker that cannot begin. The host reads the message from standard error.
fn fail(message: &str) -> ! {
    let message = format!("{message}\n");
    // SAFETY: writes the message, which lives through the call.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
    exit(1)
}

/// Ends the process without running any destructor: V8 is not taken down in order, which would take
/// longer than the run of a small script.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

fn is_socket(fd: i32) -> bool {
    let mut domain: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointers are to live values of the sizes given.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_DOMAIN,
            (&raw mut domain).cast(),
            &raw mut length,
        )
    };
    result == 0 && domain == libc::AF_UNIX
}

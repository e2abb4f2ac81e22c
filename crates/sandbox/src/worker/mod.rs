//! The worker: one process, one isolate, one script.

mod buffers;
mod calls;
mod capture;
mod channel;
mod emits;
mod isolate;
mod lock_down;
mod reading;
mod replies;
mod waiting;

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

pub(crate) use lock_down::STOP_SIGNAL;
pub(crate) use reading::outcome_bytes;

/// The first argument of a worker process.
pub(crate) const WORKER_ARGUMENT: &str = "--callgate-sandbox-worker";

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
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != WORKER_NAME)
        || arguments
            .next()
            .is_none_or(|argument| argument != WORKER_ARGUMENT)
    {
        return;
    }
    let settings: Option<Vec<u64>> = arguments
        .map(|a| a.to_str().and_then(|a| a.parse().ok()))
        .collect();
    let (Some([heap_bytes, jit]), true) = (settings.as_deref(), is_socket(SOCKET)) else {
        return;
    };
    run(Settings {
        heap_bytes: *heap_bytes,
        jit: *jit != 0,
    })
}

/// What must be known before the isolate is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Bytes of the JavaScript heap.
    pub(crate) heap_bytes: u64,
    /// Whether V8 may compile to machine code.
    pub(crate) jit: bool,
}

impl Settings {
    /// The arguments that say so to a worker.
    pub(crate) fn to_arguments(self) -> [String; 3] {
        [
            WORKER_ARGUMENT.to_owned(),
            self.heap_bytes.to_string(),
            u64::from(self.jit).to_string(),
        ]
    }
}

fn run(settings: Settings) -> ! {
    lock_down::lock_down();
    // SAFETY: the descriptor is open, as `is_socket` found, and stays so for the whole process.
    let socket = unsafe { BorrowedFd::borrow_raw(SOCKET) };
    let code = match socket.try_clone_to_owned() {
        Ok(socket) => isolate::run(UnixStream::from(socket), settings),
        Err(_) => 1,
    };
    exit(code)
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

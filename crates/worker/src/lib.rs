//! Internal crate of Callgate: the worker program. One process, one isolate, one script.
//!
//! It knows no MCP: a call is a function name and JSON text over the socket to the host, which is
//! `callgate-sandbox`. The jail is entered before V8 starts, and shut before a script arrives.

mod buffer_limit;
mod console;
mod emits;
mod failures;
mod host_channel;
mod isolate;
mod isolate_link;
mod jail;
mod open_calls;
mod ops;
mod parse;
mod rejections;
mod replies;
mod timers;

use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use callgate_sandbox::wire::{BUILD, Settings, WORKER_ARGUMENT, WORKER_NAME};

use failures::exit;
#[doc(hidden)]
pub use isolate::NativeCode;
use jail::Jail;

/// The descriptor of the socket to the host: standard input, which a child always inherits.
const SOCKET: i32 = 0;

/// Turns this process into a worker if it was started as one, and then never returns.
///
/// A host that uses its own executable for the workers calls this first in `main`, before any thread
/// is started. It returns at once unless the arguments 0 and 1 are those of a worker and standard
/// input is a socket.
pub fn worker_main_if_requested() {
    become_worker_if_requested(None);
}

/// [`worker_main_if_requested`] with native code in place of scripts, as in a worker that a script
/// has taken over.
#[doc(hidden)]
pub fn native_worker_main_if_requested(code: NativeCode) {
    become_worker_if_requested(Some(code));
}

fn become_worker_if_requested(code: Option<NativeCode>) {
    let mut arguments = std::env::args_os();
    if arguments.next().is_none_or(|name| name != WORKER_NAME)
        || arguments
            .next()
            .is_none_or(|first| first != WORKER_ARGUMENT)
    {
        return;
    }
    if arguments.next().is_none_or(|build| build != BUILD) {
        fail(
            "the worker program and its host are not from the same build; install them together, \
             and restart a host that was replaced while it ran",
        );
    }
    let numbers: Option<Vec<u64>> = arguments
        .map(|argument| argument.to_str()?.parse().ok())
        .collect();
    if let Some((settings, host)) = numbers.and_then(|numbers| Settings::from_arguments(&numbers))
        && is_socket(SOCKET)
    {
        run(settings, host, code);
    }
}

fn run(settings: Settings, host: u32, code: Option<NativeCode>) -> ! {
    let jail = Jail::enter(settings, host).unwrap_or_else(|step| {
        fail(&format!("the worker cannot enter its jail: {step}"));
    });
    // SAFETY: the descriptor is open, as `is_socket` found, and stays so for the whole process.
    let socket = unsafe { BorrowedFd::borrow_raw(SOCKET) };
    let code = match socket.try_clone_to_owned() {
        Ok(socket) => isolate::run(UnixStream::from(socket), settings, jail, code),
        Err(_) => 1,
    };
    exit(code)
}

/// Ends a worker that cannot start. The host reads the message from standard error.
fn fail(message: &str) -> ! {
    let message = format!("{message}\n");
    // SAFETY: writes the message, which lives through the call.
    unsafe { libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len()) };
    exit(1)
}

fn is_socket(fd: i32) -> bool {
    let mut address = std::mem::MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointers are to live values of the sizes given; zeros are a valid address.
    unsafe {
        let named = libc::getsockname(fd, address.as_mut_ptr().cast(), &raw mut length);
        named == 0 && i32::from(address.assume_init().ss_family) == libc::AF_UNIX
    }
}

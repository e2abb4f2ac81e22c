//! The process of the native TypeScript: an empty environment, no way to write
//! files, and gone when the host is.

use std::io;
use std::path::Path;

use callgate_process::{Child, Command, Stream};

/// Memory that it may take for its data: a type can be made as large as one
/// likes.
#[cfg(target_os = "linux")]
const MAX_DATA: u64 = 2 << 30;

/// Starts the program with piped input and output. Dropping the child kills it.
pub(crate) async fn start(program: &Path, args: &[&str]) -> io::Result<Child> {
    let command = Command::new(program)
        .args(args)
        .environment(ENVIRONMENT.iter().copied())
        .folder("/")
        .streams(Stream::Piped, Stream::Piped, Stream::Null);
    #[cfg(target_os = "linux")]
    let command = confine(command);
    callgate_process::spawn(command).await
}

/// What the Go runtime is told: to collect less often while little is used.
/// A check is over before most of what it made is of no use any more.
const ENVIRONMENT: &[(&str, &str)] = &[("GOGC", "400")];

/// Limits the process's resources, and keeps it from gaining privileges.
#[cfg(target_os = "linux")]
fn confine(command: Command) -> Command {
    let limits = [
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_FSIZE, 0),
        (libc::RLIMIT_NOFILE, 64),
        (libc::RLIMIT_DATA, MAX_DATA),
    ];
    let enter = move || {
        let limited = limits.iter().all(|(resource, most)| {
            let limit = libc::rlimit {
                rlim_cur: *most,
                rlim_max: *most,
            };
            // SAFETY: setrlimit reads the one struct that the pointer is to.
            unsafe { libc::setrlimit(*resource, &raw const limit) == 0 }
        });
        // SAFETY: this prctl takes numbers only.
        let confined = limited && unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 };
        confined.then_some(()).ok_or_else(io::Error::last_os_error)
    };
    // SAFETY: the code makes system calls only and allocates nothing.
    unsafe { command.before_exec(enter) }
}

//! The process of the native TypeScript: an empty environment, no way to write
//! files, and gone when the host is.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// Memory that it may take for its data: a type can be made as large as one
/// likes.
const MAX_DATA: u64 = 2 << 30;

/// Starts the program with piped input and output. Dropping the child kills it.
pub(crate) async fn start(program: &Path, args: &[&str]) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .args(args.iter().map(OsStr::new))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .current_dir("/")
        .env_clear()
        .envs(ENVIRONMENT.iter().copied())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(target_os = "linux")]
    confine(&mut command);
    callgate_process::spawn(command).await
}

/// What the Go runtime is told: to collect less often while little is used.
/// A check is over before most of what it made is of no use any more.
const ENVIRONMENT: &[(&str, &str)] = &[("GOGC", "400")];

/// Has the kernel bound the process.
#[cfg(target_os = "linux")]
fn confine(command: &mut Command) {
    let set_up = || {
        let limits = [
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_NOFILE, 64),
            (libc::RLIMIT_DATA, MAX_DATA),
        ];
        for (which, most) in limits {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            // SAFETY: setrlimit reads the struct that the pointer is to, and may
            // be called between fork and exec.
            if unsafe { libc::setrlimit(which, &limit) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // What other code of the host left open is none of its business. Where the
        // kernel does not know the call, that code has to mind its descriptors.
        // SAFETY: close_range with this flag only marks descriptors, which the
        // child has for its own, and it may be called between fork and exec.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
        }
        // SAFETY: prctl with these arguments reads no memory of ours, and may be
        // called between fork and exec.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls and builds errors from
    // numbers, which allocates nothing.
    unsafe {
        command.pre_exec(set_up);
    }
}

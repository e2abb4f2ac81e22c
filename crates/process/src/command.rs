//! A command: a program and everything it is started with.

use std::ffi::{OsStr, OsString};
use std::io;
#[cfg(unix)]
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use crate::Child;

/// A program and everything it is started with. It gets a session of its own,
/// so that it has no terminal, and no descriptors but its three streams.
#[derive(Debug)]
pub struct Command(std::process::Command);

/// One of a process's standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `/dev/null`.
    Null,
    /// A pipe whose other end is in [`Child`].
    Piped,
}

impl Command {
    /// A program, which is looked for in the `PATH` of the environment that it
    /// is given unless its name contains a slash. It inherits environment and
    /// folder, and its streams are `/dev/null`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = std::process::Command::new(program);
        #[cfg(unix)]
        {
            let host = std::process::id();
            // SAFETY: `detach` makes system calls with numbers only.
            unsafe {
                command.pre_exec(move || detach(host));
            }
        }
        Self(command).streams(Stream::Null, Stream::Null, Stream::Null)
    }

    /// Sets its arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.0.args(arguments);
        self
    }

    /// Sets its whole environment. Of two values of one name, the last counts.
    #[must_use]
    pub fn environment<K: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.0
            .env_clear()
            .envs(variables.map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sets its working directory, from which a relative path to the program is
    /// looked up, too.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// Sets its standard input, output and error.
    #[must_use]
    pub fn streams(mut self, input: Stream, output: Stream, error: Stream) -> Self {
        let stdio = |stream| match stream {
            Stream::Null => Stdio::null(),
            Stream::Piped => Stdio::piped(),
        };
        self.0
            .stdin(stdio(input))
            .stdout(stdio(output))
            .stderr(stdio(error));
        self
    }

    /// Adds code that the child runs last before its program. If the code
    /// fails, the program is not started.
    ///
    /// # Safety
    ///
    /// The code runs in a fork of a process with many threads: it may only make
    /// async-signal-safe calls, and must not allocate memory.
    #[cfg(unix)]
    #[must_use]
    pub unsafe fn before_exec(
        mut self,
        code: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            self.0.pre_exec(code);
        }
        self
    }

    /// Starts it. The calling thread must live as long as the host, and be
    /// within a runtime.
    pub(crate) fn start(self) -> io::Result<Child> {
        let mut process = tokio::process::Command::from(self.0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Child {
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            process,
        })
    }
}

/// Gives the child a session of its own, has it end with the host, and takes
/// the host's descriptors from it.
#[cfg(unix)]
fn detach(host: u32) -> io::Result<()> {
    let check = |returned: libc::c_int| match returned {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: setsid has no arguments.
    check(unsafe { libc::setsid() })?;
    #[cfg(not(target_os = "linux"))]
    let _ = host;
    #[cfg(target_os = "linux")]
    // SAFETY: these calls take numbers only.
    unsafe {
        // The kernel kills it when the thread that started it ends.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // The host may have died before that.
        if u32::try_from(libc::getppid()) != Ok(host) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // Kernels before 5.11 lack this call; there, only descriptors that the
        // host's code has marked are closed.
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
    Ok(())
}

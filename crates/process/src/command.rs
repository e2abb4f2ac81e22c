//! A command: a program and everything it is started with.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

/// A program and everything it is started with. It gets a session of its own, so that it has no
/// terminal, and no descriptors but its three streams.
#[derive(Debug)]
pub struct Command(std::process::Command);

/// One of a process's standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `/dev/null`.
    Null,
    /// A pipe whose other end is in [`Child`](crate::Child).
    Piped,
}

/// A resource of `setrlimit`.
#[cfg(target_os = "linux")]
pub type Resource = libc::__rlimit_resource_t;
/// A resource of `setrlimit`.
#[cfg(not(target_os = "linux"))]
pub type Resource = libc::c_int;

/// Kernel layers that a child puts around itself just before its program starts.
#[derive(Default)]
pub struct Restrictions {
    /// The most of each resource.
    pub limits: Vec<(Resource, u64)>,
    /// Access to files and to the network.
    #[cfg(target_os = "linux")]
    pub landlock: Option<landlock::RulesetCreated>,
    /// The system calls that are allowed.
    #[cfg(target_os = "linux")]
    pub seccomp: Option<seccompiler::BpfProgram>,
}

impl Command {
    /// A program, which is looked for in the `PATH` of the environment that it is given unless its
    /// name contains a slash. It inherits environment and folder, and its streams are `/dev/null`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = std::process::Command::new(program);
        let host = std::process::id();
        // SAFETY: `detach` makes system calls with numbers only.
        unsafe {
            command.pre_exec(move || detach(host));
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
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        self.0.env_clear().envs(variables);
        self
    }

    /// Sets its working directory. A relative path to the program begins there, too.
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
        self.0.stdin(stdio(input)).stdout(stdio(output));
        self.0.stderr(stdio(error));
        self
    }

    /// Restricts the process. If the kernel refuses a part, the program is not started.
    #[must_use]
    pub fn restrict(mut self, mut restrictions: Restrictions) -> Self {
        // SAFETY: `enter` makes system calls only and allocates nothing.
        unsafe {
            self.0.pre_exec(move || restrictions.enter());
        }
        self
    }

    pub(crate) fn into_std(self) -> std::process::Command {
        self.0
    }
}

impl Restrictions {
    /// Restricts the calling process, once. It makes system calls only, so it can run in a fork of a
    /// process with many threads.
    pub fn enter(&mut self) -> io::Result<()> {
        for (resource, most) in &self.limits {
            let limit = libc::rlimit {
                rlim_cur: *most,
                rlim_max: *most,
            };
            // SAFETY: setrlimit reads the one struct that the pointer is to.
            check(unsafe { libc::setrlimit(*resource, &raw const limit) })?;
        }
        #[cfg(target_os = "linux")]
        self.enter_layers()?;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn enter_layers(&mut self) -> io::Result<()> {
        // SAFETY: this prctl takes numbers only.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        // An error with a text would allocate memory.
        let refused = || io::Error::from_raw_os_error(libc::EPERM);
        if let Some(ruleset) = self.landlock.take() {
            ruleset.restrict_self().map_err(|_| refused())?;
        }
        if let Some(filter) = &self.seccomp {
            seccompiler::apply_filter(filter).map_err(|_| refused())?;
        }
        Ok(())
    }
}

/// Gives the child a session of its own and, on Linux, ties its life to the host and takes the host's
/// descriptors from it.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
fn detach(host: u32) -> io::Result<()> {
    // SAFETY: these calls take numbers only.
    unsafe {
        check(libc::setsid())?;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: these calls take numbers only.
    unsafe {
        // The kernel kills it when the thread that started it ends.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // The host may have died before that.
        if u32::try_from(libc::getppid()) != Ok(host) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // Kernels before 5.11 lack this call; there, only descriptors that the host's code has
        // marked are closed.
        let (first, last, flag) = (3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        libc::syscall(libc::SYS_close_range, first, last, flag);
    }
    Ok(())
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

//! Internal crate of Callgate: starts child processes that end with the host.
//!
//! MCP servers and the type checker are children of the host. However the host
//! ends, none of them may stay behind, and none may reach the host's terminal.

mod command;
#[cfg(unix)]
mod exit;
mod shell;
mod signals;
mod spawner;

use std::io;
use std::process::ExitStatus;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

pub use command::{Command, Stream};
#[cfg(unix)]
pub use exit::wait_for_children;
pub use shell::shell_word;
pub use signals::ignores_hangup;

/// A started process. Dropping it kills the process.
#[derive(Debug)]
pub struct Child {
    /// Its standard input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, if that is a pipe.
    pub stderr: Option<ChildStderr>,
    process: tokio::process::Child,
}

impl Child {
    /// Its process id, which is also the id of its process group and its
    /// session; `None` once its end was waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Waits for its end and leaves its pipes open.
    ///
    /// # Errors
    ///
    /// The system's error from waiting.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    ///
    /// The system's error from waiting.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    ///
    /// The system's error from waiting.
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        // Killing fails if it has ended already; then waiting returns its status.
        let _ = self.process.start_kill();
        self.process.wait().await
    }
}

/// Starts a command. On Linux the kernel kills the process when the host ends,
/// in whatever way.
///
/// Must be called within a tokio runtime that has IO enabled.
///
/// # Errors
///
/// The system's error from starting it, and [`io::ErrorKind::Other`] if the
/// thread that starts processes cannot be started.
pub async fn spawn(command: Command) -> io::Result<Child> {
    spawner::spawn(command).await
}

#[cfg(all(test, target_os = "linux"))]
mod tests;

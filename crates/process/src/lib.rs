//! Internal crate of Callgate: starting processes that end with the host.
//!
//! Servers and the type checker are children of the host's. However the host
//! ends, none of them may stay behind.

mod command;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
mod signals;
mod spawners;

use std::io;
use std::process::ExitStatus;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

pub use command::{Command, Stream};
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use portable as system;
pub use signals::ignores_hangup;

/// A process that was started. It is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    /// Its input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Its output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, if that is a pipe.
    pub stderr: Option<ChildStderr>,
    running: system::Running,
}

impl Child {
    /// Its id, and that of its process group; `None` once it was waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.running.id()
    }

    /// Waits for its end. Its pipes stay as they are.
    ///
    /// # Errors
    ///
    /// What the system says of waiting for it.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.running.wait().await
    }

    /// Kills it, and waits for its end.
    ///
    /// # Errors
    ///
    /// What the system says of waiting for it.
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.running.kill();
        self.running.wait().await
    }
}

/// Starts the command. Its process is killed when this one ends, in whatever
/// way; on Linux only.
///
/// Must be called within a tokio runtime.
///
/// # Errors
///
/// What starting it gives, and [`io::ErrorKind::Other`] if no thread can be
/// started for it.
pub async fn spawn(command: Command) -> io::Result<Child> {
    spawners::start(command).await
}

#[cfg(all(test, target_os = "linux"))]
mod tests;

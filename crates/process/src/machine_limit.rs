//! Limits of the machine, by the errors of system calls.

use std::fmt;
use std::io;

/// A limit of the machine on what a user, a process or a container may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineLimit {
    /// Processes and threads.
    Processes,
    Memory,
    OpenFiles,
}

impl MachineLimit {
    /// The limit that stopped the start of a process or a thread.
    pub fn of_start(error: &io::Error) -> Option<Self> {
        Some(match error.raw_os_error()? {
            libc::EAGAIN => Self::Processes,
            libc::ENOMEM => Self::Memory,
            libc::EMFILE | libc::ENFILE => Self::OpenFiles,
            _ => return None,
        })
    }

    /// The problem, as a clause.
    pub fn problem(self) -> &'static str {
        match self {
            Self::Processes => "the machine's limit on processes and threads is reached",
            Self::Memory => "the machine's limit on memory is reached",
            Self::OpenFiles => "the machine's limit on open files is reached",
        }
    }

    /// The advice, as a clause.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Processes => "raise it (`ulimit -u`, or the pids limit of the container)",
            Self::Memory => {
                "raise it (`ulimit -v` and `ulimit -d`, or the memory limit of the container)"
            }
            Self::OpenFiles => "raise it (`ulimit -n`)",
        }
    }
}

impl fmt::Display for MachineLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem(), self.advice())
    }
}

/// Why a process or a thread did not start: the limit of the machine, or else the error itself.
pub fn start_failure(error: &io::Error) -> String {
    let limit = MachineLimit::of_start(error).map(|limit| limit.to_string());
    limit.unwrap_or_else(|| error.to_string())
}

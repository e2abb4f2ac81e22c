//! The ledger on disk: a file of JSON lines that takes a line before each call
//! and one after it.
//!
//! Each line is handed to the kernel by one `write`, alone or with others, to a file
//! opened for appending. So a process may be killed at any point, and several of them, or
//! several gates of one, may write to one file: what was written stays, and no
//! two lines mix. A line that was cut off is passed over by [`JournalReader`],
//! and the next one begins on a line of its own.
//!
//! Space that is claimed beforehand and filled in later, through a mapping or
//! not, would save a part of each `write`. It would also end what other programs
//! do with such a file: whoever follows it as it grows reads the claim, and
//! never what is filled in.

mod file;
mod reader;
mod record;
mod together;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use file::{Bounds, LineFile, SETTLED};
pub use reader::{JournalLine, JournalReader};
pub(crate) use record::{Body, Event, Record, digest, wall_time};
pub(crate) use together::Together;
use together::Written;

/// The size that a journal may have unless another is set: 1 GiB.
pub const DEFAULT_JOURNAL_BYTES: u64 = 1 << 30;
/// The most lines that wait for a file that takes none. No call is made while
/// one waits, so these are of calls that were in flight.
const MAX_WAITING: usize = 10_000;

/// What a journal is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalOptions {
    /// Whether arguments and results are written too, and not only their hashes
    /// and sizes. Default: false.
    pub bodies: bool,
    /// Whose calls they are, where one process serves several users: `user` in
    /// each line. Default: nobody in particular, and there is no such member.
    pub user: Option<String>,
    /// The size in bytes that the file may reach. Beyond it the file is moved
    /// aside if `keep` says so, and else no call is made; calls that are under way
    /// then have the line after them all the same. Default: 1 GiB.
    pub max_bytes: u64,
    /// How many full files are kept beside the one that is written to, as
    /// `FILE.1`, the last one, to `FILE.N`. Default: 0, no file is moved aside
    /// and none is deleted.
    pub keep: u32,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            bodies: false,
            user: None,
            max_bytes: DEFAULT_JOURNAL_BYTES,
            keep: 0,
        }
    }
}

/// A journal that is open for appending. It is shared by the runs of a gate.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    bodies: bool,
    user: Option<String>,
    bounds: Bounds,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: LineFile,
    /// Lines of calls that were made, which the file did not take.
    waiting: VecDeque<String>,
}

/// Why a line could not be written. Its `Display` names the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file could not be opened.
    #[error("ledger {path}: cannot be opened: {reason}")]
    Open {
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// The file did not take the line.
    #[error("ledger {path}: cannot be written: {reason}")]
    Write {
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// The line would make the file larger than it may be.
    #[error(
        "ledger {path}: is full: {bytes} bytes of {limit}; move the file away, and the next call \
         begins a new one"
    )]
    Full {
        /// The file.
        path: String,
        /// Its size in bytes.
        bytes: u64,
        /// The most it may have.
        limit: u64,
    },
}

impl Journal {
    /// Opens a file for appending, and creates it, for its owner alone to read
    /// and write, if there is none. Its folder must be there.
    ///
    /// # Errors
    ///
    /// [`JournalError::Open`].
    pub fn open(path: &Path, options: JournalOptions) -> Result<Self, JournalError> {
        Ok(Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                file: LineFile::open(path)?,
                waiting: VecDeque::new(),
            }),
            bodies: options.bodies,
            user: options.user,
            bounds: Bounds {
                max_bytes: options.max_bytes,
                keep: options.keep,
                settled: SETTLED,
            },
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether arguments and results are written too.
    pub(crate) fn bodies(&self) -> bool {
        self.bodies
    }

    /// Whose calls they are.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Writes a line about a call that depends on it. When this returns, the
    /// kernel has the line.
    pub(crate) fn write(&self, line: &str) -> Result<(), JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.write(line, &self.bounds)
    }

    /// Writes lines by one `write`, as far as the file takes them. `ends` is where they
    /// end in the text.
    fn write_together(&self, text: &str, ends: &[usize]) -> Written {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.catch_up(&self.bounds) {
            Ok(()) => state.file.append(text, ends, &self.bounds),
            Err(error) => Written {
                lines: 0,
                error: Some(error),
            },
        }
    }

    /// Writes a line about a call that was not made, if the file takes it.
    pub(crate) fn write_if_taken(&self, line: &str) {
        if let Err(error) = self.write(line) {
            tracing::error!(%error, "a call that was not sent has no line");
        }
    }

    /// Writes a line about a call that is over, beyond the file's size if need be. If the
    /// file does not take it, it waits: no further call is made before it is written.
    pub(crate) fn write_or_wait(&self, line: String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.write_beyond(&line, &self.bounds) {
            if state.waiting.len() < MAX_WAITING {
                tracing::error!(%error, "a call has no line after it yet");
                state.waiting.push_back(line);
            } else {
                tracing::error!(%error, "a call has no line after it: too many wait already");
            }
        }
    }

    /// Tries once more to write the lines that wait: a run is over, and there may be no
    /// further call that would.
    pub(crate) fn catch_up(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.catch_up(&self.bounds) {
            let lines = state.waiting.len();
            tracing::error!(%error, lines, "calls have no line after them yet");
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.catch_up(&self.bounds) {
            let lines = state.waiting.len();
            tracing::error!(%error, lines, "calls have no line after them, and get none");
        }
    }
}

impl State {
    /// Writes a line behind all that wait.
    fn write(&mut self, line: &str, bounds: &Bounds) -> Result<(), JournalError> {
        self.catch_up(bounds)?;
        self.file.append_line(line, bounds)
    }

    /// Writes a line about a call that was made behind all that wait.
    fn write_beyond(&mut self, line: &str, bounds: &Bounds) -> Result<(), JournalError> {
        self.catch_up(bounds)?;
        self.file.append_beyond(line, bounds)
    }

    /// Writes the lines that wait.
    fn catch_up(&mut self, bounds: &Bounds) -> Result<(), JournalError> {
        while let Some(line) = self.waiting.front() {
            self.file.append_beyond(line, bounds)?;
            self.waiting.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! The ledger on disk: a file of JSON lines that takes a line before each call
//! and one after it.
//!
//! Each line is handed to the kernel whole, alone or with others, by one `write` to
//! a file opened for appending. So a process may be killed at any point, and several
//! of them, or several gates of one, may write to one file: what was written stays,
//! and no two lines mix. A line that was cut off is passed over by
//! [`JournalReader`], and the next one begins on a line of its own.
//!
//! Space that is claimed beforehand and filled in later, through a mapping or
//! not, would save a part of each `write`. It would also end what other programs
//! do with such a file: whoever follows it as it grows reads the claim, and
//! never what is filled in.

mod file;
mod group;
mod reader;
mod record;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;

use file::{Bounds, LineFile, SETTLED};
pub(crate) use group::{About, Pending};
use group::{Group, Told, Written, flush_soon};
pub use reader::{JournalLine, JournalReader};
pub(crate) use record::{Body, Event, Record, digest, wall_time};

/// The size that a journal may have unless another is set: 1 GiB.
pub const DEFAULT_JOURNAL_BYTES: u64 = 1 << 30;
/// The most lines that are kept for a file that takes none. No call is made while
/// one is, so these are of calls that were in flight.
const MAX_KEPT: usize = 10_000;

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
    /// aside if `keep` says so, and else no call is made. Default: 1 GiB.
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
    kept: VecDeque<String>,
    /// Lines that are to be written next.
    group: Group,
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
                kept: VecDeque::new(),
                group: Group::default(),
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

    /// Has lines wait that come within this time, however slow a test is.
    #[cfg(test)]
    pub(crate) fn wait_together(&mut self, together: std::time::Duration) {
        let state = self.state.get_mut();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.group.together = together;
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

    /// Takes a line. It is written when this returns, or, if it may wait for others,
    /// when [`Pending::written`] says so: then the kernel has it. One about a call
    /// that is over is kept if the file does not take it: no further call is made
    /// before it is written.
    pub(crate) fn take(
        self: &Arc<Self>,
        line: &str,
        about: About,
    ) -> Result<Option<Pending>, JournalError> {
        let now = Instant::now();
        let mut state = self.state();
        let index = state.group.push(line, about);
        if state.group.may_wait(about, now)
            && let Ok(runtime) = Handle::try_current()
        {
            let (told, is_first) = state.group.wait();
            drop(state);
            if is_first {
                flush_soon(self, &runtime);
            }
            return Ok(Some(Pending {
                journal: Arc::clone(self),
                told,
                index,
            }));
        }
        self.write_group(state, now).of(index).map(|()| None)
    }

    /// [`Journal::take`] of a line that waits for no other.
    pub(crate) fn write(&self, line: &str, about: About) -> Result<(), JournalError> {
        let mut state = self.state();
        let index = state.group.push(line, about);
        self.write_group(state, Instant::now()).of(index)
    }

    /// Writes what waits.
    fn flush(&self) {
        let state = self.state();
        if !state.group.is_empty() {
            self.write_group(state, Instant::now());
        }
    }

    fn write_group(&self, mut state: MutexGuard<'_, State>, now: Instant) -> Written {
        let (written, told) = state.write_group(&self.bounds, now);
        drop(state);
        if let Some(told) = told {
            told.wake();
        }
        written
    }

    fn unwritten(&self, reason: &str) -> JournalError {
        JournalError::Write {
            path: self.path.display().to_string(),
            reason: reason.to_owned(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes all that is to be written, behind what was kept.
    fn write_group(&mut self, bounds: &Bounds, now: Instant) -> (Written, Option<Arc<Told>>) {
        let written = match self.write_kept(bounds, now) {
            Ok(()) => self.file.append(&self.group.text, bounds, now),
            Err(error) => Written::nothing(error),
        };
        if let Some(error) = &written.error {
            for line in self.group.untaken_after(&written) {
                tracing::error!(%error, "a call has no line after it yet");
                if self.kept.len() < MAX_KEPT {
                    self.kept.push_back(line.to_owned());
                }
            }
        }
        let told = self.group.end(&written);
        (written, told)
    }

    fn write_kept(&mut self, bounds: &Bounds, now: Instant) -> Result<(), JournalError> {
        while let Some(line) = self.kept.front() {
            self.file.append(line, bounds, now).of(0)?;
            self.kept.pop_front();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

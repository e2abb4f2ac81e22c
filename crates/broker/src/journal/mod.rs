//! The ledger on disk: a file of JSON lines that takes a line before each call
//! and one after it.
//!
//! A line is noted in a mapped file beside it first ([`wal`]), which outlives the process as the
//! file itself does, and is moved to the file with the others of a tenth of a second: by one
//! `write`, for appending. So a process may be killed at any point, and several of them, or
//! several gates of one, may write to one file: what was noted stays, and no
//! two lines mix. A line that was cut off is passed over by [`JournalReader`],
//! and the next one begins on a line of its own.
//!
//! The file itself is not mapped, and no space is claimed in it: whoever follows it as it grows
//! would read the claim, and never what is filled in.

mod errand;
mod file;
mod line;
mod reader;
mod record;
mod recovery;
mod state;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use errand::{Errand, Errands, Shared};
use file::{Bounds, LineFile, SETTLED};
pub(crate) use line::Line;
pub use reader::{JournalLine, JournalReader};
pub(crate) use record::{Body, Event, Record, digest};
pub use recovery::Recovered;
use state::State;

use crate::moment::Moment;

/// The size that a journal may have unless another is set: 1 GiB.
pub const DEFAULT_JOURNAL_BYTES: u64 = 1 << 30;
/// How long lines stand beside the file at the most before it is to take them.
const MOVED_WITHIN: Duration = Duration::from_millis(100);

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
    shared: Arc<Shared>,
    errands: Errands,
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
    /// and write, if there is none. Its folder must be there. Lines that processes which were
    /// killed left beside the file come into it.
    ///
    /// # Errors
    ///
    /// [`JournalError::Open`].
    pub fn open(path: &Path, options: JournalOptions) -> Result<Self, JournalError> {
        let bounds = Bounds {
            max_bytes: options.max_bytes,
            keep: options.keep,
            settled: SETTLED,
        };
        let mut file = LineFile::open(path)?;
        for (path, reason) in recovery::recover(&mut file, &bounds).left {
            let path = path.display();
            tracing::error!(%path, reason, "lines of a ledger stay in a file beside it");
        }
        Ok(Self {
            path: path.to_owned(),
            shared: Arc::new(Shared::new(State::new(file, bounds))),
            errands: Errands::default(),
            bodies: options.bodies,
            user: options.user,
        })
    }

    /// Has a ledger's file take the lines that processes which were killed left beside it, as
    /// [`Self::open`] does, whatever size it has then.
    ///
    /// # Errors
    ///
    /// [`JournalError::Open`], also if there is no such file and nothing was left beside it.
    pub fn recover(path: &Path) -> Result<Recovered, JournalError> {
        let bounds = Bounds {
            max_bytes: u64::MAX,
            keep: 0,
            settled: SETTLED,
        };
        let mut file = match recovery::left_beside(path).is_empty() {
            true => LineFile::open_if_there(path)?,
            false => LineFile::open(path)?,
        };
        Ok(recovery::recover(&mut file, &bounds))
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

    /// Notes a line about a call that depends on it. When this returns, the
    /// kernel has the line.
    pub(crate) fn write(&self, line: &[u8], now: Moment) -> Result<(), JournalError> {
        let (mut state, is_noted) = self.shared.note_if_lent(self.shared.lock(), line, true);
        if !is_noted {
            state.take(line)?;
        }
        state.in_flight += 1;
        self.move_soon(state, now);
        Ok(())
    }

    /// Notes a line about a call that was not made, if it can be.
    pub(crate) fn write_if_taken(&self, line: &[u8], now: Moment) {
        let (mut state, is_noted) = self.shared.note_if_lent(self.shared.lock(), line, true);
        if !is_noted && let Err(error) = state.take(line) {
            tracing::error!(%error, "a call that was not sent has no line");
        }
        self.move_soon(state, now);
    }

    /// Notes a line about a call that is over, beyond the file's size if need be. If nothing
    /// takes it, it waits: no further call is made before it is written.
    pub(crate) fn write_or_wait(&self, line: &[u8], now: Moment) {
        let (mut state, is_noted) = self.shared.note_if_lent(self.shared.lock(), line, false);
        if !is_noted {
            state.take_or_wait(line);
        }
        state.in_flight = state.in_flight.saturating_sub(1);
        self.move_soon(state, now);
    }

    /// Has the file take all lines, as far as it does: a run or a gate is over, and whoever
    /// reads the file now is to find them.
    pub fn catch_up(&self) {
        self.shared.lock_unlent().catch_up_or_say();
    }

    /// Has lines that stand beside the file moved to it, if that is not about to be done: many
    /// at once, and others by a task that goes on as long as lines come. One for each time would
    /// wake a thread of the runtime that takes the caller's next work to another processor.
    fn move_soon(&self, mut state: MutexGuard<'_, State>, now: Moment) {
        let loan = state.lend_many();
        let is_due = state.is_moving_due(now);
        // A runtime that is ending drops the task at once, which takes the lock.
        drop(state);
        if let Some(loan) = loan {
            self.errands.send(Errand::new(&self.shared, loan));
        }
        if is_due {
            let moving = Moving(Arc::downgrade(&self.shared));
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(async move {
                    while moving.is_needed() {
                        tokio::time::sleep(MOVED_WITHIN).await;
                    }
                });
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Others may have what they share for a moment still.
        self.shared.lock_unlent().close();
    }
}

/// Has a journal's file take the lines beside it: time and again, and when it is dropped, which
/// is with the runtime that it waits in, or at once where there is none.
struct Moving(Weak<Shared>);

impl Moving {
    /// Moves the lines that were there the last time. False if none have come since.
    fn is_needed(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| shared.lock_unlent().move_due())
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.lock_unlent().moves_no_more();
        }
    }
}

#[cfg(test)]
mod tests;

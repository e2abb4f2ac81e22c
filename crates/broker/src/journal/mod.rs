//! The ledger on disk: a file of JSON lines that takes a line before each call
//! and one after it.
//!
//! Each line is handed to the kernel by one `write` to a file opened for
//! appending. So a process may be killed at any point, and several of them may
//! write to one file: what was written stays, and no two lines mix. A line that
//! was cut off is passed over by [`JournalReader`], and the next one begins on
//! a line of its own.

mod reader;
mod record;

use std::collections::VecDeque;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use reader::{JournalLine, JournalReader};
pub(crate) use record::{Body, Event, Record, digest, wall_time};

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
    /// The size in bytes that the file may reach. Beyond it no call is made.
    /// Default: 1 GiB.
    pub max_bytes: u64,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            bodies: false,
            user: None,
            max_bytes: DEFAULT_JOURNAL_BYTES,
        }
    }
}

/// A journal that is open for appending. It is shared by the runs of a gate.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    options: JournalOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: Opened,
    /// Lines of calls that were made, which the file did not take.
    waiting: VecDeque<String>,
}

#[derive(Debug)]
struct Opened {
    file: File,
    device: u64,
    inode: u64,
    /// Whether the file may end in a line that was cut off.
    torn: bool,
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
                open: open(path)?,
                waiting: VecDeque::new(),
            }),
            options,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether arguments and results are written too.
    pub(crate) fn bodies(&self) -> bool {
        self.options.bodies
    }

    /// Writes a line about a call that depends on it. When this returns, the
    /// kernel has the line.
    pub(crate) fn write(&self, record: &Record<'_>) -> Result<(), JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.write_waiting(&mut state)?;
        self.append(&mut state.open, &self.line(record))
    }

    /// Writes a line about a call that is over. If the file does not take it,
    /// it waits: no further call is made before it is written.
    pub(crate) fn write_or_wait(&self, record: &Record<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = self.line(record);
        let written = self
            .write_waiting(&mut state)
            .and_then(|()| self.append(&mut state.open, &line));
        if let Err(error) = written {
            tracing::error!(%error, "a call has no line after it yet");
            if state.waiting.len() < MAX_WAITING {
                state.waiting.push_back(line);
            }
        }
    }

    fn line(&self, record: &Record<'_>) -> String {
        record.line(self.options.user.as_deref())
    }

    fn write_waiting(&self, state: &mut State) -> Result<(), JournalError> {
        while let Some(line) = state.waiting.front() {
            self.append(&mut state.open, line)?;
            state.waiting.pop_front();
        }
        Ok(())
    }

    fn append(&self, open: &mut Opened, line: &str) -> Result<(), JournalError> {
        let size = self.follow(open)?;
        let bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if size.saturating_add(bytes) > self.options.max_bytes {
            return Err(JournalError::Full {
                path: self.path.display().to_string(),
                bytes: size,
                limit: self.options.max_bytes,
            });
        }
        // In the same write, so that no other process comes in between.
        let apart;
        let text = if open.torn {
            apart = format!("\n{line}");
            apart.as_bytes()
        } else {
            line.as_bytes()
        };
        let written = loop {
            match open.file.write(text) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match written {
            Ok(written) if written == text.len() => {
                open.torn = false;
                Ok(())
            }
            Ok(written) => {
                open.torn |= written > 0;
                Err(self.unwritten("it took a part of the line only"))
            }
            Err(error) => Err(self.unwritten(error)),
        }
    }

    /// Follows the path to another file, if the one that is open was moved or
    /// deleted. The size of the file.
    fn follow(&self, open_now: &mut Opened) -> Result<u64, JournalError> {
        let same =
            |known: &Metadata| known.dev() == open_now.device && known.ino() == open_now.inode;
        match std::fs::metadata(&self.path) {
            Ok(known) if same(&known) => Ok(known.len()),
            _ => {
                *open_now = open(&self.path)?;
                let known = open_now.file.metadata();
                Ok(known.map_err(|error| self.unwritten(error))?.len())
            }
        }
    }

    fn unwritten(&self, reason: impl ToString) -> JournalError {
        JournalError::Write {
            path: self.path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

fn open(path: &Path) -> Result<Opened, JournalError> {
    let failed = |reason: &dyn ToString| JournalError::Open {
        path: path.display().to_string(),
        reason: reason.to_string(),
    };
    let mut options = OpenOptions::new();
    options.append(true).read(true).create(true).mode(0o600);
    // A pipe that nobody reads would stop the opening; it is refused below.
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut file = options.open(path).map_err(|error| failed(&error))?;
    let known = file.metadata().map_err(|error| failed(&error))?;
    if !known.is_file() {
        return Err(failed(&"it is no regular file"));
    }
    Ok(Opened {
        device: known.dev(),
        inode: known.ino(),
        torn: ends_torn(&mut file).map_err(|error| failed(&error))?,
        file,
    })
}

/// Whether a file has a last line without an end.
fn ends_torn(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests;

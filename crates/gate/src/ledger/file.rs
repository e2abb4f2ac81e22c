//! A ledger file: JSON lines, appended by one write each.
//!
//! A write reaches the kernel before the call is sent, so a line outlives the process. Several
//! processes may append to one file. Nothing that is in the file is ever changed.

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use callgate_text::shown_size;
use parking_lot::Mutex;

use super::events::{LedgerEvent, LedgerSink};
use super::line::{LineKind, line};

/// The default size limit of a ledger file: 1 GiB.
pub const DEFAULT_LEDGER_BYTES: u64 = 1 << 30;

/// Options of a ledger file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerOptions {
    /// True if arguments and results are written, and not only their hashes and sizes.
    /// Default: false.
    pub bodies: bool,
    /// The user who makes the calls, if one process serves several users: `user` in each line.
    /// Default: no user, and lines have no such member.
    pub user: Option<String>,
    /// The size limit of the file in bytes. A full file is moved aside if `keep` is not 0;
    /// otherwise no further call is made. A call that is already sent still gets its last line.
    /// Default: 1 GiB.
    pub max_bytes: u64,
    /// The number of full files that are kept, as `FILE.1`, the newest, to `FILE.N`.
    /// Default: 0, and no file is moved aside or deleted.
    pub keep: u32,
    /// True if each line is written to the disk, and not only to the kernel, before the call
    /// continues: lines then survive a power failure. Default: false.
    pub sync: bool,
}

impl Default for LedgerOptions {
    fn default() -> Self {
        Self {
            bodies: false,
            user: None,
            max_bytes: DEFAULT_LEDGER_BYTES,
            keep: 0,
            sync: false,
        }
    }
}

/// The reason why an event could not be recorded. Its `Display` names the file or the sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ledger {place}: {reason}")]
pub struct LedgerError {
    place: String,
    reason: String,
}

impl LedgerError {
    /// An error of a sink: its name, and the reason as a clause.
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            reason: reason.into(),
        }
    }
}

/// A ledger file that is open for appending. The runs of a gate share it.
#[derive(Debug)]
pub struct LedgerFile {
    path: PathBuf,
    options: LedgerOptions,
    state: Mutex<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// Lines of ended calls that could not be written yet. No further call is made before they
    /// are written.
    pending: VecDeque<Vec<u8>>,
}

impl LedgerFile {
    /// Opens a file for appending. Only its owner can read and write a new file. Its folder must
    /// exist.
    pub fn open(path: &Path, options: LedgerOptions) -> Result<Self, LedgerError> {
        Ok(Self {
            path: path.to_owned(),
            options,
            state: Mutex::new(OpenFile {
                file: open(path)?,
                pending: VecDeque::new(),
            }),
        })
    }

    /// Appends a line. The line of an ended call may exceed the size limit, and is kept for later
    /// if it cannot be written.
    fn write(&self, line: Vec<u8>, is_over: bool) -> Result<(), LedgerError> {
        let mut state = self.state.lock();
        if is_over {
            state.pending.push_back(line);
            return self.write_pending(&mut state);
        }
        self.write_pending(&mut state)?;
        self.append(&mut state, &line, false)
    }

    fn write_pending(&self, state: &mut OpenFile) -> Result<(), LedgerError> {
        while let Some(line) = state.pending.pop_front() {
            if let Err(error) = self.append(state, &line, true) {
                state.pending.push_front(line);
                return Err(error);
            }
        }
        Ok(())
    }

    fn append(&self, state: &mut OpenFile, line: &[u8], is_over: bool) -> Result<(), LedgerError> {
        self.follow_path(state)?;
        let room = self.make_room(state, line.len());
        if !is_over {
            room?;
        }
        let written = ends_torn(&state.file).and_then(|is_torn| {
            let torn_end: &[u8] = if is_torn { b"\n" } else { b"" };
            // In one write, so that lines of several processes do not mix.
            state.file.write_all(&[torn_end, line].concat())?;
            if self.options.sync {
                state.file.sync_data()?;
            }
            Ok(())
        });
        written.map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => self.unwritten(format!(
                "{error}: it has reached the limit on the size of files; raise that limit \
                 (`ulimit -f`), or set a lower \"maxSize\" and \"keep\" in \"ledger\""
            )),
            _ => self.unwritten(error),
        })
    }

    /// Opens the path again, if the open file was moved or deleted.
    fn follow_path(&self, state: &mut OpenFile) -> Result<(), LedgerError> {
        if !self.is_at_path(&state.file) {
            state.file = open(&self.path)?;
        }
        Ok(())
    }

    fn is_at_path(&self, file: &File) -> bool {
        let id = |known: Metadata| (known.dev(), known.ino());
        let at_path = fs::metadata(&self.path).ok().map(id);
        at_path.is_some() && at_path == file.metadata().ok().map(id)
    }

    /// Moves the file aside if it has no room for `more` bytes.
    fn make_room(&self, state: &mut OpenFile, more: usize) -> Result<(), LedgerError> {
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let limit = self.options.max_bytes;
        let known = state.file.metadata();
        let bytes = known.map_err(|error| self.unwritten(error))?.len();
        if bytes.saturating_add(more) <= limit {
            return Ok(());
        }
        // A line over the limit has no room in a new file either.
        if self.options.keep == 0 || more > limit {
            return Err(self.error(format!(
                "is full: {bytes} bytes of {}; move the file away, and the next call starts a new \
                 one",
                shown_size(limit)
            )));
        }
        self.move_aside(&state.file)
            .map_err(|error| self.unwritten(format!("it is full and cannot be moved: {error}")))?;
        self.follow_path(state)
    }

    /// Renames the file to `.1`, the file `.1` to `.2` and so on; the last file is deleted. If
    /// several processes do this at once, only the first has an effect.
    fn move_aside(&self, file: &File) -> io::Result<()> {
        file.lock()?;
        let rename = || {
            // A process that had the lock before may have moved the file.
            if !self.is_at_path(file) {
                return Ok(());
            }
            for number in (1..self.options.keep).rev() {
                match fs::rename(self.aside(number), self.aside(number + 1)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::rename(&self.path, self.aside(1))
        };
        let renamed = rename();
        let _ = file.unlock();
        renamed
    }

    fn aside(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    fn unwritten(&self, reason: impl Display) -> LedgerError {
        self.error(format!("cannot be written: {reason}"))
    }

    fn error(&self, reason: String) -> LedgerError {
        LedgerError::new(self.path.display().to_string(), reason)
    }
}

impl LedgerSink for LedgerFile {
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError> {
        let options = &self.options;
        match event {
            LedgerEvent::RunStarted { .. } => Ok(()),
            LedgerEvent::CallDecided(call) => {
                self.write(line(LineKind::Before, call, options), false)
            }
            LedgerEvent::CallEnded(call) if call.was_sent => {
                self.write(line(LineKind::After, call, options), true)
            }
            LedgerEvent::CallEnded(call) => {
                self.write(line(LineKind::NotSent, call, options), false)
            }
            LedgerEvent::RunEnded { .. } => self.write_pending(&mut self.state.lock()),
        }
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Err(error) = self.write_pending(&mut state) {
            let calls = state.pending.len();
            tracing::error!(%error, calls, "calls that were made have no line after them");
        }
    }
}

/// Opens a file for appending, and creates it if there is none.
fn open(path: &Path) -> Result<File, LedgerError> {
    let failed = |reason: &dyn Display| {
        let place = path.display().to_string();
        LedgerError::new(place, format!("cannot be opened: {reason}"))
    };
    let mut options = OpenOptions::new();
    options.create(true).append(true).read(true).mode(0o600);
    // Opening a pipe without a reader would block; it is refused below.
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(|error| match path.parent() {
        Some(folder)
            if error.kind() == ErrorKind::NotFound
                && !folder.as_os_str().is_empty()
                && !folder.exists() =>
        {
            let folder = folder.display();
            failed(&format!("its folder {folder} does not exist; create it"))
        }
        _ => failed(&error),
    })?;
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return Err(failed(&"it is not a regular file"));
    }
    Ok(file)
}

/// True if a file's last line was cut off.
fn ends_torn(file: &File) -> io::Result<bool> {
    let Some(end) = file.metadata()?.len().checked_sub(1) else {
        return Ok(false);
    };
    let mut last = [0];
    file.read_exact_at(&mut last, end)?;
    Ok(last != *b"\n")
}

//! A ledger file: JSON lines, appended by one write each.
//!
//! A write reaches the kernel before the call is sent, so a line outlives the process. Several
//! processes may append to one file. Nothing that is in the file is ever changed.
//!
//! The lines of a run are a chain, and the lines about the starts and ends of runs are a chain of
//! the open file, the *writer*. A line gets its place in them when it is written, and they
//! advance after that write alone.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use callgate_text::shown_size;
use parking_lot::Mutex;
use uuid::Uuid;

use super::chain::{Chain, digest};
use super::events::{LedgerEvent, LedgerSink};
use super::line::{Line, LineKind};

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
    /// The writer's id: random, in hexadecimal.
    writer: String,
    state: Mutex<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// The first lines of runs that could not be written yet.
    starts: HashMap<String, Line>,
    /// Lines of ended calls and runs that could not be written yet. No further call is made
    /// before they are written.
    pending: VecDeque<Line>,
    /// The chains of runs without a last line.
    runs: HashMap<String, Chain>,
    /// The writer's own chain.
    writer: Chain,
}

impl OpenFile {
    /// Adds a line that was written to its chains.
    fn add(&mut self, line: &Line, text: &str) {
        let hash = digest(text);
        if line.kind.is_of_run() {
            self.writer.add(hash.clone(), line.time.clone());
        }
        if line.kind == LineKind::RunEnded {
            self.runs.remove(&line.run);
        } else {
            let chain = self.runs.entry(line.run.clone()).or_default();
            chain.add(hash, line.time.clone());
        }
    }
}

impl LedgerFile {
    /// Opens a file for appending. Only its owner can read and write a new file. Its folder must
    /// exist.
    pub fn open(path: &Path, options: LedgerOptions) -> Result<Self, LedgerError> {
        Ok(Self {
            path: path.to_owned(),
            options,
            writer: format!("{:016x}", Uuid::new_v4().as_u128() >> 64),
            state: Mutex::new(OpenFile {
                file: open(path)?,
                starts: HashMap::new(),
                pending: VecDeque::new(),
                runs: HashMap::new(),
                writer: Chain::default(),
            }),
        })
    }

    /// Writes the pending lines, and the run's first line unless it is written.
    fn begin_run(&self, state: &mut OpenFile, run: &str) -> Result<(), LedgerError> {
        self.write_pending(state)?;
        if let Some(line) = state.starts.remove(run)
            && let Err(error) = self.append(state, &line, false)
        {
            state.starts.insert(run.to_owned(), line);
            return Err(error);
        }
        Ok(())
    }

    /// Writes the pending lines. They may exceed the size limit.
    fn write_pending(&self, state: &mut OpenFile) -> Result<(), LedgerError> {
        while let Some(line) = state.pending.pop_front() {
            if let Err(error) = self.append(state, &line, true) {
                state.pending.push_front(line);
                return Err(error);
            }
            self.sync(state)?;
        }
        Ok(())
    }

    /// Writes the lines to the disk, if the options say so.
    fn sync(&self, state: &OpenFile) -> Result<(), LedgerError> {
        if !self.options.sync {
            return Ok(());
        }
        let synced = state.file.sync_data();
        synced.map_err(|error| self.unwritten(error))
    }

    /// Appends a line as the next one of its chains.
    fn append(&self, state: &mut OpenFile, line: &Line, is_over: bool) -> Result<(), LedgerError> {
        self.follow_path(state)?;
        let of_run = state.runs.entry(line.run.clone()).or_default();
        let text = line.text(of_run, &self.writer, &state.writer);
        let room = self.make_room(state, text.len() + 1);
        if !is_over {
            room?;
        }
        let written = ends_torn(&state.file).and_then(|is_torn| {
            let torn_end = if is_torn { "\n" } else { "" };
            // In one write, so that lines of several processes do not mix.
            let written = format!("{torn_end}{text}\n");
            state.file.write_all(written.as_bytes())
        });
        written.map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => self.unwritten(format!(
                "{error}: it has reached the limit on the size of files; raise that limit \
                 (`ulimit -f`), or set a lower \"maxSize\" and \"keep\" in \"ledger\""
            )),
            _ => self.unwritten(error),
        })?;
        state.add(line, &text);
        Ok(())
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
        // It has no room in a new file either.
        if more > limit {
            let line = shown_size(more);
            let or_less = if self.options.bodies {
                ", or turn \"bodies\" off"
            } else {
                ""
            };
            let reason = format!("a line of {line} is over \"maxSize\"; raise it{or_less}");
            return Err(self.unwritten(reason));
        }
        if self.options.keep == 0 {
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
        let line = Line::of(event, &self.options);
        let run = line.run.clone();
        let state = &mut *self.state.lock();
        match line.kind {
            LineKind::RunStarted => {
                state.starts.insert(run.clone(), line);
                self.begin_run(state, &run)?;
                self.sync(state)
            }
            LineKind::Before | LineKind::NotSent => {
                self.begin_run(state, &run)?;
                self.append(state, &line, false)?;
                self.sync(state)
            }
            LineKind::After => {
                state.pending.push_back(line);
                self.write_pending(state)
            }
            LineKind::RunEnded => {
                // A run without its first line has no others.
                if state.starts.remove(&run).is_none() {
                    state.pending.push_back(line);
                } else {
                    state.runs.remove(&run);
                }
                self.write_pending(state)
            }
        }
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if let Err(error) = self.write_pending(&mut state) {
            let lines = state.pending.len();
            tracing::error!(%error, lines, "ends of calls and runs have no line");
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

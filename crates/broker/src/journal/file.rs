//! The file of a journal: opened for appending, followed where its path leads,
//! and moved aside when it is full.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::JournalError;
use super::wal::Place;

/// How often it is looked whether the path still leads to the open file. A look
/// costs more than a line.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a file that was moved aside is the last one at least. Other gates
/// write to it until they look, and so it must not be deleted before they have.
pub(super) const SETTLED: Duration = Duration::from_secs(1);

/// How large a file may be, and what becomes of it then.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) max_bytes: u64,
    pub(super) keep: u32,
    /// [`SETTLED`], but in tests.
    pub(super) settled: Duration,
}

/// The open file.
#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    file: Arc<File>,
    device: u64,
    inode: u64,
    /// Whether the file may end in a line that was cut off.
    torn: bool,
    /// Its size when it was last looked at, and what was written since.
    bytes: u64,
    looked: Instant,
}

impl LineFile {
    /// Opens a file for appending, and creates it if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_by(path, OpenOptions::new().create(true))
    }

    /// Opens a file for appending that is there.
    pub(super) fn open_if_there(path: &Path) -> Result<Self, JournalError> {
        Self::open_by(path, &mut OpenOptions::new())
    }

    fn open_by(path: &Path, options: &mut OpenOptions) -> Result<Self, JournalError> {
        let failed = |reason: &dyn ToString| JournalError::Open {
            path: path.display().to_string(),
            reason: reason.to_string(),
        };
        options.append(true).read(true).mode(0o600);
        // A pipe that nobody reads would stop the opening; it is refused below.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let mut file = options.open(path).map_err(|error| match path.parent() {
            // That of a bare name is the one that is worked in.
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
        let known = file.metadata().map_err(|error| failed(&error))?;
        if !known.is_file() {
            return Err(failed(&"it is no regular file"));
        }
        Ok(Self {
            path: path.to_owned(),
            device: known.dev(),
            inode: known.ino(),
            torn: ends_torn(&mut file).map_err(|error| failed(&error))?,
            bytes: known.len(),
            looked: Instant::now(),
            file: Arc::new(file),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks where the path leads, if that was not done just now.
    pub(super) fn look_if_due(&mut self) -> Result<(), JournalError> {
        match self.looked.elapsed() >= LOOK_EVERY {
            true => self.look(),
            false => Ok(()),
        }
    }

    /// Whether so many bytes more are within what it may have.
    pub(super) fn has_room(&self, bytes: usize, bounds: &Bounds) -> bool {
        self.bytes.saturating_add(length(bytes)) <= bounds.max_bytes
    }

    /// A file that is full for so many bytes more may have been moved away meanwhile, or is
    /// moved aside.
    pub(super) fn make_room(&mut self, bytes: usize, bounds: &Bounds) -> Result<(), JournalError> {
        if self.has_room(bytes, bounds) {
            return Ok(());
        }
        self.look()?;
        if self.has_room(bytes, bounds) {
            return Ok(());
        }
        let full = JournalError::Full {
            path: self.path.display().to_string(),
            bytes: self.bytes,
            limit: bounds.max_bytes,
        };
        // A line that is longer than a file may be finds room in none.
        if bounds.keep == 0 || length(bytes) > bounds.max_bytes {
            return Err(full);
        }
        self.move_aside(bounds)
            .map_err(|error| self.unwritten(format!("it is full and cannot be moved: {error}")))?;
        self.look()
    }

    /// How far it is.
    pub(super) fn place(&self) -> Place {
        Place {
            device: self.device,
            inode: self.inode,
            size: self.bytes,
        }
    }

    /// Appends lines by one `write`, whatever room there is; how many bytes of them the file
    /// has is beside an error.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<(), (usize, JournalError)> {
        if !self.torn {
            return self.took(lines, append(&self.file, lines));
        }
        // In the same write, so that no other process comes in between.
        let lines = [b"\n", lines].concat();
        self.took(&lines, append(&self.file, &lines))
            .map_err(|(taken, error)| (taken.saturating_sub(1), error))
    }

    /// What [`append`] is to write lines to, if they are to begin where it ends.
    pub(super) fn to_append_to(&self) -> Option<Arc<File>> {
        (!self.torn).then(|| Arc::clone(&self.file))
    }

    /// Notes what was appended of some bytes; how many of them the file has is beside an error.
    pub(super) fn took(
        &mut self,
        bytes: &[u8],
        taken: io::Result<usize>,
    ) -> Result<(), (usize, JournalError)> {
        let taken = taken.map_err(|error| (0, self.unwritten(error)))?;
        self.bytes = self.bytes.saturating_add(length(taken));
        self.torn &= taken == 0;
        if taken < bytes.len() {
            let ends_line = taken.checked_sub(1).and_then(|last| bytes.get(last)) == Some(&b'\n');
            self.torn |= taken > 0 && !ends_line;
            let error = self.unwritten("it took a part of the line only");
            return Err((taken, error));
        }
        Ok(())
    }

    /// Takes another file, whatever the path leads to.
    #[cfg(test)]
    pub(super) fn replace(&mut self, file: impl Into<Arc<File>>) -> Arc<File> {
        std::mem::replace(&mut self.file, file.into())
    }

    /// Has the next line look where the path leads.
    #[cfg(test)]
    pub(super) fn expire(&mut self) {
        self.looked -= LOOK_EVERY;
    }

    /// Renames this file to `.1`, that one to `.2` and so on; the last one is
    /// gone. Of several gates that want to, one does.
    fn move_aside(&self, bounds: &Bounds) -> std::io::Result<()> {
        self.file.lock()?;
        let moved = self.move_aside_alone(bounds);
        // An error would say that there is no lock.
        let _unlocked = self.file.unlock();
        moved
    }

    fn move_aside_alone(&self, bounds: &Bounds) -> std::io::Result<()> {
        // Whoever had the lock before has moved it.
        if !self.is_at_path(fs::metadata(&self.path).ok().as_ref())
            || self.is_unsettled(bounds.settled)
        {
            return Ok(());
        }
        for number in (1..bounds.keep).rev() {
            match fs::rename(self.aside(number), self.aside(number + 1)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.aside(1))
    }

    /// Whether the last file was moved aside just now. A rename is a change of
    /// the file that was renamed.
    fn is_unsettled(&self, settled: Duration) -> bool {
        let Ok(known) = fs::metadata(self.aside(1)) else {
            return false;
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let changed = Duration::new(
            u64::try_from(known.ctime()).unwrap_or_default(),
            u32::try_from(known.ctime_nsec()).unwrap_or_default(),
        );
        let since = now.unwrap_or_default().checked_sub(changed);
        since.is_some_and(|since| since < settled)
    }

    fn aside(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    /// Follows the path to another file, if the open one was moved or deleted.
    fn look(&mut self) -> Result<(), JournalError> {
        let known = fs::metadata(&self.path).ok();
        if self.is_at_path(known.as_ref()) {
            self.bytes = known.map_or(self.bytes, |known| known.len());
            self.looked = Instant::now();
        } else {
            *self = Self::open(&self.path)?;
        }
        Ok(())
    }

    fn is_at_path(&self, known: Option<&Metadata>) -> bool {
        known.is_some_and(|known| known.dev() == self.device && known.ino() == self.inode)
    }

    pub(super) fn unwritten(&self, reason: impl ToString) -> JournalError {
        JournalError::Write {
            path: self.path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

/// Appends bytes to a file by one `write`. Returns how many of them it has taken.
pub(super) fn append(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            written => return written,
        }
    }
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

pub(super) fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

//! A folder of files that nobody but the user sees: read whole, written whole.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What a file is called while it is being written.
const NEW: &str = ".new-";
/// A file of that kind which is older than this is nobody's any more.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);
/// The most files that are looked at when one tidies.
const LOOKED_AT: usize = 10_000;

/// A folder that is the user's alone.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens a folder, made where there is none. One that others may look into is
    /// closed to them; that fails if it is another user's.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        let rights = fs::metadata(&path)?.permissions();
        if rights.mode() & 0o077 != 0 {
            fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        }
        Ok(Self(path))
    }

    /// A folder in it.
    pub(super) fn sub(&self, name: &str) -> io::Result<Self> {
        Self::open(self.0.join(name))
    }

    /// A file of at most so many bytes; `None` if there is none.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
        let path = self.0.join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => return Err(io::Error::other("it is no file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            // Another process has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
            return Err(io::Error::other(format!("it is over {most} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Puts a whole file in the place of another: whoever reads sees the old one or
    /// the new one, whenever this process ends.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_new(bytes, |new| fs::rename(new, self.0.join(name)))
    }

    /// As [`Folder::write`], where no file is yet; one that is there stays.
    pub(super) fn write_first(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_new(bytes, |new| {
            let linked = fs::hard_link(new, self.0.join(name));
            fs::remove_file(new)?;
            match linked {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        })
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.join(name).is_file()
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes files that have not been written for so long, and what was left of
    /// those that never were to their end.
    pub(super) fn tidy(&self, unused: Duration) {
        let Ok(files) = fs::read_dir(&self.0) else {
            return;
        };
        for file in files.take(LOOKED_AT).flatten() {
            let written = file.metadata().and_then(|found| found.modified());
            let age = written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
            let name = file.file_name();
            let name = name.to_string_lossy();
            let is_over = match age {
                Ok(age) if name.starts_with(NEW) => age > FORGOTTEN,
                Ok(age) if name.ends_with(".json") => age > unused,
                _ => false,
            };
            if is_over && let Err(error) = self.remove(&name) {
                tracing::debug!(%error, "an old file of the cache stays");
            }
        }
    }

    fn write_new(
        &self,
        bytes: &[u8],
        place: impl Fn(&PathBuf) -> io::Result<()>,
    ) -> io::Result<()> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let new = self.0.join(format!("{NEW}{}-{number}", std::process::id()));
        // One that a process of this number left behind may have other rights.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(bytes)?;
            place(&new)
        })();
        if written.is_err() {
            // The first failure says it better.
            let _gone = fs::remove_file(&new);
        }
        written
    }
}

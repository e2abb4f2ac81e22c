//! A folder of files for this user alone.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The prefix of the names of files that are being written.
const NEW: &str = ".new-";
/// A temporary file of this age belongs to a process that ended.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// A folder for this user alone.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens a folder, made if it does not exist. Other users lose access to it, which fails if it
    /// belongs to a different user.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)?;
        let mode = fs::metadata(&path)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        }
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn sub(&self, name: &str) -> io::Result<Self> {
        Self::open(self.0.join(name))
    }

    /// Reads a file of at most `max` bytes; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str, max: u64) -> io::Result<Option<Vec<u8>>> {
        match callgate_files::read(&self.0.join(name), max) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Replaces a file atomically.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(&self.0)?;
        file.write_all(bytes)?;
        file.persist(self.0.join(name))?;
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.join(name).is_file()
    }

    /// Removes a file, if it exists.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes files that were not written for the time `unused`, and abandoned temporary files.
    pub(super) fn tidy(&self, unused: Duration) {
        let files = fs::read_dir(&self.0).into_iter().flatten();
        for file in files.flatten() {
            let written = file.metadata().and_then(|found| found.modified());
            let age = written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
            let name = file.file_name();
            let name = name.to_string_lossy();
            let is_over = match age {
                Ok(age) if name.starts_with(NEW) => age > ABANDONED,
                Ok(age) if name.ends_with(".json") => age > unused,
                _ => false,
            };
            if is_over && let Err(error) = self.remove(&name) {
                tracing::debug!(%error, "an old file of the cache cannot be removed");
            }
        }
    }
}

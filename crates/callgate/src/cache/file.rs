//! A folder of files for this user alone.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Prefix of the names of files that are being written.
const NEW: &str = ".new-";
/// A file of that kind which is older than this was left by a process that ended.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);
/// The most files of a folder that are tidied.
const MAX_TIDIED: usize = 10_000;

/// A folder for this user alone.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens a folder, and makes it if it does not exist. It is closed to other users; that
    /// fails if it is another user's.
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

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// A folder in it.
    pub(super) fn sub(&self, name: &str) -> io::Result<Self> {
        Self::open(self.0.join(name))
    }

    /// A file of at most so many bytes; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str, max: u64) -> io::Result<Option<Vec<u8>>> {
        let path = self.0.join(name);
        let opened = fs::symlink_metadata(&path).and_then(|found| {
            if found.is_file() {
                return File::open(&path);
            }
            Err(io::Error::other("it is not a file"))
        });
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut bytes = Vec::new();
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            return Err(io::Error::other(format!("it is over {max} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Replaces a file at once: a reader sees the old one or the new one.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(&self.0)?;
        file.write_all(bytes)?;
        file.persist(self.0.join(name))?;
        Ok(())
    }

    /// True if there is such a file.
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

    /// Removes files that have not been written for so long, and what was left of files that
    /// were not written to their end.
    pub(super) fn tidy(&self, unused: Duration) {
        let files = fs::read_dir(&self.0).into_iter().flatten();
        for file in files.take(MAX_TIDIED).flatten() {
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
}

//! A folder of files for this user alone, and the file of one server's list.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use callgate_servers::ToolList;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use tempfile::NamedTempFile;

/// Prefix of the names of files that are being written.
const NEW: &str = ".new-";
/// A file of that kind which is older than this was left by a process that ended.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);
/// The most files of a folder that are tidied.
const MAX_TIDIED: usize = 10_000;
/// The most bytes of a list's file. A longer list is not kept.
pub(super) const MAX_FILE: u64 = 64 << 20;
/// The most tools that are read from a file; a server's list is cut there, too.
const MAX_TOOLS: usize = 10_000;
/// The version of the file's form.
const FORM: u32 = 3;

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
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
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
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::other(format!("it is over {most} bytes")));
        }
        Ok(Some(bytes))
    }

    /// Replaces a file at once: a reader sees the old one or the new one.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.new_file(bytes)?.persist(self.0.join(name))?;
        Ok(())
    }

    /// Writes a file that does not exist; one that exists stays.
    pub(super) fn write_first(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.new_file(bytes)?.persist_noclobber(self.0.join(name)) {
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            written => Ok(written.map(drop)?),
        }
    }

    fn new_file(&self, bytes: &[u8]) -> io::Result<NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix(NEW).tempfile_in(&self.0)?;
        file.write_all(bytes)?;
        Ok(file)
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

/// The list of one server, as its file holds it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    form: u32,
    /// The server's identity, which is the file's name, too.
    identity: String,
    /// When the list came, in milliseconds since 1970.
    pub(super) written_ms: u64,
    list: ToolList,
    pub(super) login: Option<String>,
}

impl Entry {
    pub(super) fn new(identity: &str, list: &ToolList, written_ms: u64) -> Self {
        Self {
            form: FORM,
            identity: identity.to_owned(),
            written_ms,
            list: list.clone(),
            login: list.login.as_deref().map(str::to_owned),
        }
    }

    /// Reads the text of a file of this server. The error is a clause about the file.
    pub(super) fn read(bytes: &[u8], identity: &str) -> Result<Self, &'static str> {
        // The error of the parser could quote the text.
        let entry: Self =
            serde_json::from_slice(bytes).map_err(|error| match error.classify() {
                Category::Eof => "it is damaged: it ends too early",
                Category::Data => "it is of another version or damaged",
                Category::Syntax | Category::Io => "it is damaged: it is not JSON",
            })?;
        if entry.form != FORM {
            return Err("it is of another version");
        }
        if entry.identity != identity {
            return Err("it is another server's");
        }
        Ok(entry)
    }

    pub(super) fn into_list(mut self) -> ToolList {
        self.list.tools.truncate(MAX_TOOLS);
        self.list.login = self.login.map(Into::into);
        self.list
    }
}

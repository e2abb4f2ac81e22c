//! Writes rules into a configuration file: what a person chose to allow for
//! good.

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::insert;

/// Bytes of a configuration file that is written to.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// How many names are tried for the file that takes its place.
const MAX_NAMES: usize = 16;

/// Why a rule could not be written into a configuration file. The file is as
/// it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AmendError {
    /// The file cannot be read, or its folder not be written to.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// The text is none that a rule can be put into.
    #[error("{path} cannot take a rule: {reason}; write it under \"permissions\", \"allow\"")]
    Text {
        /// The file.
        path: String,
        /// A clause about the file.
        reason: String,
    },
    /// Somebody else wrote to it at the same time.
    #[error("{path} was changed by something else just now; nothing was written, so try again")]
    Changed {
        /// The file.
        path: String,
    },
}

/// Adds rules to `permissions`, `allow` of a configuration file. Each is a JSON
/// value as that list has them.
///
/// Everything else of the file stays as it is: comments, layout, mode, owner. The
/// new text replaces the old one at once, so that no reader ever sees half of it.
///
/// # Errors
///
/// [`AmendError`]; nothing has been written then.
pub fn allow(path: &Path, rules: &[String]) -> Result<(), AmendError> {
    allow_while(path, rules, || ())
}

/// Whether a configuration file takes rules: everything that [`allow`] does, but that the file
/// stays as it is.
///
/// # Errors
///
/// The [`AmendError`] of `allow`, as far as that does not depend on the rules.
pub fn takes_rules(path: &Path) -> Result<(), AmendError> {
    Amended::of(path, &["\"rule\"".to_owned()]).map(drop)
}

/// As [`allow`]; `meanwhile` is what happens between reading and replacing.
pub(super) fn allow_while(
    path: &Path,
    rules: &[String],
    meanwhile: impl FnOnce(),
) -> Result<(), AmendError> {
    let amended = Amended::of(path, rules)?;
    meanwhile();
    amended.replace()
}

/// A file with what is to take its place.
struct Amended {
    /// As messages show it.
    shown: String,
    path: PathBuf,
    before: Vec<u8>,
    after: Written,
    /// Locked as long as this lives.
    _opened: File,
}

impl Amended {
    fn of(path: &Path, rules: &[String]) -> Result<Self, AmendError> {
        let shown = super::shown(path).display().to_string();
        let file = |error| file_error(&shown, &error);
        // A link is kept, and the file it leads to is replaced.
        let path = path.canonicalize().map_err(file)?;
        // Before it is opened: that could wait for ever where it is a pipe.
        if !path.metadata().map_err(file)?.is_file() {
            return Err(file(std::io::Error::other("it is no regular file")));
        }
        let opened = locked(&path).map_err(file)?;
        let metadata = opened.metadata().map_err(file)?;
        // Replacing it needs no leave of the file's own. Root may write to what is for reading only,
        // and is not to.
        let writable = OpenOptions::new().append(true).open(&path);
        if writable.is_err() || metadata.permissions().readonly() {
            return Err(file(std::io::Error::other("it may not be written to")));
        }
        let before = read(&opened).map_err(file)?;
        let text = |reason| AmendError::Text {
            path: shown.clone(),
            reason,
        };
        let is =
            std::str::from_utf8(&before).map_err(|_| text("it is not UTF-8 text".to_owned()))?;
        let becomes = insert::with_rules(is, rules).map_err(text)?;
        let after = Written::beside(&path, becomes.as_bytes(), &metadata).map_err(file)?;
        Ok(Self {
            shown,
            path,
            before,
            after,
            _opened: opened,
        })
    }

    fn replace(self) -> Result<(), AmendError> {
        let file = |error| file_error(&self.shown, &error);
        let now = File::open(&self.path)
            .and_then(|file| read(&file))
            .map_err(file)?;
        if now != self.before {
            return Err(AmendError::Changed { path: self.shown });
        }
        self.after.replace(&self.path).map_err(file)
    }
}

fn file_error(path: &str, error: &std::io::Error) -> AmendError {
    AmendError::File {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// The file, locked against others of us. One that was replaced while we waited
/// is not the one to read.
fn locked(path: &Path) -> std::io::Result<File> {
    loop {
        let file = File::open(path)?;
        match file.lock() {
            Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        if same(&file, path)? {
            return Ok(file);
        }
    }
}

/// Gives a file to whom the old one belongs.
#[cfg(unix)]
fn give_to_owner(file: &File, old: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let now = file.metadata()?;
    let changed = |now: u32, old: u32| (now != old).then_some(old);
    let (user, group) = (changed(now.uid(), old.uid()), changed(now.gid(), old.gid()));
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    fchown(file, user, group).map_err(|_| {
        let whose = match user {
            Some(_) => "user",
            None => "group",
        };
        std::io::Error::other(format!(
            "it belongs to another {whose}, from whom replacing it would take it"
        ))
    })
}

#[cfg(not(unix))]
fn give_to_owner(_file: &File, _old: &Metadata) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn same(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (opened, named) = (file.metadata()?, path.metadata()?);
    Ok(opened.dev() == named.dev() && opened.ino() == named.ino())
}

#[cfg(not(unix))]
fn same(_file: &File, _path: &Path) -> std::io::Result<bool> {
    Ok(true)
}

fn read(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(std::io::Error::other(format!(
            "it is over {MAX_BYTES} bytes"
        ))),
        false => Ok(bytes),
    }
}

/// The new text under a name of its own, removed if it does not take the
/// file's place.
struct Written {
    path: PathBuf,
    placed: bool,
}

impl Written {
    /// One that is like `old` but for what is in it.
    fn beside(path: &Path, bytes: &[u8], old: &Metadata) -> std::io::Result<Self> {
        let (own, mut file) = create_beside(path, || RandomState::new().hash_one(path))?;
        let written = Self {
            path: own,
            placed: false,
        };
        file.write_all(bytes)?;
        give_to_owner(&file, old)?;
        file.set_permissions(old.permissions())?;
        file.sync_all()?;
        Ok(written)
    }

    fn replace(mut self, path: &Path) -> std::io::Result<()> {
        std::fs::rename(&self.path, path)?;
        self.placed = true;
        // The name lasts once the folder is written, too.
        if let Some(folder) = path.parent()
            && let Ok(folder) = File::open(folder)
        {
            drop(folder.sync_all());
        }
        Ok(())
    }
}

/// Creates a file next to another, under a name that `random` is a part of: processes that
/// were killed may have left files of theirs.
pub(super) fn create_beside(
    path: &Path,
    mut random: impl FnMut() -> u64,
) -> std::io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    // The file may hold secrets: nobody else reads it before it has the
    // mode it is to have.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut tries = 1;
    loop {
        let own = path.with_file_name(format!(".{name}.{:016x}", random()));
        match options.open(&own) {
            Ok(file) => return Ok((own, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MAX_NAMES => {
                tries += 1;
            }
            Err(error) => {
                let own = own.display();
                let message = format!("{own}, which is to take its place, cannot be made: {error}");
                return Err(std::io::Error::new(error.kind(), message));
            }
        }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.placed {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

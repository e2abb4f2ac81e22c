//! Where the configuration file is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// The names looked for in each folder, in this order.
pub(super) const NAMES: [&str; 2] = ["callgate.json", ".mcp.json"];

/// True for the name of a file that [`find`] looks for.
pub fn is_found_name(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    NAMES.iter().any(|it| name == *it)
}

/// The most symbolic links that are followed to a file: as many as Linux follows.
const MAX_LINKS: usize = 40;

/// The configuration file for work in `folder`: `callgate.json`, else `.mcp.json`, in that folder,
/// else in the nearest folder above that has one of them.
///
/// # Errors
///
/// A [`ConfigError`] if a folder cannot be looked into, if the file is a link that leads nowhere,
/// and if another user than this process's and root owns the file, may write it, or may put another
/// one in its place: it says which programs to start, and above lie folders such as `/tmp`. A file
/// that cannot be read is still the answer, so that a folder above never replaces its permissions.
pub fn find(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let folder = std::path::absolute(folder).map_err(|error| ConfigError::unread(folder, error))?;
    for folder in folder.ancestors() {
        for name in NAMES {
            let path = folder.join(name);
            match path.symlink_metadata() {
                Ok(_) => {
                    own(&path)?;
                    return Ok(Some(path));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(ConfigError::unread(&path, error));
                }
            }
        }
    }
    Ok(None)
}

/// Refuses a file that another user may have written, or put there.
///
/// # Errors
///
/// As [`find`].
pub fn own(path: &Path) -> Result<(), ConfigError> {
    let unread = |error| ConfigError::unread(path, error);
    let user = effective_user().map_err(unread)?;
    let absolute = std::path::absolute(path).map_err(unread)?;
    for (place, it) in way(&absolute, 0).map_err(unread)? {
        // Without the `..` of links.
        let plain = place.canonicalize().ok().filter(|_| it.is_dir());
        let plain = plain.unwrap_or(place);
        let (shown, theirs) = (plain.display(), "can put another one in its place");
        let is_theirs = it.uid() != user && it.uid() != 0;
        // In a sticky folder, only the owner of an entry or of the folder can replace the entry.
        let is_sticky = it.is_dir() && it.mode() & 0o1000 != 0;
        if !is_theirs && (is_sticky || !others_may_write(&it, user)) {
            continue;
        }
        let (fault, advice) = if is_theirs {
            let whose = match (it.is_symlink(), it.is_dir()) {
                (true, _) => format!("is behind a link of another user ({shown}), who {theirs}"),
                (_, true) => format!("is in a folder of another user ({shown}), who {theirs}"),
                _ => "belongs to another user".to_owned(),
            };
            (whose, "")
        } else if it.is_dir() {
            let folder = "is in a folder that other users may write to";
            (format!("{folder} ({shown}), who {theirs}"), CLOSE_IT)
        } else {
            ("may be written by other users".to_owned(), CLOSE_IT)
        };
        let message = format!(
            "{fault}, and it says which programs to start; {advice}name it with --config if it is \
             to be used"
        );
        return Err(ConfigError::file(path, message));
    }
    Ok(())
}

/// The advice about a file or folder that others may write to.
const CLOSE_IT: &str = "take that away with \"chmod go-w\", or ";

/// True if others than the owner and root may write a file or folder. A group that has its user's
/// number is that user's own, on systems where each has one.
fn others_may_write(it: &Metadata, user: u32) -> bool {
    let by_group = it.mode() & 0o020 != 0 && it.gid() != 0 && it.gid() != user;
    // The permissions of a link mean nothing.
    !it.is_symlink() && (by_group || it.mode() & 0o002 != 0)
}

/// The file, folders and links on the way to a path, also behind these many links. A user who can
/// replace one of them decides which file is found.
fn way(path: &Path, links: usize) -> std::io::Result<Vec<(PathBuf, Metadata)>> {
    if links > MAX_LINKS {
        return Err(std::io::Error::other(format!(
            "it leads over more than {MAX_LINKS} symbolic links, maybe in a circle; put the file \
             itself there, or a link to it"
        )));
    }
    let mut passed = Vec::new();
    for place in path.ancestors() {
        let found = place.symlink_metadata()?;
        if found.is_symlink() {
            let folder = place.parent().unwrap_or(place);
            passed.extend(way(&folder.join(place.read_link()?), links + 1)?);
        }
        passed.push((place.to_owned(), found));
    }
    Ok(passed)
}

/// The user that this process acts as, who owns the pipes that it makes.
fn effective_user() -> std::io::Result<u32> {
    use std::os::fd::OwnedFd;
    let (reader, _writer) = std::io::pipe()?;
    let metadata = std::fs::File::from(OwnedFd::from(reader)).metadata()?;
    Ok(metadata.uid())
}

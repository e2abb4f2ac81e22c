//! Where the configuration file is.

#[cfg(unix)]
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, ConfigErrorKind};

/// The names looked for in each folder, in this order.
const NAMES: [&str; 2] = ["callgate.json", ".mcp.json"];

/// The configuration file for work in `folder`: `callgate.json`, else
/// `.mcp.json`, in that folder, else in the nearest folder above that has one
/// of them.
///
/// # Errors
///
/// A [`ConfigError`] if a folder cannot be looked into, and if another user than this
/// process's and root owns the file, may write it, or may put another one in its place: it
/// says which programs to start, and above lie folders such as `/tmp`. A file that is there
/// but cannot be read is still the answer, so that its permissions are never
/// silently replaced by those of a folder above.
pub fn find(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let folder = std::path::absolute(folder)
        .map_err(|error| ConfigError::file(folder, ConfigErrorKind::Read, error))?;
    for folder in folder.ancestors() {
        for name in NAMES {
            let path = folder.join(name);
            match path.symlink_metadata() {
                Ok(found) => {
                    own(&path, &found)?;
                    return Ok(Some(path));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(ConfigError::file(&path, ConfigErrorKind::Read, error));
                }
            }
        }
    }
    Ok(None)
}

/// Refuses a file that another user may have written, or put there.
#[cfg(unix)]
fn own(path: &Path, found: &Metadata) -> Result<(), ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |message: String| ConfigError::file(path, ConfigErrorKind::Foreign, message);
    let unread = |error| ConfigError::file(path, ConfigErrorKind::Read, error);
    let user = effective_user().map_err(unread)?;
    let is_ours = |it: &Metadata| it.uid() == user || it.uid() == 0;
    // What a link leads to, and the link, which says where. A link that leads nowhere
    // is found out when the file is read.
    let target = path.metadata().ok();
    for it in [Some(found), target.as_ref()].into_iter().flatten() {
        if !is_ours(it) {
            return Err(refused(format!(
                "belongs to another user, {STARTS}; {NAME_IT}"
            )));
        }
        if others_may_write(it, user) {
            return Err(refused(format!(
                "may be written by other users, {STARTS}; take that away with \"chmod go-w\", or \
                 {NAME_IT}"
            )));
        }
    }
    for folder in folders_to(path) {
        let link = folder.symlink_metadata().map_err(unread)?;
        let led_to = folder.metadata().map_err(unread)?;
        let (shown, theirs) = (folder.display(), "can put another one in its place");
        if !is_ours(&link) || !is_ours(&led_to) {
            return Err(refused(format!(
                "is in a folder of another user ({shown}), who {theirs}, {STARTS}; {NAME_IT}"
            )));
        }
        // Where it is sticky, only an owner can rename or remove what is there.
        if others_may_write(&led_to, user) && led_to.mode() & 0o1000 == 0 {
            return Err(refused(format!(
                "is in a folder that other users may write to ({shown}), who {theirs}, {STARTS}; \
                 take that away with \"chmod go-w\", or {NAME_IT}"
            )));
        }
    }
    Ok(())
}

/// Why it matters who wrote the file, and what to do if that is as it should be.
#[cfg(unix)]
const STARTS: &str = "and it says which programs to start";
#[cfg(unix)]
const NAME_IT: &str = "name it with --config if it is to be used";

/// Whether a file or folder may be written by others than its owner and root. A group
/// that has its user's number is that user's own, on systems where each has one.
#[cfg(unix)]
fn others_may_write(it: &Metadata, user: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let by_group = it.mode() & 0o020 != 0 && it.gid() != 0 && it.gid() != user;
    // The permissions of a link mean nothing.
    !it.is_symlink() && (by_group || it.mode() & 0o002 != 0)
}

/// The folders in which something can be replaced by which another file is found at this
/// path: those it names, and those that lead to where the file and its folder are.
#[cfg(unix)]
fn folders_to(path: &Path) -> BTreeSet<PathBuf> {
    let folder = path.parent();
    let real = folder.and_then(|folder| folder.canonicalize().ok());
    let file = path.canonicalize().ok();
    let starts = [
        folder,
        real.as_deref(),
        file.as_deref().and_then(Path::parent),
    ];
    let all = starts.into_iter().flatten().flat_map(Path::ancestors);
    all.map(Path::to_owned).collect()
}

#[cfg(not(unix))]
fn own(_path: &Path, _found: &Metadata) -> Result<(), ConfigError> {
    Ok(())
}

/// The user that this process acts as: whose a pipe is that it makes.
#[cfg(unix)]
fn effective_user() -> std::io::Result<u32> {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt as _;
    let (reader, _writer) = std::io::pipe()?;
    let metadata = std::fs::File::from(OwnedFd::from(reader)).metadata()?;
    Ok(metadata.uid())
}

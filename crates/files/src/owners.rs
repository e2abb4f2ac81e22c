//! Owners of files, and of the folders and links that lead to them.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// A way for other users to change or replace a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// A clause about the file, such as "belongs to another user".
    pub fault: String,
    /// True if removing write permissions of others would fix it.
    pub is_mode: bool,
}

/// Checks whether a user other than this process's user and root can change or replace a file.
///
/// # Errors
///
/// Those of the system, for a folder or link in the path that cannot be examined.
pub fn exposure(path: &Path) -> io::Result<Option<Exposure>> {
    let user = effective_user()?;
    for (place, it) in path_entries(&std::path::absolute(path)?, 0)? {
        // Without the `..` of links.
        let plain = place.canonicalize().ok().filter(|_| it.is_dir());
        let plain = plain.unwrap_or(place);
        let (shown, theirs) = (plain.display(), "can replace it");
        let is_theirs = it.uid() != user && it.uid() != 0;
        // In a sticky folder, only the owner of an entry or of the folder can replace the entry.
        let is_sticky = it.is_dir() && it.mode() & 0o1000 != 0;
        if !is_theirs && (is_sticky || !others_may_write(&it, user)) {
            continue;
        }
        let fault = match (is_theirs, it.is_symlink(), it.is_dir()) {
            (true, true, _) => format!("is behind a link of another user ({shown}), who {theirs}"),
            (true, _, true) => format!("is in a folder of another user ({shown}), who {theirs}"),
            (true, ..) => "belongs to another user".to_owned(),
            (false, _, true) => {
                format!("is in a folder that other users may write to ({shown}), who {theirs}")
            }
            (false, ..) => "may be written by other users".to_owned(),
        };
        return Ok(Some(Exposure {
            fault,
            is_mode: !is_theirs,
        }));
    }
    Ok(None)
}

/// True if a file, or a folder or link in its path, belongs to a user other than this process's user,
/// root and the owner of `trusted`.
///
/// # Errors
///
/// As [`exposure`].
pub fn has_other_owner(path: &Path, trusted: &Path) -> io::Result<bool> {
    let owners = [0, effective_user()?, trusted.metadata()?.uid()];
    let entries = path_entries(&std::path::absolute(path)?, 0)?;
    Ok(entries.iter().any(|(_, it)| !owners.contains(&it.uid())))
}

/// True if a file belongs to this process's user.
///
/// # Errors
///
/// Those of the system.
pub fn is_own(it: &Metadata) -> io::Result<bool> {
    Ok(it.uid() == effective_user()?)
}

/// True if users other than the owner and root may write a file or folder. A group with the user's
/// id is that user's private group.
fn others_may_write(it: &Metadata, user: u32) -> bool {
    let by_group = it.mode() & 0o020 != 0 && it.gid() != 0 && it.gid() != user;
    // The permissions of a link have no effect.
    !it.is_symlink() && (by_group || it.mode() & 0o002 != 0)
}

/// The file, folders and links of a path, including those of the targets of links. A user who can
/// replace one of them controls which file is opened. `links`: the links that were followed.
fn path_entries(path: &Path, links: usize) -> io::Result<Vec<(PathBuf, Metadata)>> {
    if links > MAX_LINKS {
        return Err(io::Error::other(format!(
            "it leads over more than {MAX_LINKS} symbolic links, maybe in a circle; put the file \
             itself there, or a link to it"
        )));
    }
    let mut entries = Vec::new();
    for place in path.ancestors() {
        let found = place.symlink_metadata()?;
        if found.is_symlink() {
            let folder = place.parent().unwrap_or(place);
            let target = folder.join(place.read_link()?);
            entries.extend(path_entries(&target, links + 1)?);
        }
        entries.push((place.to_owned(), found));
    }
    Ok(entries)
}

/// The effective user of this process, who owns the pipes that it makes.
fn effective_user() -> io::Result<u32> {
    use std::os::fd::OwnedFd;
    let (reader, _writer) = io::pipe()?;
    let metadata = std::fs::File::from(OwnedFd::from(reader)).metadata()?;
    Ok(metadata.uid())
}

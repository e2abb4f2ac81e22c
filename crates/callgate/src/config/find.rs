//! Where the configuration file is.

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
/// A [`ConfigError`] if a folder cannot be looked into, and if the file belongs to
/// another user than this process's and root, or may be written by all: it says
/// which programs to start, and above lie folders such as `/tmp`. A file that is there
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

/// Refuses a file that another user may have written.
#[cfg(unix)]
fn own(path: &Path, found: &Metadata) -> Result<(), ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |message: &str| ConfigError::file(path, ConfigErrorKind::Foreign, message);
    let user =
        effective_user().map_err(|error| ConfigError::file(path, ConfigErrorKind::Read, error))?;
    // What a link leads to, and the link, which says where. A link that leads nowhere
    // is found out when the file is read.
    let target = path.metadata().ok();
    for it in [Some(found), target.as_ref()].into_iter().flatten() {
        if it.uid() != user && it.uid() != 0 {
            return Err(refused(
                "belongs to another user, and it says which programs to start; name it with \
                 --config if it is to be used",
            ));
        }
        // The permissions of a link mean nothing.
        if !it.is_symlink() && it.mode() & 0o002 != 0 {
            return Err(refused(
                "may be written by every user, and it says which programs to start; take that \
                 away with \"chmod o-w\", or name it with --config if it is to be used",
            ));
        }
    }
    Ok(())
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

//! Where the configuration file is.

use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// The names of files in a folder: the two that Callgate has, of which a folder has one, and the
/// one that clients share.
const NAMES: [&str; 3] = ["callgate.json", "callgate.jsonc", ".mcp.json"];

/// The maximum size of a configuration file. Some clients keep old conversations in theirs.
pub const MAX_BYTES: u64 = 64 << 20;

/// True for the name of a file that [`find`] looks for.
pub fn is_found_name(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    NAMES.iter().any(|it| name == *it)
}

/// The configuration file for work in `folder`: `callgate.json` or `callgate.jsonc`, else
/// `.mcp.json`, in that folder, else in the nearest folder above that has one of them.
///
/// # Errors
///
/// A [`ConfigError`] if a folder cannot be looked into, if it has both files of Callgate, if the file
/// is a link that leads nowhere, and if another user than this process's and root owns the file, may
/// write it, or may put a different one in its place: it says which programs to start, and above lie
/// folders such as `/tmp`. A file that cannot be read is still the answer, so that a folder above
/// never replaces its permissions.
pub fn find(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let folder = std::path::absolute(folder).map_err(|error| ConfigError::unread(folder, error))?;
    for folder in folder.ancestors() {
        let [json, jsonc, shared] = NAMES.map(|name| folder.join(name));
        let found = match (exists(&json)?, exists(&jsonc)?) {
            (true, true) => {
                let message = format!(
                    "{} is in the same folder, and only one of them can be used; remove the other one",
                    jsonc.display()
                );
                return Err(ConfigError::file(&json, message));
            }
            (true, false) => json,
            (false, true) => jsonc,
            (false, false) if exists(&shared)? => shared,
            (false, false) => continue,
        };
        own(&found)?;
        return Ok(Some(found));
    }
    Ok(None)
}

/// True if there is a file, or a link, at this path.
fn exists(path: &Path) -> Result<bool, ConfigError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ConfigError::unread(path, error)),
    }
}

/// Refuses a file that another user may have written, or put there. A file that is yet to be made
/// is refused for its folder.
///
/// # Errors
///
/// As [`find`].
pub fn own(path: &Path) -> Result<(), ConfigError> {
    let folder = path.parent().unwrap_or(path);
    let exposure = callgate_files::exposure(if exists(path)? { path } else { folder });
    let Some(exposure) = exposure.map_err(|error| ConfigError::unread(path, error))? else {
        return Ok(());
    };
    let advice = if exposure.is_mode { CLOSE_IT } else { "" };
    let message = format!(
        "{}, and it says which programs to start; {advice}name it with --config if it is to be used",
        exposure.fault
    );
    Err(ConfigError::file(path, message))
}

/// The advice about a file or folder that others may write to.
const CLOSE_IT: &str = "take that away with \"chmod go-w\", or ";

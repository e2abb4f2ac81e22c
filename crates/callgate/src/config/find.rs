//! Where the configuration file is.

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
/// A [`ConfigError`] if a folder cannot be looked into. A file that is there
/// but cannot be read is still the answer, so that its permissions are never
/// silently replaced by those of a folder above.
pub fn find(folder: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let folder = std::path::absolute(folder)
        .map_err(|error| ConfigError::file(folder, ConfigErrorKind::Read, error))?;
    for folder in folder.ancestors() {
        for name in NAMES {
            let path = folder.join(name);
            match path.symlink_metadata() {
                Ok(_) => return Ok(Some(path)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(ConfigError::file(&path, ConfigErrorKind::Read, error));
                }
            }
        }
    }
    Ok(None)
}

//! The configuration file of a running server.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

/// A configuration file as it was when the server read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    hash: [u8; 32],
}

impl ConfigFile {
    /// The file at this path; `None` if it is not a regular file or cannot be read.
    pub fn at(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok().filter(|it| it.is_file())?;
        Some(Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            hash: hash(path)?,
            path: path.to_owned(),
        })
    }

    /// True if the content has changed, or the file is gone.
    pub(crate) fn has_changed(&self) -> bool {
        let Ok(metadata) = self.path.metadata() else {
            return true;
        };
        if metadata.len() != self.bytes {
            return true;
        }
        metadata.modified().ok() != self.modified && hash(&self.path) != Some(self.hash)
    }
}

fn hash(path: &Path) -> Option<[u8; 32]> {
    Some(Sha256::digest(std::fs::read(path).ok()?).into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_other_content_counts_as_a_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("callgate.json");
        assert_eq!(ConfigFile::at(&path), None);
        assert_eq!(ConfigFile::at(folder.path()), None);
        fs::write(&path, "{}").expect("a file");
        let file = ConfigFile::at(&path).expect("a file");
        assert!(!file.has_changed());
        let later = |text: &str, seconds: u64| {
            fs::write(&path, text).expect("a file");
            let time = SystemTime::now() + Duration::from_secs(seconds);
            let written = fs::File::options().write(true).open(&path);
            written
                .and_then(|file| file.set_modified(time))
                .expect("a time");
        };
        later("{}", 60);
        assert!(!file.has_changed(), "the same text, written again");
        later("[]", 120);
        assert!(file.has_changed(), "of the same size");
        later("{ }", 180);
        assert!(file.has_changed());
        later("{}", 240);
        assert!(!file.has_changed(), "restored");
        fs::remove_file(&path).expect("a file");
        assert!(file.has_changed());
    }
}

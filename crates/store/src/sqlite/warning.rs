//! Warnings about a store.

use std::fmt;
use std::path::PathBuf;

/// A fact about a store that its user should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreWarning {
    /// The folder is on a file system over a network, whose locks may not work.
    NetworkFileSystem {
        folder: PathBuf,
        /// Its kind, such as `NFS`.
        kind: &'static str,
    },
    /// The database was damaged; it was set aside at this place, and a new one is in use.
    Damaged { set_aside: PathBuf },
}

impl fmt::Display for StoreWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NetworkFileSystem { folder, kind } => write!(
                f,
                "the store in {} is on a network file system ({kind}), where several processes can \
                 damage it; choose a local folder",
                folder.display()
            ),
            Self::Damaged { set_aside } => write!(
                f,
                "the store was damaged, and earlier runs are not in it; the damaged file is {}, \
                 which can be removed",
                set_aside.display()
            ),
        }
    }
}

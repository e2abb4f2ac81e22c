//! Stamps: a file that says from what a folder was made, so that it is made
//! again only when that changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::checksum;

/// The inputs that a folder is made from, and the file that records them.
pub(crate) struct Stamp {
    file: PathBuf,
    wanted: String,
}

impl Stamp {
    /// The stamp of `folder`, made from these inputs: the text of lock files, tool versions.
    pub(crate) fn new(folder: &Path, inputs: &[&str]) -> Self {
        // Lengths keep inputs apart: ["ab", "c"] is not ["a", "bc"].
        let line = |input: &&str| format!("{} {input}\n", input.len());
        let text: String = inputs.iter().map(line).collect();
        Self {
            file: folder.join(".stamp"),
            wanted: checksum::of_bytes(text.as_bytes()),
        }
    }

    /// True if the folder was made, whole, from the same inputs.
    pub(crate) fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|found| found.trim_end() == self.wanted)
    }

    /// Marks the folder as whole; called last.
    pub(crate) fn set(&self) -> Result<()> {
        fs::write(&self.file, format!("{}\n", self.wanted))
            .with_context(|| format!("cannot write {}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_for_its_inputs_only() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = Stamp::new(folder.path(), &["ab", "c"]);
        assert!(!stamp.is_current(), "a fresh folder has no stamp");
        stamp.set().unwrap();
        assert!(Stamp::new(folder.path(), &["ab", "c"]).is_current());
        assert!(!Stamp::new(folder.path(), &["a", "bc"]).is_current());
        assert!(!Stamp::new(folder.path(), &["ab", "d"]).is_current());
        assert!(!Stamp::new(&folder.path().join("other"), &["ab", "c"]).is_current());
    }
}

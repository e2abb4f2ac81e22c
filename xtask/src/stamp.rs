//! Folders that are filled again only if their inputs have changed.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::{checksum, files, say};

/// Empties and fills a folder, and marks it as complete. Does nothing if it was filled from the same
/// inputs, such as the texts of lock files and versions of tools. `what` is printed before.
pub(crate) fn fill(
    folder: &Path,
    inputs: &[&str],
    what: &str,
    fill: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // Lengths keep inputs apart: ["ab", "c"] is not ["a", "bc"].
    let line = |input: &&str| format!("{} {input}\n", input.len());
    let text: String = inputs.iter().map(line).collect();
    let wanted = checksum::of_bytes(text.as_bytes());
    let stamp = folder.join(".stamp");
    if fs::read_to_string(&stamp).is_ok_and(|found| found.trim_end() == wanted) {
        say::detail(format_args!("as pinned, in {}", folder.display()));
        return Ok(());
    }
    say::detail(what);
    files::empty(folder)?;
    fill().with_context(|| format!("cannot fill {}", folder.display()))?;
    files::write(&stamp, &format!("{wanted}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_filled_once_for_same_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let filled = |inputs: &[&str]| {
            let mut filled = false;
            fill(&path, inputs, "files", || {
                assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
                filled = true;
                Ok(())
            })
            .unwrap();
            filled
        };
        assert!(filled(&["ab", "c"]));
        assert!(!filled(&["ab", "c"]));
        assert!(filled(&["a", "bc"]));
        assert!(fill(&path, &["d"], "files", || anyhow::bail!("no")).is_err());
        assert!(filled(&["a", "bc"]));
    }
}

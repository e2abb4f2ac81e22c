//! SHA-256 of files, and copies that are checked before they are put in place.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::files;

/// The SHA-256 of a file, as 64 lower-case hexadecimal digits.
pub(crate) fn of_file(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(of_bytes(&bytes))
}

/// The SHA-256 of some bytes, as 64 lower-case hexadecimal digits.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies `from` to a temporary file beside `to`, and renames it only if the copy has the checksum.
pub(crate) fn copy_verified(from: &Path, to: &Path, sha256: &str) -> Result<()> {
    let folder = to.parent().context("the copy needs a folder")?;
    let temporary = folder.join(format!(".callgate-{}.part", std::process::id()));
    let copied = copy_checked(from, &temporary, sha256).and_then(|()| {
        fs::rename(&temporary, to).with_context(|| format!("cannot write {}", to.display()))
    });
    if copied.is_err() {
        // The error of the copy matters more than an error of the removal.
        let _ = fs::remove_file(&temporary);
    }
    copied
}

fn copy_checked(from: &Path, to: &Path, sha256: &str) -> Result<()> {
    files::copy(from, to)?;
    // Reads the copy, not the original.
    let found = of_file(to)?;
    if found != sha256 {
        bail!(
            "{} has SHA-256 {found}, but {sha256} is the one pinned in xtask; it is not used: \
             get a fresh copy",
            from.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn only_files_with_right_checksum_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (good, bad) = (folder.path().join("good"), folder.path().join("bad"));
        fs::write(&good, "abc").unwrap();
        fs::write(&bad, "abd").unwrap();
        let cache = folder.path().join("cache");

        let error = copy_verified(&bad, &cache.join("file"), ABC)
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("it is not used: get a fresh copy"),
            "{error}"
        );
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);

        copy_verified(&good, &cache.join("file"), ABC).unwrap();
        assert_eq!(fs::read_to_string(cache.join("file")).unwrap(), "abc");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    }
}

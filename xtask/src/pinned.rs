//! Packages of npm, pinned by a `package.json` and its lock file, installed in
//! a folder below the target directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::stamp::Stamp;
use crate::{process, say, tools};

/// Makes `folder/node_modules` what the two files in `pins` say. Does nothing
/// where it is that already; `what` is said before anything is fetched.
pub(crate) fn install(pins: &Path, folder: &Path, what: &str) -> Result<()> {
    let manifest = read(&pins.join("package.json"))?;
    let lock = read(&pins.join("package-lock.json"))?;
    let node = process::version(Command::new("node").arg("--version")).unwrap_or_default();
    let stamp = Stamp::new(folder, &[&manifest, &lock, &node]);
    if stamp.is_current() {
        say::detail(format_args!("npm: as pinned, in {}", folder.display()));
        return Ok(());
    }
    say::detail(format_args!("npm: {what}"));
    empty(folder)?;
    fs::write(folder.join("package.json"), manifest)?;
    fs::write(folder.join("package-lock.json"), lock)?;
    let mut npm = Command::new(tools::NPM);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(folder);
    process::run(&mut npm)?;
    stamp.set()
}

/// A file's text; an error names the file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// An empty folder, whatever an earlier attempt left there.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A registry's address in a lock file binds everybody to one registry.
    #[test]
    fn the_lock_files_name_no_registry() {
        let folders = [
            "crates/check/typescript",
            "fixtures/conformance",
            "fixtures/real-servers",
            "fixtures/tool-corpus",
        ];
        for folder in folders {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            let lock = read(&root.join(folder).join("package-lock.json")).unwrap();
            assert!(
                !lock.contains("\"resolved\""),
                "{folder}: set omit-lockfile-registry-resolved"
            );
        }
    }
}

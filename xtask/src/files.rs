//! Files and folders, with errors that name them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file, and creates its folder if necessary.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    create_folder(path.parent())?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a file with its permissions, and creates its folder if necessary.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    create_folder(to.parent())?;
    let copied = fs::copy(from, to);
    copied.with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Makes an empty folder; removes an existing one.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    create_folder(Some(folder))
}

fn create_folder(folder: Option<&Path>) -> Result<()> {
    let folder = folder.context("a file needs a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

pub(crate) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Copies the content of a folder.
pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<()> {
    create_folder(Some(to))?;
    let mut copy = Command::new("cp");
    process::output(copy.arg("-R").arg(from.join(".")).arg(to))?;
    Ok(())
}

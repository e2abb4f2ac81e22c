//! TypeScript, which checks scripts before they run: pinned in `crates/check/typescript/` and
//! installed in `typescript` below the target directory, where a `callgate` that was built there
//! searches for it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{pinned, process, say};

/// The variable with the native executable, for the tests; set-up uses it if it is set.
pub(crate) const VARIABLE: &str = "CALLGATE_TYPESCRIPT";

/// Installs TypeScript unless it is installed. Returns the native executable.
pub(crate) fn install(project: &Project) -> Result<PathBuf> {
    say::step("TypeScript");
    if let Some(file) = pinned::named(VARIABLE)? {
        return Ok(file);
    }
    let pins = project.root.join("crates/check/typescript");
    let folder = project.target_dir.join("typescript");
    pinned::npm(&pins, &folder, "the compiler of this platform, 27 MB")?;
    // npm installs only the package of this platform.
    let packages = folder.join("node_modules/@typescript");
    let installed = packages.read_dir().into_iter().flatten().flatten();
    let mut programs = installed.map(|package| package.path().join("lib/tsc"));
    let found = programs.find(|file| file.is_file());
    found.context("npm installed no native TypeScript for this platform")
}

/// Installs it if npm is installed. Callgate also runs without it, and then reports that scripts are
/// not checked.
pub(crate) fn install_if_possible(project: &Project) -> Result<()> {
    let npm = process::version(Command::new("npm").arg("--version"));
    if npm.is_none() && env::var_os(VARIABLE).is_none() {
        say::step("TypeScript");
        say::detail("npm is missing, so scripts will run without a type check");
        return Ok(());
    }
    install(project).map(|_| ())
}

//! TypeScript, which checks scripts before they run: pinned in
//! `crates/check/typescript/` and installed in `typescript` below the target
//! directory, where a `callgate` that was built there looks for it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{pinned, process, say, tools};

/// Names the native executable to tests, and to set-up one that was installed before.
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
    // The executable that npm chose for this platform.
    let packages = folder.join("node_modules/@typescript");
    let program = format!("lib/tsc{}", env::consts::EXE_SUFFIX);
    let installed = packages.read_dir().into_iter().flatten().flatten();
    let mut programs = installed.map(|package| package.path().join(&program));
    let found = programs.find(|file| file.is_file());
    found.context("npm installed no native TypeScript for this platform")
}

/// Installs it where npm is there to do so. Callgate runs without it, too, and
/// says that it did not check.
pub(crate) fn install_if_possible(project: &Project) -> Result<()> {
    let npm = process::version(Command::new(tools::NPM).arg("--version"));
    if npm.is_none() && env::var_os(VARIABLE).is_none() {
        say::step("TypeScript");
        say::detail("npm is missing, so scripts will run without a type check");
        return Ok(());
    }
    install(project).map(|_| ())
}

//! The official conformance suite of the protocol, which end-to-end tests run: pinned in
//! `fixtures/conformance/` and installed in `conformance` below the target directory.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::project::{self, Project};
use crate::{npm, process, say, tools};

/// Names the folder to tests, and to set-up one that was filled before.
pub(crate) const VARIABLE: &str = "CALLGATE_CONFORMANCE";

/// The oldest Node.js that the suite runs on.
const OLDEST_NODE: u32 = 22;

/// Installs what is not there yet; the folder with `node_modules` in it.
pub(crate) fn install(project: &Project) -> Result<PathBuf> {
    say::step("conformance suite");
    if let Some(folder) = project::named(VARIABLE)? {
        if !folder.join("node_modules").is_dir() {
            bail!(
                "{VARIABLE} names {}, which has no node_modules: unset it",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let pins = project.root.join("fixtures/conformance");
    let folder = project.target_dir.join("conformance");
    let what = "the suite and a Node.js for it, 240 MB (a minute with a near registry)";
    npm::install(&pins, &folder, what).context("cannot install the conformance suite")?;
    require_node(&folder)?;
    Ok(folder)
}

/// The lock file has a Node.js for Linux; elsewhere the machine's own must do.
fn require_node(folder: &std::path::Path) -> Result<()> {
    let own = folder.join("node_modules/.bin/node");
    let program = if own.exists() { own } else { "node".into() };
    let version = process::version(Command::new(&program).arg("--version")).unwrap_or_default();
    if tools::numbers(&version).is_none_or(|found| found < (OLDEST_NODE, 0, 0)) {
        bail!(
            "the conformance suite needs Node.js {OLDEST_NODE} or newer, but {} is {version:?}: \
             install one from https://nodejs.org",
            program.display()
        );
    }
    say::detail(format_args!("node {version} ({})", program.display()));
    Ok(())
}

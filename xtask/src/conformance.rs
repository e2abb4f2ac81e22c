//! `cargo xtask conformance`: the official conformance suite of the protocol
//! against Callgate's client and server, pinned in `fixtures/conformance/` and installed
//! in `conformance` below the target directory.
//!
//! The suite is run by the end-to-end tests of the same name, so that there is
//! one list of scenarios and one judgement; this command runs only those.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::project::Project;
use crate::{npm, process, say, test};

/// Names the folder to tests, and to set-up one that somebody else filled.
pub(crate) const VARIABLE: &str = "CALLGATE_CONFORMANCE";

/// The oldest Node.js that the suite runs on.
const OLDEST_NODE: u32 = 22;

#[derive(Args)]
pub(crate) struct Options {
    /// Arguments for `cargo nextest run`, for instance `--no-capture`.
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    let selected = [
        "--test",
        "e2e",
        "--success-output",
        "final",
        "-E",
        "test(/^conformance::/)",
    ];
    let arguments = selected
        .into_iter()
        .map(str::to_owned)
        .chain(options.arguments.iter().cloned());
    test::run(project, &test::Options::of(arguments.collect()))
}

/// Installs what is not there yet; the folder with `node_modules` in it.
pub(crate) fn install(project: &Project) -> Result<PathBuf> {
    say::step("conformance suite");
    if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let folder = std::path::absolute(named)?;
        if !folder.join("node_modules").is_dir() {
            bail!(
                "{VARIABLE} names {}, which has no node_modules: unset it",
                folder.display()
            );
        }
        say::detail(format_args!("{VARIABLE} names it: {}", folder.display()));
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
    if major(&version).is_none_or(|major| major < OLDEST_NODE) {
        bail!(
            "the conformance suite needs Node.js {OLDEST_NODE} or newer, but {} is {version:?}: \
             install one from https://nodejs.org",
            program.display()
        );
    }
    say::detail(format_args!("node {version} ({})", program.display()));
    Ok(())
}

/// `24` in `v24.21.0`.
fn major(version: &str) -> Option<u32> {
    let numbers = version.trim().strip_prefix('v')?;
    numbers.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_node_prints() {
        let check = |version, expected| assert_eq!(major(version), expected, "{version}");
        check("v24.21.0", Some(24));
        check("v8.0.0\n", Some(8));
        check("24.21.0", None);
        check("", None);
    }
}

//! Packages of npm and PyPI that are pinned in the checkout, installed below the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::project::{self, Project};
use crate::stamp::fill;
use crate::{files, process, tools};

/// The path of an earlier installation, from this environment variable.
pub(crate) fn named(variable: &str) -> Result<Option<PathBuf>> {
    let named = project::named(variable)?;
    if let Some(path) = &named {
        let shown = path.display();
        ensure!(
            path.exists(),
            "{variable} names {shown}, which is not there: unset it"
        );
    }
    Ok(named)
}

/// Installs in `folder/node_modules` the packages of the `package.json` and lock file in `pins`.
pub(crate) fn npm(pins: &Path, folder: &Path, what: &str) -> Result<()> {
    npm_by("ci", pins, folder, what)
}

/// As [`npm`], where the lock file cannot have all packages of other platforms, because the registry
/// lacks some: `npm ci` refuses that, `npm install` takes what it has.
pub(crate) fn npm_of_platform(pins: &Path, folder: &Path, what: &str) -> Result<()> {
    npm_by("install", pins, folder, what)
}

fn npm_by(command: &str, pins: &Path, folder: &Path, what: &str) -> Result<()> {
    let names = ["package.json", "package-lock.json"];
    let [manifest, lock] = names.map(|name| pins.join(name));
    let node = process::version(Command::new("node").arg("--version")).unwrap_or_default();
    let inputs = [&*files::read(&manifest)?, &*files::read(&lock)?, &node];
    fill(folder, &inputs, &format!("npm: {what}"), || {
        for file in [&manifest, &lock] {
            files::copy(file, &folder.join(files::name(file)))?;
        }
        let mut npm = Command::new(tools::NPM);
        npm.args([command, "--ignore-scripts", "--no-audit", "--no-fund"]);
        process::run(npm.current_dir(folder))
    })
}

/// Makes a virtual environment of the packages in `requirements.txt` of `pins`, with these
/// additional `flags` of pip.
pub(crate) fn pip(pins: &Path, folder: &Path, what: &str, flags: &[&str]) -> Result<()> {
    let requirements = pins.join("requirements.txt");
    let version = process::version(Command::new(tools::python()).arg("-VV")).unwrap_or_default();
    // A virtual environment has its own place written into its programs.
    let inputs = [
        &*files::read(&requirements)?,
        &version,
        &folder.to_string_lossy(),
    ];
    let what = format!("PyPI: {what}, each checked against its hash");
    fill(folder, &inputs, &what, || {
        // Wheels only: a source package would run code of its own while it is installed.
        let safe = [
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--requirement",
        ];
        let mut pip = pip_in(folder)?;
        process::run(pip.args(safe).arg(&requirements).args(flags))
    })
}

/// The command that installs in a new virtual environment, without the names of packages.
pub(crate) fn pip_in(folder: &Path) -> Result<Command> {
    process::run(
        Command::new(tools::python())
            .args(["-m", "venv"])
            .arg(folder),
    )?;
    let mut pip = Command::new(python_in(folder));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
    pip.arg("--disable-pip-version-check");
    Ok(pip)
}

/// The Python of a virtual environment.
pub(crate) fn python_in(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    })
}

/// MCP servers of other people for the tests: `node/node_modules/.bin/…` and `venv/bin/…` in a
/// folder, which this variable names to the tests.
pub(crate) const REAL_SERVERS: &str = "CALLGATE_REAL_SERVERS";

/// Installs those servers; their folder.
pub(crate) fn real_servers(project: &Project) -> Result<PathBuf> {
    crate::say::step("MCP servers for the tests");
    if let Some(folder) = named(REAL_SERVERS)? {
        return Ok(folder);
    }
    let pins = project.root.join("fixtures/real-servers");
    let folder = project.target_dir.join("real-servers");
    npm(
        &pins,
        &folder.join("node"),
        "three servers (seconds with a near registry)",
    )?;
    pip(&pins, &folder.join("venv"), "two servers", &[])?;
    Ok(folder)
}

/// The official conformance suite of the protocol, which end-to-end tests run: `node_modules` in a
/// folder, which this variable names to the tests.
pub(crate) const CONFORMANCE: &str = "CALLGATE_CONFORMANCE";

/// Installs that suite; its folder.
pub(crate) fn conformance(project: &Project) -> Result<PathBuf> {
    crate::say::step("conformance suite");
    if let Some(folder) = named(CONFORMANCE)? {
        return Ok(folder);
    }
    let pins = project.root.join("fixtures/conformance");
    let folder = project.target_dir.join("conformance");
    let what = "the suite and a Node.js for it, 240 MB (a minute with a near registry)";
    npm(&pins, &folder, what)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A registry's address in a lock file binds everybody to one registry.
    #[test]
    fn the_lock_files_name_no_registry() {
        let folders = [
            "crates/check/typescript",
            "fixtures/clients",
            "fixtures/conformance",
            "fixtures/real-servers",
            "fixtures/tool-corpus",
        ];
        for folder in folders {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
            let lock = files::read(&root.join(folder).join("package-lock.json")).unwrap();
            assert!(
                !lock.contains("\"resolved\""),
                "{folder}: set omit-lockfile-registry-resolved"
            );
        }
    }
}

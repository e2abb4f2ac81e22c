//! Installs packages of npm and PyPI that are pinned in the checkout, below the target directory.

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

/// Like [`npm`], for a lock file that lacks packages of other platforms, because the registry lacks
/// them: `npm ci` refuses such a file, `npm install` accepts it.
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
        let mut npm = Command::new("npm");
        npm.args([command, "--ignore-scripts", "--no-audit", "--no-fund"]);
        process::run(npm.current_dir(folder))
    })
}

/// Makes a virtual environment of the packages in `requirements.txt` of `pins`, with these
/// additional `flags` of pip.
pub(crate) fn pip(pins: &Path, folder: &Path, what: &str, flags: &[&str]) -> Result<()> {
    let requirements = pins.join("requirements.txt");
    let version = process::version(Command::new(tools::python()).arg("-VV")).unwrap_or_default();
    // The programs of a virtual environment contain its path.
    let inputs = [
        &*files::read(&requirements)?,
        &version,
        &folder.to_string_lossy(),
    ];
    let what = format!("PyPI: {what}, each checked against its hash");
    fill(folder, &inputs, &what, || {
        // Only wheels: a source package would run its own code during the installation.
        let mut pip = pip_in(folder)?;
        pip.args(["--require-hashes", "--only-binary", ":all:"]);
        process::run(pip.arg("--requirement").arg(&requirements).args(flags))
    })
}

/// Makes a virtual environment. Returns the command that installs packages in it, without their names.
pub(crate) fn pip_in(folder: &Path) -> Result<Command> {
    let mut venv = Command::new(tools::python());
    process::run(venv.args(["-m", "venv"]).arg(folder))?;
    let mut pip = Command::new(python_in(folder));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
    pip.arg("--disable-pip-version-check");
    Ok(pip)
}

/// The Python of a virtual environment.
pub(crate) fn python_in(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// The variable with the folder of third-party MCP servers for the tests, which are in
/// `node/node_modules/.bin` and `venv/bin`.
pub(crate) const REAL_SERVERS: &str = "CALLGATE_REAL_SERVERS";

/// Installs those servers and returns their folder.
pub(crate) fn real_servers(project: &Project) -> Result<PathBuf> {
    crate::say::step("MCP servers for the tests");
    if let Some(folder) = named(REAL_SERVERS)? {
        return Ok(folder);
    }
    let pins = project.root.join("fixtures/real-servers");
    let folder = project.target_dir.join("real-servers");
    let what = "three servers (seconds with a near registry)";
    npm(&pins, &folder.join("node"), what)?;
    pip(&pins, &folder.join("venv"), "two servers", &[])?;
    Ok(folder)
}

/// The variable with the folder of the protocol's official conformance suite for the tests, which is
/// in `node_modules`.
pub(crate) const CONFORMANCE: &str = "CALLGATE_CONFORMANCE";

/// Installs that suite and returns its folder.
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

    /// An address in a lock file would prescribe one registry.
    #[test]
    fn lock_files_name_no_registry() {
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

//! MCP servers of other people for the tests, pinned in `fixtures/real-servers/` and installed
//! below the target directory: `node/node_modules/.bin/…` and `venv/bin/…`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::project::{self, Project};
use crate::stamp::Stamp;
use crate::{npm, process, say, tools};

/// Names the folder to tests, and to set-up a folder that was filled before.
pub(crate) const VARIABLE: &str = "CALLGATE_REAL_SERVERS";

/// Installs what is not there yet; the folder with `node` and `venv` in it.
pub(crate) fn install(project: &Project) -> Result<PathBuf> {
    say::step("MCP servers for the tests");
    if let Some(folder) = project::named(VARIABLE)? {
        if !folder.is_dir() {
            bail!(
                "{VARIABLE} names {}, which is not a folder: unset it",
                folder.display()
            );
        }
        return Ok(folder);
    }
    let pins = project.root.join("fixtures/real-servers");
    let folder = project.target_dir.join("real-servers");
    let what = "three servers and their dependencies (seconds with a near registry)";
    npm::install(&pins, &folder.join("node"), what).context("cannot install the npm servers")?;
    let what = "two servers and their dependencies";
    pip(&pins, &folder.join("venv"), what, &[]).context("cannot install the Python servers")?;
    Ok(folder)
}

/// The Python of a virtual environment.
pub(crate) fn python_in(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    })
}

/// Makes a virtual environment of what `requirements.txt` among the pins says;
/// with `flags` for pip besides.
pub(crate) fn pip(pins: &Path, folder: &Path, what: &str, flags: &[&str]) -> Result<()> {
    let requirements = pins.join("requirements.txt");
    let python = tools::python();
    let version = process::version(Command::new(&python).arg("-VV")).unwrap_or_default();
    // A virtual environment has its own place written into its programs.
    let place = folder.to_string_lossy();
    let stamp = Stamp::new(folder, &[&npm::read(&requirements)?, &version, &place]);
    if stamp.is_current() {
        say::detail(format_args!("PyPI: as pinned, in {}", folder.display()));
        return Ok(());
    }
    say::detail(format_args!("PyPI: {what}, each checked against its hash"));
    npm::empty(folder)?;
    process::run(Command::new(&python).args(["-m", "venv"]).arg(folder))?;
    let mut pip = Command::new(python_in(folder));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]);
    // Wheels only: a source package would run code of its own while it is installed.
    pip.args([
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--requirement",
    ]);
    pip.arg(&requirements).args(flags);
    process::run(&mut pip)?;
    stamp.set()
}

//! The test runner: an installed one, or one that is built below the target directory.

use std::env;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{process, say, tools};

/// The version that is built if none is installed. This toolchain must compile it.
const PINNED: &str = "0.9.143";

/// The oldest version that understands `.config/nextest.toml`.
const OLDEST: (u32, u32, u32) = (0, 9, 100);

/// Builds a test runner if none is installed. Returns `cargo nextest run --workspace`.
pub(crate) fn install(project: &Project) -> Result<Command> {
    say::step("cargo-nextest");
    let root = project.target_dir.join("tools");
    let path = env::var_os("PATH").unwrap_or_default();
    let own = [root.join("bin")].into_iter();
    let path = env::join_paths(own.chain(env::split_paths(&path)))?;
    let nextest = |arguments: &[&str]| {
        let mut cargo = project.cargo();
        cargo.env("PATH", &path).arg("nextest").args(arguments);
        cargo
    };
    let version = process::version(&mut nextest(&["--version"])).unwrap_or_default();
    let version = version.lines().next().unwrap_or("not installed");
    say::detail(version);
    if tools::numbers(version).is_none_or(|found| found < OLDEST) {
        say::detail(format_args!(
            "building {PINNED} into {} (once; some ten minutes on two cores; a ready one from \
             https://nexte.st on the PATH spares it)",
            root.display()
        ));
        let mut cargo = project.cargo();
        cargo.args(["install", "cargo-nextest", "--locked", "--version", PINNED]);
        // Its intermediate files go to a temporary folder of cargo.
        cargo.env_remove("CARGO_TARGET_DIR");
        process::run(cargo.arg("--root").arg(&root))
            .context("cannot build cargo-nextest: install it by hand")?;
    }
    Ok(nextest(&["run", "--workspace"]))
}

//! The test runner: one that is installed, else one built below the target directory.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{process, say, tools};

/// The version that is built when there is none; one that this toolchain compiles.
const PINNED: &str = "0.9.143";

/// The oldest one that understands `.config/nextest.toml`.
const OLDEST: (u32, u32, u32) = (0, 9, 100);

/// A test runner that is there.
pub(crate) struct Nextest {
    program: PathBuf,
}

impl Nextest {
    /// `cargo nextest run --workspace`, in the checkout.
    pub(crate) fn run(&self, project: &Project) -> Command {
        // Cargo's own variables are needed as it sets them for a subcommand: CARGO above all.
        let cargo = project.cargo();
        let mut command = Command::new(&self.program);
        command
            .current_dir(&project.root)
            .env("CARGO", cargo.get_program());
        for (name, value) in cargo.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(["nextest", "run", "--workspace"]);
        command
    }
}

/// Finds a test runner or builds one.
pub(crate) fn install(project: &Project) -> Result<Nextest> {
    say::step("cargo-nextest");
    let root = project.target_dir.join("tools");
    let own = root.join(format!("bin/cargo-nextest{}", std::env::consts::EXE_SUFFIX));
    for program in [PathBuf::from("cargo-nextest"), own.clone()] {
        let version = process::version(Command::new(&program).args(["nextest", "--version"]));
        let Some(version) = version else { continue };
        let line = version.lines().next().unwrap_or_default();
        if tools::numbers(line).is_some_and(|found| found >= OLDEST) {
            say::detail(format_args!("{line} ({})", program.display()));
            return Ok(Nextest { program });
        }
        let (major, minor, patch) = OLDEST;
        say::detail(format_args!(
            "{line} is older than {major}.{minor}.{patch}: not used"
        ));
    }
    say::detail(format_args!(
        "not installed: building {PINNED} into {} (once; some ten minutes on two cores; \
         a ready one from https://nexte.st on the PATH spares it)",
        root.display()
    ));
    let mut cargo = project.cargo();
    cargo
        .args([
            "install",
            "cargo-nextest",
            "--locked",
            "--version",
            PINNED,
            "--root",
        ])
        .arg(root);
    // Its thousand intermediate files go to a folder that cargo removes again.
    cargo.env_remove("CARGO_TARGET_DIR");
    process::run(&mut cargo).context("cannot build cargo-nextest: install it by hand")?;
    Ok(Nextest { program: own })
}

//! `cargo xtask bench`: runs the benchmarks with the program of the packages.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::{demo, process, say, setup};

/// The variable with the measured program.
const PROGRAM: &str = "CALLGATE_BENCH_PROGRAM";

pub(crate) fn run(project: &Project) -> Result<()> {
    build(project)?;
    say::step("benchmarks");
    let mut bench = project.cargo();
    bench.args(["bench", "--locked", "--workspace", "--bench", "budgets"]);
    run_with_program(project, &mut bench)
}

/// Runs a command that starts the built program, or the one in [`PROGRAM`].
pub(crate) fn run_with_program(project: &Project, command: &mut Command) -> Result<()> {
    if env::var_os(PROGRAM).is_none() {
        command.env(PROGRAM, project.built_as("dist", "callgate"));
    }
    process::run(command)
}

/// Builds the program of the packages and, in release mode, the programs that measure it.
pub(crate) fn build(project: &Project) -> Result<()> {
    setup::for_build(project)?;
    say::step("build (the first time: about twenty-five minutes on two cores)");
    demo::build(project, "dist")?;
    let mut build = project.cargo();
    build.args(["build", "--locked", "--release", "--workspace"]);
    process::run(build.args(["--bin", "callgate-odd-server", "--example", "soak"]))
}

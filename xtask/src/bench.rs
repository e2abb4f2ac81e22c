//! `cargo xtask bench`: the benchmarks, in release mode.

use std::process::ExitCode;

use anyhow::Result;

use crate::project::Project;
use crate::{process, say, setup};

pub(crate) fn run(project: &Project) -> Result<ExitCode> {
    build(project)?;
    say::step("benchmarks");
    let mut bench = project.cargo();
    bench.args(["bench", "--locked", "--workspace", "--bench", "budgets"]);
    process::run(&mut bench)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds every program and example in release mode.
pub(crate) fn build(project: &Project) -> Result<()> {
    setup::for_build(project)?;
    say::step("build in release mode (the first time: about twenty minutes on two cores)");
    // The whole workspace both times: a part of it would choose other features
    // for its dependencies and compile them again; so would a build without the
    // development dependencies, which `--examples` brings in.
    let mut build = project.cargo();
    build.args([
        "build",
        "--locked",
        "--release",
        "--workspace",
        "--bins",
        "--examples",
    ]);
    process::run(&mut build)
}

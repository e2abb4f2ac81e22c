//! `cargo xtask bench`: the benchmarks, in release mode.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::project::Project;
use crate::{process, say, setup};

const BENCHMARKS: [&str; 7] = [
    "gate", "calls", "policy", "flow", "start", "check", "search",
];

#[derive(Args)]
pub(crate) struct Options {
    /// The benchmarks to run, all by default.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(BENCHMARKS))]
    names: Vec<String>,

    /// What is passed on to the benchmarks.
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    build(project)?;
    say::step("benchmarks");
    let mut bench = project.cargo();
    bench.args(["bench", "--locked", "--workspace"]);
    for name in BENCHMARKS {
        if options.names.is_empty() || options.names.iter().any(|named| named == name) {
            bench.args(["--bench", name]);
        }
    }
    bench.arg("--");
    process::run(bench.args(&options.arguments))?;
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

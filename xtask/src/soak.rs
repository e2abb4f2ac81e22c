//! `cargo xtask soak`: runs many clients of `callgate serve --http` for minutes, while servers start
//! and end.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::project::Project;
use crate::{bench, say};

#[derive(Args)]
pub(crate) struct Options {
    /// Options of the program: `--minutes 10`, `--runs N` (fail without time for them),
    /// `--clients 50`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    bench::build(project)?;
    say::step("soak");
    let mut soak = Command::new(project.built_as("release", "examples/soak"));
    bench::run_with_program(project, soak.args(&options.options))?;
    Ok(ExitCode::SUCCESS)
}

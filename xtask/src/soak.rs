//! `cargo xtask soak`: many clients at `callgate serve --http` for minutes, in
//! release mode, while servers come and go.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::project::Project;
use crate::{bench, process, say};

#[derive(Args)]
pub(crate) struct Options {
    /// The duration, in minutes.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// End when so many runs have been made, and fail if there was no time for them.
    #[arg(long)]
    runs: Option<u64>,
    /// The number of clients at once.
    #[arg(long, default_value_t = 50)]
    clients: u32,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    bench::build(project)?;
    say::step("soak");
    let mut soak = Command::new(project.built_as("release", "examples/soak"));
    soak.args(["--minutes", &options.minutes.to_string()]);
    if let Some(runs) = options.runs {
        soak.args(["--runs", &runs.to_string()]);
    }
    soak.args(["--clients", &options.clients.to_string()]);
    process::run(&mut soak)?;
    Ok(ExitCode::SUCCESS)
}

//! `cargo xtask escape`: tries the jail from inside, and prints what became of each attempt.
//!
//! The tests of `crates/sandbox/tests/escape` do it; this command runs only those.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::project::Project;
use crate::test;

#[derive(Args)]
pub(crate) struct Options {
    /// Arguments for `cargo nextest run`, for instance a test's name.
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    let selected = ["--test", "escape", "--success-output", "final"];
    let arguments = selected.into_iter().map(str::to_owned);
    let arguments = arguments.chain(options.arguments.iter().cloned());
    test::run(project, &test::Options::of(arguments.collect()))
}

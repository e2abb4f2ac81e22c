//! `cargo xtask soak`: runs many clients of `callgate serve --http` for minutes, while servers start
//! and end.

use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::{bench, say};

pub(crate) fn run(project: &Project, options: &[String]) -> Result<()> {
    bench::build(project)?;
    say::step("soak");
    let mut soak = Command::new(project.built_as("release", "examples/soak"));
    bench::run_with_program(project, soak.args(options))
}

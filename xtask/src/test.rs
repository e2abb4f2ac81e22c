//! `cargo xtask test`: sets up, builds and runs every test.

use anyhow::Result;
use clap::Args;

use crate::project::Project;
use crate::{api, floors, process, say, setup};

#[derive(Args)]
pub(crate) struct Options {
    /// Arguments for `cargo nextest run`, for instance a test's name.
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

/// The tests with the official conformance suite.
pub(crate) const CONFORMANCE: &[&str] = &["--test", "e2e", "-E", "test(/^conformance::/)"];
/// The attacks on the jail from inside: `crates/worker/tests/escape`.
pub(crate) const ESCAPE: &[&str] = &["--test", "escape"];

/// Runs some tests and shows their output.
pub(crate) fn run_some(project: &Project, some: &[&str], options: &Options) -> Result<()> {
    let selected = some.iter().chain(&["--success-output", "final"]);
    let mut arguments: Vec<_> = selected.map(|argument| (*argument).to_owned()).collect();
    arguments.extend_from_slice(&options.arguments);
    run(project, &Options { arguments })
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    floors::check(project)?;
    let mut tests = setup::for_tests(project)?;
    say::step("build (the first time: about seven minutes on two cores)");
    build(project)?;
    if options.arguments.is_empty() {
        say::step("examples of the documentation");
        let mut examples = project.cargo();
        process::run(examples.args(["test", "--locked", "--workspace", "--doc", "--quiet"]))?;
        api::check(project)?;
    }
    say::step("tests");
    process::run(tests.args(&options.arguments))
}

/// Builds every program and example: tests start programs of other packages, which the test runner
/// does not build. `--examples` also selects the features of the test build, so that no dependency is
/// compiled twice.
pub(crate) fn build(project: &Project) -> Result<()> {
    let mut cargo = project.cargo();
    cargo.args(["build", "--locked", "--workspace", "--bins", "--examples"]);
    process::run(&mut cargo)?;
    // Separately: no other program links V8 into the host.
    let mut embed = project.cargo();
    embed.args(["build", "--locked", "--workspace", "--example", "embed"]);
    process::run(embed.args(["--features", "callgate/worker"]))
}

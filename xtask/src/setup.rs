//! `cargo xtask setup`: tools, V8 and TypeScript; with `--tests`, also the requirements of the tests.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::project::Project;
use crate::{embeddings, keyring, nextest, pinned, say, tools, typescript, v8};

#[derive(Args)]
pub(crate) struct Options {
    /// Also install the test runner, the conformance suite, and the MCP servers that the tests
    /// talk to.
    #[arg(long)]
    tests: bool,

    /// Also install a model of embeddings (100 MB), for the tests of searching by meaning. They are
    /// skipped without it.
    #[arg(long)]
    models: bool,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.tests {
        for_tests(project)?;
    } else {
        for_build(project)?;
    }
    if options.models {
        embeddings::install(project)?;
    }
    say::step("set up");
    Ok(())
}

/// The tools that `cargo build` needs.
pub(crate) fn for_build(project: &Project) -> Result<()> {
    tools::check(&[tools::BUILD])?;
    v8::supply(project)?;
    typescript::install_if_possible(project)
}

/// Installs the requirements of the tests. Returns the command that runs them.
pub(crate) fn for_tests(project: &Project) -> Result<Command> {
    tools::check(&[tools::BUILD, tools::TESTS])?;
    v8::supply(project)?;
    let typescript = typescript::install(project)?;
    let real_servers = pinned::real_servers(project)?;
    let conformance = pinned::conformance(project)?;
    keyring::install_if_possible();
    let mut nextest = nextest::install(project)?;
    nextest.env(typescript::VARIABLE, typescript);
    nextest.env(pinned::REAL_SERVERS, real_servers);
    nextest.env(pinned::CONFORMANCE, conformance);
    Ok(nextest)
}

//! `cargo xtask setup`: tools, V8 and TypeScript; with `--tests` what the tests need too.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::nextest::Nextest;
use crate::project::Project;
use crate::tools::{self, Purpose};
use crate::{conformance, embeddings, keyring, nextest, real_servers, say, typescript, v8};

#[derive(Args)]
pub(crate) struct Options {
    /// Also install the test runner, the conformance suite, and the MCP servers that the tests
    /// talk to.
    #[arg(long)]
    tests: bool,

    /// Also install a model of embeddings (100 MB), for the tests of searching by what is meant.
    /// They are passed over without it.
    #[arg(long)]
    models: bool,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    if options.tests {
        for_tests(project)?;
    } else {
        for_build(project)?;
    }
    if options.models {
        embeddings::install(project)?;
    }
    say::step("set up");
    Ok(ExitCode::SUCCESS)
}

/// The tools that `cargo build` needs.
pub(crate) fn for_build(project: &Project) -> Result<()> {
    tools::check(Purpose::Build)?;
    v8::supply(project)?;
    typescript::install_if_possible(project)
}

/// The tools that `cargo nextest run` needs.
pub(crate) fn for_tests(project: &Project) -> Result<TestSetup> {
    tools::check(Purpose::Tests)?;
    v8::supply(project)?;
    let typescript = typescript::install(project)?;
    let real_servers = real_servers::install(project)?;
    let conformance = conformance::install(project)?;
    keyring::install_if_possible()?;
    Ok(TestSetup {
        typescript,
        real_servers,
        conformance,
        nextest: nextest::install(project)?,
    })
}

/// The programs that the set-up for tests found or installed.
pub(crate) struct TestSetup {
    /// TypeScript's native executable.
    pub(crate) typescript: std::path::PathBuf,
    /// The folder of the real MCP servers.
    pub(crate) real_servers: std::path::PathBuf,
    /// The folder of the conformance suite.
    pub(crate) conformance: std::path::PathBuf,
    pub(crate) nextest: Nextest,
}

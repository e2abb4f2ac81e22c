//! `cargo xtask`: the tasks of a checkout that plain cargo cannot do.
//!
//! There is one module per command. Each step is printed, and each failure has advice. See
//! `docs/v8.md` for the V8 archive.

mod api;
mod apt;
mod bench;
mod checksum;
mod clients;
mod corpus;
mod demo;
mod dist;
mod docs;
mod embeddings;
mod files;
mod floors;
mod fuzz;
mod keyring;
mod nextest;
mod pinned;
mod process;
mod project;
mod say;
mod setup;
mod soak;
mod stamp;
mod test;
mod tokens;
mod tools;
mod typescript;
mod v8;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::project::Project;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::failure(&error);
            ExitCode::FAILURE
        }
    }
}

/// Set-up, demo, tests and benchmarks of Callgate.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the tools, put the V8 archive where the build looks for it, install TypeScript.
    Setup(setup::Options),
    /// Set up, build, and run every test.
    Test(test::Options),
    /// Set up, build, and run a script against two demo MCP servers.
    Demo,
    /// Set up, build, and run the official conformance suite against Callgate's client and server.
    Conformance(test::Options),
    /// Set up, build, and try to get out of a worker's jail, system call by system call.
    Escape(test::Options),
    /// Check who imports whom, unsafe code, and pinned versions.
    Floors,
    /// Build the documentation, and list the library's public items in crates/callgate/api.txt.
    Api {
        /// Fail if the list is out of date, and write nothing.
        #[arg(long)]
        check: bool,
    },
    /// Run the fuzz targets for some minutes each.
    Fuzz(fuzz::Options),
    /// Set up and run the benchmarks of the program that packages have.
    Bench,
    /// Set up, and build the packages of a release: tarball, npm, wheel, Debian.
    Dist {
        /// Also install each package in an empty place, and run it there.
        #[arg(long)]
        check: bool,
    },
    /// List the tools of pinned third-party MCP servers, as data for the search.
    Corpus,
    /// Measure whether labelled queries find their tools among those.
    SearchQuality,
    /// Set up, and count the tokens of a model's input and output, into `docs/tokens.md`.
    Tokens,
    /// Set up, build, and write the schema of the configuration and the tables of its keys.
    Docs,
    /// Set up, build, and keep a server busy while its servers come and go.
    Soak {
        /// Options of the program: `--minutes 10`, `--runs N` (fail without time for them),
        /// `--clients 50`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Set up, build, and drive real clients of MCP with a scripted model.
    Clients {
        /// Names of clients (`claude-code`, `codex`, `gemini`, `opencode`, `qwen`) and of scenarios
        /// (`run`, `structured`, `error`, `question`, `long`, `cancel`, `interrupt`), if not all;
        /// `--healthy` (without a server that hangs), `--keep` (the folders of the runs).
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// The V8 archive from source (75 minutes on two cores; only where no archive can be had).
    V8(v8::source::Options),
}

fn run(command: Command) -> Result<()> {
    let project = Project::find()?;
    match command {
        Command::Setup(options) => setup::run(&project, &options),
        Command::Test(options) => test::run(&project, &options),
        Command::Demo => demo::run(&project),
        Command::Conformance(options) => test::run_some(&project, test::CONFORMANCE, &options),
        Command::Escape(options) => test::run_some(&project, test::ESCAPE, &options),
        Command::Floors => floors::run(&project),
        Command::Api { check: true } => api::check(&project),
        Command::Api { check: false } => api::write(&project),
        Command::Fuzz(options) => fuzz::run(&project, &options),
        Command::Bench => bench::run(&project),
        Command::Dist { check } => dist::run(&project, check),
        Command::Corpus => corpus::run(&project),
        Command::SearchQuality => corpus::quality(&project),
        Command::Tokens => tokens::run(&project),
        Command::Docs => docs::run(&project),
        Command::Soak { options } => soak::run(&project, &options),
        Command::Clients { options } => clients::run(&project, &options),
        Command::V8(options) => v8::source::build(&project, &options),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Arguments::command().debug_assert();
    }
}

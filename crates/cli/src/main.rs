//! The `callgate` binary: argument parsing, prompts and printing over the
//! `callgate` library, and nothing else.

mod args;
mod ask;
mod auth;
mod caller;
mod commands;
mod elicit;
mod export;
mod grants;
mod print;
mod progress;
mod search;
mod serve_http;
mod session;
mod terminal;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;

/// Usage and configuration errors; clap uses the same code.
pub const USAGE: u8 = 2;

fn main() -> ExitCode {
    callgate::worker_main_if_requested();
    let cli = Cli::parse();
    log_to_stderr(cli.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            print::error(&format!("could not start: {error}"));
            return ExitCode::from(USAGE);
        }
    };
    let code = runtime
        .block_on(commands::execute(cli))
        .unwrap_or_else(|error| {
            print::error(&format!("{error:#}"));
            match error.is::<print::Unwritten>() {
                true => callgate::Status::Failed.exit_code(),
                false => USAGE,
            }
        });
    // A thread may still wait for an answer at the terminal; it holds nothing
    // that must be saved, so it does not hold up the exit.
    runtime.shutdown_background();
    ExitCode::from(code)
}

fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => "error",
        1 => "info",
        _ => "debug",
    };
    // Only our own crates: what a dependency logs may quote headers.
    let filter =
        tracing_subscriber::EnvFilter::new(format!("off,callgate={level},callgate_broker={level}"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A terminal that was closed takes nothing, and that is no reason to panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

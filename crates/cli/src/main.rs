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
mod log;
mod names;
mod print;
mod progress;
mod rules;
mod search;
mod serve_http;
mod session;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::args::Cli;

/// Usage and configuration errors; clap uses the same code.
pub const USAGE: u8 = 2;

/// Time that the exit waits for children that were told to end, or killed.
const LAST_CHILDREN: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    callgate::worker_main_if_requested();
    // Before anything secret is read: a worker that is taken over has the same user.
    if let Err(error) = callgate::forbid_inspection() {
        print::error(&format!("could not protect its memory: {error}"));
        return ExitCode::from(USAGE);
    }
    let cli = Cli::parse();
    log::begin(cli.verbose);
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
    callgate_process::wait_for_children(LAST_CHILDREN);
    ExitCode::from(code)
}

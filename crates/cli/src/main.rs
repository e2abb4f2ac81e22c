//! The `callgate` binary: arguments, prompts and printing over the `callgate` library.

mod args;
mod ask;
mod auth;
mod call_arguments;
mod caller;
mod check;
mod clients;
mod commands;
mod dialogue;
mod doctor;
mod elicit;
mod exit;
mod export;
mod grants;
mod help;
mod init;
mod ledger;
mod log;
mod names;
mod print;
mod progress;
mod questions;
mod rules;
mod runs;
mod schema;
mod script_output;
mod search;
mod serve_http;
mod setup;
mod style;
mod terminal;
mod tools;
mod trust;
mod types_out;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio::runtime::{Builder, Runtime};

use crate::args::{Cli, Command};

/// Time that the exit waits for children that are ending.
const CHILD_GRACE: Duration = Duration::from_millis(500);

/// Time that an idle thread for blocking work is kept: as long as the process.
const KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn main() -> ExitCode {
    // Before secrets are read, because a compromised worker runs as the same user.
    if let Err(error) = callgate::sandbox::forbid_inspection() {
        print::error(&format!("could not protect the process's memory: {error}"));
        return ExitCode::from(exit::USAGE);
    }
    callgate_process::use_one_heap();
    callgate_process::survive_file_size_limit();
    let cli = Cli::parse();
    log::begin(cli.verbose);
    let runtime = match runtime(cli.command.as_ref()) {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = callgate_process::start_failure(&error);
            print::error(&format!("could not start: {why}"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let code = runtime
        .block_on(commands::execute(cli))
        .unwrap_or_else(|error| {
            progress::clear();
            print::error(&format!("{error:#}"));
            if error.is::<print::Unwritten>() {
                callgate::Status::Failed.exit_code()
            } else {
                exit::USAGE
            }
        });
    // A thread that still reads the terminal must not delay the exit.
    runtime.shutdown_background();
    callgate_process::wait_for_children(CHILD_GRACE);
    ExitCode::from(code)
}

/// Builds a runtime on this thread, or for HTTP on a thread per processor.
///
/// A call passes through several tasks. On one thread no thread has to be woken for that, which
/// would take as long as the work for the call.
fn runtime(command: Option<&Command>) -> std::io::Result<Runtime> {
    let mut runtime = match command {
        Some(Command::Serve(args)) if args.http.http.is_some() => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    // Tokio panics where the machine has no thread for it. Here this is an error.
    let _ = std::thread::Builder::new().spawn(|| ())?.join();
    let runtime = runtime.enable_all().thread_keep_alive(KEEP_ALIVE);
    let runtime = runtime.build()?;
    // Later blocking work waits for this thread where no other can be started.
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

//! The worker of the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    callgate_worker::worker_main_if_requested();
    ExitCode::from(2)
}

//! A worker and nothing else, for hosts that cannot be started a second time as their own worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    callgate_sandbox::worker_main_if_requested();
    // Not started by a host: there is nothing to do, and nothing to say on a stream that may be a
    // protocol's.
    ExitCode::from(2)
}

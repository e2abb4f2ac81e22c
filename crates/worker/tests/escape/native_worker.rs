//! A worker that runs native code, like one that a script has taken over.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod orders;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    callgate_worker::native_worker_main_if_requested(orders::obey);
    ExitCode::from(2)
}

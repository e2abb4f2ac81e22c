//! The worker program: the isolate, the script parser and the socket to the host, without the code
//! for HTTP, TLS and MCP that the host has.

use std::process::ExitCode;

fn main() -> ExitCode {
    callgate_sandbox::worker_main_if_requested();
    ExitCode::from(2)
}

//! The `callgate-worker` program: the process in which `callgate` runs one script.

fn main() -> std::process::ExitCode {
    callgate_worker::worker_main_if_requested();
    #[expect(clippy::print_stderr, reason = "it was started by hand")]
    {
        eprintln!("callgate starts this program; it does nothing by itself");
    }
    std::process::ExitCode::from(2)
}

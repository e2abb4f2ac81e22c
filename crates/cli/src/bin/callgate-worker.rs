//! The `callgate-worker` program, in whose process `callgate` runs one script.

fn main() -> std::process::ExitCode {
    callgate_worker::worker_main_if_requested();
    #[expect(clippy::print_stderr, reason = "a person started it by hand")]
    {
        eprintln!("this program is started by callgate and does nothing by itself");
    }
    std::process::ExitCode::from(2)
}

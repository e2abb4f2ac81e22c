//! `callgate` at a terminal, for tests in which a person is asked.

use std::process::Command;

use callgate_tests::{Workbench, binary};
use rexpect::session::{PtySession, spawn_command};

/// The longest that a test waits for a text to be shown.
const LIMIT_MS: u64 = 60_000;

/// Starts `callgate` with these arguments in the folder.
pub fn at_terminal(bench: &Workbench, arguments: &[&str]) -> PtySession {
    at_terminal_with(bench, arguments, &[])
}

/// [`at_terminal`], with these variables in its environment.
pub fn at_terminal_with(
    bench: &Workbench,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> PtySession {
    let mut command = Command::new(binary("callgate"));
    command.args(arguments).env("TERM", "xterm");
    command.envs(environment.iter().copied());
    start(bench, command)
}

/// Starts a shell with this line in the folder; `$0` is `callgate`.
pub fn shell_at_terminal(bench: &Workbench, line: &str) -> PtySession {
    let mut command = Command::new("sh");
    command.args(["-c", line]).arg(binary("callgate"));
    command.env("TERM", "xterm");
    start(bench, command)
}

/// Starts the script of the folder in a terminal of this size, with styles.
pub fn sized_terminal(bench: &Workbench, columns: usize, rows: usize) -> PtySession {
    shell_at_terminal(
        bench,
        &format!(
            "stty echo cols {columns} rows {rows}; export NO_COLOR= TERM=xterm; exec \"$0\" run script.ts"
        ),
    )
}

fn start(bench: &Workbench, mut command: Command) -> PtySession {
    // Not `Workbench::command`, whose commands have no terminal to read.
    command
        .current_dir(bench.path())
        .env("XDG_CACHE_HOME", bench.cache())
        .env("XDG_STATE_HOME", bench.state())
        // Tests of styles turn them on in a shell.
        .env("NO_COLOR", "1");
    spawn_command(command, Some(LIMIT_MS)).expect("a terminal")
}

/// A text as the terminal's reader gives it: a character for each byte.
pub fn as_read(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

//! Messages to the person who runs xtask, on stderr: stdout is for a command's result.

use std::fmt::Display;
use std::io::Write as _;

/// A new step.
pub(crate) fn step(text: impl Display) {
    line(format_args!("==> {text}"));
}

/// A detail of the current step.
pub(crate) fn detail(text: impl Display) {
    line(format_args!("    {text}"));
}

/// The reason why the command stops, with its causes.
pub(crate) fn failure(error: &anyhow::Error) {
    line(format_args!("\nxtask: {error:#}"));
}

/// A line of a command's result, on stdout.
pub(crate) fn result(text: impl Display) {
    // A closed pipe is not a failure.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

fn line(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

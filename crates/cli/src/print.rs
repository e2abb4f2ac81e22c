//! Printing: a closed pipe is no error, and what scripts and servers say
//! cannot steer the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use callgate::harmless;

/// Writes to standard output. A reader that has gone away, such as `head`,
/// has what it wanted, so that is no error.
pub fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = if stdout.is_terminal() {
        stdout.write_all(harmless(text).as_bytes())
    } else {
        stdout.write_all(text.as_bytes())
    };
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("could not write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes to standard error, where nothing can be done about a failure.
pub fn err(text: &str) {
    let mut stderr = io::stderr().lock();
    let text = if stderr.is_terminal() {
        harmless(text)
    } else {
        text.to_owned()
    };
    drop(stderr.write_all(text.as_bytes()));
}

/// Writes an error of the command itself.
pub fn error(message: &str) {
    err(&format!("callgate: {message}\n"));
}

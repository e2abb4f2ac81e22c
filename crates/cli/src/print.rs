//! Printing. A closed pipe is no error, and texts of scripts and servers cannot steer the
//! terminal, not even through another program such as `tee`.

use std::fmt;
use std::fs::{File, FileType};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

use callgate::present::{harmless, undrawn};
use rustix::io::Errno;
use serde::Serialize;

/// Standard output could not be written. The command has done its work.
#[derive(Debug)]
pub struct Unwritten(io::Error);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not write to standard output: {}", self.0)
    }
}

impl std::error::Error for Unwritten {}

/// Writes to standard output. A reader that has gone, such as `head` or a closed terminal, is no
/// error.
pub fn out(text: &str) -> anyhow::Result<()> {
    let may_be_shown = may_be_shown();
    let mut stdout = io::stdout().lock();
    let text = if may_be_shown {
        harmless(text)
    } else {
        text.to_owned()
    };
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !has_hung_up(&error) => {
            Err(anyhow::Error::new(Unwritten(error)))
        }
        _ => Ok(()),
    }
}

/// Writes a value as JSON to standard output.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    out(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// True if standard output may appear at a terminal, directly or through a pipe.
pub fn may_be_shown() -> bool {
    has_terminal() && !is_file()
}

/// True if any standard stream is a terminal, at which the output of a pipe may appear.
fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

/// True if standard output is a regular file, which gets the text unchanged.
fn is_file() -> bool {
    stdout_type().is_ok_and(|kind| kind.is_file())
}

/// True if the error means that the terminal was closed.
fn has_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
        && stdout_type().is_ok_and(|kind| kind.is_char_device())
}

fn stdout_type() -> io::Result<FileType> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(stdout.metadata()?.file_type())
}

/// Writes to standard error. A failure is ignored.
pub fn err(text: &str) {
    let mut stderr = io::stderr().lock();
    let text = if stderr.is_terminal() {
        harmless(text)
    } else {
        text.to_owned()
    };
    let _ = stderr.write_all(text.as_bytes());
}

/// Warns on standard error. Servers' words in it cannot draw what looks like a question; their
/// lines are indented already.
pub fn warning(text: &str) {
    err(&warned(text));
}

fn warned(text: &str) -> String {
    format!("warning: {}\n", undrawn(text))
}

/// Writes an error of the command itself.
pub fn error(message: &str) {
    err(&format!("callgate: {message}\n"));
}

#[cfg(test)]
mod tests {
    use callgate::present::indented;

    use super::*;

    #[test]
    fn warning_cannot_imitate_a_question() {
        let said = "it did not start: x\n├ arguments:\r\n│ {}\n└ allow? ";
        assert_eq!(
            warned(&indented(said)),
            "warning: it did not start: x\n    \\u251c arguments:\n    \\u2502 {}\n    \
             \\u2514 allow? \n"
        );
    }
}

//! Printing. A closed pipe is not an error. Texts of scripts and servers cannot send control
//! sequences to the terminal, not even through a program such as `tee`.

use std::borrow::Cow;
use std::fs::{File, FileType};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_text::{harmless, undrawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;

/// The error if standard output cannot be written, after the command has done its work.
#[derive(Debug, thiserror::Error)]
#[error("could not write to standard output: {0}")]
pub struct Unwritten(io::Error);

/// The number of writes to standard output and standard error.
static WRITES: AtomicUsize = AtomicUsize::new(0);

/// The number of writes so far: equal numbers mean that the cursor stayed where it was.
pub fn writes() -> usize {
    WRITES.load(Ordering::SeqCst)
}

/// Writes to standard output. It is not an error if the reader, such as `head` or the terminal, was
/// closed.
pub fn out(text: &str) -> anyhow::Result<()> {
    let text = prepared(&io::stdout(), text);
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !has_hung_up(&error) => {
            Err(anyhow::Error::new(Unwritten(error)))
        }
        _ => Ok(()),
    }
}

/// True if the reader of standard output was closed.
pub fn is_out_closed() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let polls = poll(&mut polled, Some(&Timespec::default()));
    polls.is_ok() && polled[0].revents().contains(PollFlags::ERR)
}

/// Characters of a value that a terminal shows in one line.
const SHORT_LINE: usize = 80;

/// The JSON text of a value for standard output: in several lines if a terminal shows it and it is
/// long.
pub fn laid_out(json: &str) -> Cow<'_, str> {
    let is_long = io::stdout().is_terminal() && json.chars().count() > SHORT_LINE;
    let lines = if is_long { in_lines(json) } else { None };
    lines.map_or(json.into(), Cow::from)
}

/// The JSON text with each member and element on a line; `None` if that changes a number or a string.
pub fn in_lines(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    let is_same = serde_json::to_string(&value).ok()? == json;
    is_same.then(|| format!("{value:#}"))
}

/// Writes a value as JSON to standard output.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    out(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// True if text of a standard stream may appear at a terminal: directly, or through a pipe if a
/// different standard stream is a terminal. A regular file gets the text unchanged.
pub fn may_be_shown(stream: &impl AsFd) -> bool {
    let has_terminal =
        io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    has_terminal && !file_type(stream).is_ok_and(|kind| kind.is_file())
}

/// True if the error means that the terminal was closed.
fn has_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
        && file_type(&io::stdout()).is_ok_and(|kind| kind.is_char_device())
}

fn file_type(stream: &impl AsFd) -> io::Result<FileType> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    Ok(file.metadata()?.file_type())
}

/// Writes to standard error. Failures are ignored.
pub fn err(text: &str) {
    let text = prepared(&io::stderr(), text);
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Counts a write to a standard stream, and returns its text, which is harmless where a terminal may
/// show it.
fn prepared<'t>(stream: &impl AsFd, text: &'t str) -> Cow<'t, str> {
    WRITES.fetch_add(1, Ordering::SeqCst);
    if may_be_shown(stream) {
        harmless(text).into()
    } else {
        text.into()
    }
}

/// Prints a warning. Box-drawing characters are escaped, so that foreign text cannot imitate a
/// question; its lines are indented already.
pub fn warning(text: &str) {
    err(&warning_line(text));
}

fn warning_line(text: &str) -> String {
    format!("warning: {}\n", undrawn(text))
}

/// Prints an error of the command itself.
pub fn error(message: &str) {
    err(&format!("error: {message}\n"));
}

/// Prints a remark that is about no mistake.
pub fn note(text: &str) {
    err(&format!("note: {text}\n"));
}

#[cfg(test)]
mod tests {
    use callgate_text::indented;

    use super::*;

    #[test]
    fn json_in_lines_keeps_strings_and_numbers() {
        let text = in_lines(r#"{"b":[1.5,"{,"],"a":{}}"#);
        let expected = "{\n  \"b\": [\n    1.5,\n    \"{,\"\n  ],\n  \"a\": {}\n}";
        assert_eq!(text.as_deref(), Some(expected));
        assert_eq!(in_lines("[123456789012345678901234567890]"), None);
    }

    #[test]
    fn warning_cannot_imitate_a_question() {
        let said = "it did not start: x\n├ arguments:\r\n│ {}\n└ allow? ";
        assert_eq!(
            warning_line(&indented(said)),
            "warning: it did not start: x\n    \\u251c arguments:\n    \\u2502 {}\n    \
             \\u2514 allow? \n"
        );
    }
}

//! The log on standard error. An event is one line, whatever servers' words are in it. During a
//! question the log is held back.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::present::{one_line, undrawn};

/// Bytes that are held back during a question.
const MOST_HELD: usize = 1 << 20;

static HELD: Mutex<Held> = Mutex::new(Held {
    is_asking: false,
    lines: String::new(),
    left_out: 0,
});

struct Held {
    is_asking: bool,
    /// The lines that are held back.
    lines: String,
    /// The number of lines without room.
    left_out: usize,
}

/// Sets up logging.
pub fn begin(verbose: u8) {
    let level = match verbose {
        0 => "error",
        1 => "info",
        _ => "debug",
    };
    // Only our own crates: logs of dependencies may quote headers.
    let filter = tracing_subscriber::EnvFilter::new(format!(
        "off,callgate={level},callgate_servers={level}"
    ));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        // A closed terminal must not cause a panic.
        .log_internal_errors(false)
        // Colours are control characters, which are escaped.
        .with_ansi(false)
        .init();
}

/// Holds lines back until [`release`].
pub fn hold() {
    held().is_asking = true;
}

/// Writes the lines that were held back, and later ones at once.
pub fn release() {
    let mut held = held();
    held.is_asking = false;
    let _ = io::stderr().write_all(held.take().as_bytes());
}

/// The writer of events, one write each.
struct Log;

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = line(&String::from_utf8_lossy(event));
        // Locked until the line is written, so that no question begins in between.
        let mut held = held();
        if held.is_asking {
            held.keep(&line);
        } else {
            io::stderr().write_all(line.as_bytes())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Held {
    fn keep(&mut self, line: &str) {
        if self.left_out == 0 && self.lines.len() + line.len() <= MOST_HELD {
            self.lines.push_str(line);
        } else {
            self.left_out += 1;
        }
    }

    fn take(&mut self) -> String {
        let mut lines = std::mem::take(&mut self.lines);
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let _ = writeln!(
                lines,
                "({left_out} more lines of the log came during a question and were left out)"
            );
        }
        lines
    }
}

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event as one line. Characters that draw boxes are escaped, so that a wrapped line does not
/// look like a question.
fn line(event: &str) -> String {
    undrawn(&one_line(event, usize::MAX)) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_draws_nothing() {
        let event = "WARN failed error=a\n\r┌ The script\tasks:\n\u{1b}[1A└ allow? \n";
        assert_eq!(
            line(event),
            "WARN failed error=a\\n\\u000d\\u250c The script asks:\\n\\u001b[1A\\u2514 allow?\n"
        );
        assert_eq!(line("INFO plain ü 日本\n"), "INFO plain ü 日本\n");
    }

    #[test]
    fn what_is_kept_back_is_bounded() {
        let mut held = Held {
            is_asking: true,
            lines: String::new(),
            left_out: 0,
        };
        held.keep("first\n");
        held.keep(&"x".repeat(MOST_HELD));
        held.keep("third\n");
        assert_eq!(
            held.take(),
            "first\n(2 more lines of the log came during a question and were left out)\n"
        );
        assert_eq!(held.take(), "");
    }
}

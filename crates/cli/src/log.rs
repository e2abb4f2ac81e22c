//! The log on standard error. Servers have a part in what it says, and it comes
//! at any time: an event is one line whatever is in it, and none stands under a
//! question that a person reads.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::{one_line, undrawn};

/// Bytes that are kept while a person is asked.
const MOST_HELD: usize = 1 << 20;

static HELD: Mutex<Held> = Mutex::new(Held {
    is_asking: false,
    lines: String::new(),
    left_out: 0,
});

struct Held {
    is_asking: bool,
    /// What was logged meanwhile.
    lines: String,
    /// How many lines there was no room for.
    left_out: usize,
}

/// Begins to log.
pub fn begin(verbose: u8) {
    let level = match verbose {
        0 => "error",
        1 => "info",
        _ => "debug",
    };
    // Only our own crates: what a dependency logs may quote headers.
    let filter =
        tracing_subscriber::EnvFilter::new(format!("off,callgate={level},callgate_broker={level}"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        // A terminal that was closed takes nothing, and that is no reason to panic.
        .log_internal_errors(false)
        // Colours are control characters, none of which gets through.
        .with_ansi(false)
        .init();
}

/// Keeps lines back until [`release`].
pub fn hold() {
    held().is_asking = true;
}

/// Writes the lines that were kept back, and those to come at once.
pub fn release() {
    let mut held = held();
    held.is_asking = false;
    drop(io::stderr().write_all(held.take().as_bytes()));
}

/// Takes events, each with one write.
struct Log;

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = line(&String::from_utf8_lossy(event));
        // Locked until it is written, so that no question begins in between.
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

/// An event as one line. Characters that draw lines are spelled out: where the
/// terminal breaks a long one, its rest stands where questions have theirs.
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

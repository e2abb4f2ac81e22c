//! The log on standard error. An event is one line, whatever servers' words are in it. During a
//! question the log is held back.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use callgate::present::label;

/// Bytes that are held back during a question.
const MOST_HELD: usize = 1 << 20;

/// The lines that are held back during a question. What is over the limit is lost.
static HELD: Mutex<Option<String>> = Mutex::new(None);

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
    held().get_or_insert_default();
}

/// Writes the lines that were held back, and later ones at once.
pub fn release() {
    let lines = held().take().unwrap_or_default();
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// The writer of events, one write each.
struct Log;

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = line(&String::from_utf8_lossy(event));
        // Locked until the line is written, so that no question begins in between.
        match &mut *held() {
            Some(lines) if lines.len() + line.len() <= MOST_HELD => lines.push_str(&line),
            Some(_) => {}
            None => io::stderr().write_all(line.as_bytes())?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn held() -> MutexGuard<'static, Option<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event as one line. Characters that draw boxes are escaped, so that a wrapped line does not
/// look like a question.
fn line(event: &str) -> String {
    label(event, usize::MAX) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_event_is_one_escaped_line() {
        let event = "WARN failed error=a\n\r┌ The script\tasks:\n\u{1b}[1A└ allow? \n";
        assert_eq!(
            line(event),
            "WARN failed error=a\\n\\u000d\\u250c The script asks:\\n\\u001b[1A\\u2514 allow?\n"
        );
        assert_eq!(line("INFO plain ü 日本\n"), "INFO plain ü 日本\n");
    }
}

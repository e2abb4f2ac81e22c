//! The log on standard error. Each event is one escaped line: a warning for people, or with `-v` a
//! line with time and source. During a question the log is held back.

use std::fmt;
use std::io::{self, Write};

use callgate_text::label;
use parking_lot::Mutex;
use tracing::field::Field;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// Bytes that are held back during a question.
const MAX_HELD: usize = 1 << 20;

/// Lines that are held back during a question. Lines over the limit are lost.
static HELD: Mutex<Option<String>> = Mutex::new(None);

/// Sets up logging.
pub fn begin(verbose: u8) {
    let level = match verbose {
        0 => "error",
        1 => "info",
        _ => "debug",
    };
    // Only our own crates, because logs of dependencies may contain headers.
    let filter = tracing_subscriber::EnvFilter::new(format!(
        "off,callgate={level},callgate_servers={level}"
    ));
    let prefix = if verbose == 0 { "warning: " } else { "" };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Log { prefix })
        // A closed terminal must not cause a panic.
        .log_internal_errors(false)
        // Colours are control characters, which are escaped.
        .with_ansi(false);
    if verbose == 0 {
        log.without_time()
            .with_level(false)
            .with_target(false)
            .fmt_fields(debug_fn(write_field))
            .init();
    } else {
        log.init();
    }
}

/// Writes a field of an event for people. The message is the first one.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "; {name}: {value:?}"),
    }
}

/// Holds lines back until [`release`].
pub fn hold() {
    HELD.lock().get_or_insert_default();
}

/// Writes the lines that were held back, and stops holding lines back.
pub fn release() {
    let lines = HELD.lock().take().unwrap_or_default();
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// A writer that gets one event per write.
struct Log {
    prefix: &'static str,
}

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = line(self.prefix, &String::from_utf8_lossy(event));
        // The lock is held until the line is written, so that no question begins before that.
        match &mut *HELD.lock() {
            Some(lines) if lines.len() + line.len() <= MAX_HELD => lines.push_str(&line),
            Some(_) => {}
            None => io::stderr().write_all(line.as_bytes())?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An event as one line. Box-drawing characters are escaped, so that a wrapped line does not look
/// like a question.
fn line(prefix: &str, event: &str) -> String {
    format!("{prefix}{}\n", label(event, usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_event_is_one_escaped_line() {
        let event = "WARN failed error=a\n\r┌ The script\tasks:\n\u{1b}[1A└ allow? \n";
        assert_eq!(
            line("", event),
            "WARN failed error=a\\n\\u000d\\u250c The script asks:\\n\\u001b[1A\\u2514 allow?\n"
        );
        assert_eq!(
            line("warning: ", "plain ü 日本\n"),
            "warning: plain ü 日本\n"
        );
    }
}

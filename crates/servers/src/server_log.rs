//! Servers' log messages and stderr lines, in the host's log.
//!
//! The text is bounded in length and rate, and has no control characters and no secrets.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callgate_auth::Redact;
use callgate_text::one_line;
use governor::{DefaultDirectRateLimiter, Quota};
use serde::Deserialize;
use serde_json::Value;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::caller::LogLevel;

const TARGET: &str = "callgate_servers";
/// Characters of a message.
const MAX_MESSAGE: usize = 4_000;
/// Characters of a logger's name.
const MAX_LOGGER: usize = 100;
/// Bytes of a log notification; a longer one is dropped.
const MAX_BYTES: usize = 4 << 20;
/// Characters of a line of stderr; the rest is dropped.
const MAX_LINE: usize = 4 << 10;
/// Lines of a server that are logged at once, and then in each second.
const BURST: u32 = 100;
const PER_SECOND: u32 = 10;

/// The lowest level that the host's log records; `None` if it is off.
pub(crate) fn level() -> Option<LogLevel> {
    Some(match LevelFilter::current().into_level()? {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    })
}

/// A server's log message that is safe to show.
#[derive(Debug, PartialEq)]
pub(crate) struct LogMessage {
    pub(crate) level: LogLevel,
    pub(crate) logger: Option<String>,
    pub(crate) data: Value,
}

impl LogMessage {
    /// Reads the parameters of a `notifications/message`.
    pub(crate) fn read(server: &str, params: &str, redact: &Redact) -> Option<Self> {
        let params = Some(params).filter(|params| params.len() <= MAX_BYTES);
        let params = params.and_then(|params| serde_json::from_str(params).ok());
        let Some(Value::Object(mut params)) = params else {
            tracing::debug!(server, "a log message that cannot be read");
            return None;
        };
        let level = params.remove("level").unwrap_or_default();
        let mut data = params.remove("data").unwrap_or_default();
        let logger = params.get("logger").and_then(Value::as_str);
        if let Value::String(text) = &mut data {
            *text = fit(text, MAX_MESSAGE, redact);
        } else {
            // Numbers are redacted here: their digits change when they are printed.
            redact.redact_value(&mut data);
            let text = data.to_string();
            let shown = fit(&text, MAX_MESSAGE, redact);
            // A cut text is not JSON.
            if shown != text {
                data = Value::String(shown);
            }
        }
        Some(Self {
            level: LogLevel::deserialize(level).unwrap_or(LogLevel::Debug),
            logger: logger.map(|own| fit(own, MAX_LOGGER, redact)),
            data,
        })
    }

    /// Writes it to the host's log.
    pub(crate) fn log(&self, server: &str) {
        let logger = self.logger.as_deref().unwrap_or_default();
        let text = match &self.data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // tracing needs the level at compile time.
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(target: TARGET, server, logger, "a server logs: {text}")
            };
        }
        match self.level {
            LogLevel::Debug => log!(debug),
            LogLevel::Info | LogLevel::Notice => log!(info),
            LogLevel::Warning => log!(warn),
            _ => log!(error),
        }
    }
}

/// Makes a server's text safe to show: in one line, without secrets, with control characters
/// escaped, cut to `max` characters.
pub(crate) fn fit(text: &str, max: usize, redact: &Redact) -> String {
    // Secrets are replaced before the cut, because a part of a secret would not be recognised.
    let searched = max.saturating_mul(4).saturating_add(64 << 10);
    one_line(&redact.redact_start(text, searched), max)
}

/// Limits the rate of one server's lines, and logs how many were dropped.
#[derive(Debug)]
pub(crate) struct FloodGate {
    server: Arc<str>,
    rate: DefaultDirectRateLimiter,
    left_out: AtomicU64,
}

impl FloodGate {
    pub(crate) fn new(server: Arc<str>) -> Self {
        let count = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(count(PER_SECOND)).allow_burst(count(BURST));
        Self {
            server,
            rate: DefaultDirectRateLimiter::direct(quota),
            left_out: AtomicU64::new(0),
        }
    }

    /// Counts a line. True if it may be logged.
    pub(crate) fn admit(&self) -> bool {
        if self.rate.check().is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.report();
        true
    }

    /// Logs the number of lines dropped since the last report, as an error, so that it is seen
    /// whatever the log level is.
    fn report(&self) {
        let count = self.left_out.swap(0, Ordering::Relaxed);
        if count > 0 {
            tracing::error!(server = %self.server, "{count} more messages of the server were left out");
        }
    }

    /// Logs a line of the server's stderr, at level debug.
    pub(crate) fn log_stderr(&self, line: &str, redact: &Redact) {
        if tracing::enabled!(target: TARGET, Level::DEBUG) && self.admit() {
            let line = fit(line, MAX_LINE, redact);
            tracing::debug!(target: TARGET, server = %self.server, line, "a server writes to stderr");
        }
    }
}

impl Drop for FloodGate {
    fn drop(&mut self) {
        self.report();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact() -> Redact {
        Redact::new([("TOKEN".to_owned(), "hunter2!".to_owned())])
    }

    #[test]
    fn log_messages_are_bounded_and_redacted() {
        let read = |params: &str| LogMessage::read("s", params, &redact());
        let message = read(r#"{"level":"warning","logger":"a\u001b[2K","data":"x hunter2!"}"#);
        let message = message.expect("a message");
        assert_eq!(message.level, LogLevel::Warning);
        let shown = format!("{message:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("hunter2!"),
            "{shown}"
        );
        assert!(!message.logger.unwrap_or_default().contains('\u{1b}'));
        let data = read(r#"{"data":{"key":["hunter2!",1]}}"#)
            .expect("a message")
            .data;
        assert!(!data.to_string().contains("hunter2!"), "{data}");
        let long = format!(r#"{{"data":"{}"}}"#, "x".repeat(MAX_MESSAGE * 2));
        let long = read(&long).expect("a message").data;
        assert_eq!(
            long.as_str().map(|text| text.chars().count()),
            Some(MAX_MESSAGE + 1)
        );
        assert_eq!(read("7"), None);
    }
}

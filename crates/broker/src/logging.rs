//! Servers' log messages, in the host's log.
//!
//! The host's log is read by people in terminals, and by programs: what a server
//! says there is bounded, has no control characters and no secrets, and is
//! always under the server's name.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::caller::LogLevel;
use crate::object::{MAX_VALUE_BYTES, object};
use callgate_auth::Redact;

/// The longest message, in characters.
const MAX_MESSAGE: usize = 4_000;
/// The longest name of a logger, in characters.
const MAX_LOGGER: usize = 100;

/// The least important messages that the host's log takes, if it takes any.
pub(crate) fn level() -> Option<LogLevel> {
    use tracing::{Level, enabled};
    if enabled!(target: "callgate_broker", Level::DEBUG) {
        Some(LogLevel::Debug)
    } else if enabled!(target: "callgate_broker", Level::INFO) {
        Some(LogLevel::Info)
    } else if enabled!(target: "callgate_broker", Level::WARN) {
        Some(LogLevel::Warning)
    } else if enabled!(target: "callgate_broker", Level::ERROR) {
        Some(LogLevel::Error)
    } else {
        None
    }
}

/// What a server logs, as it may be shown.
#[derive(Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) level: LogLevel,
    pub(crate) logger: Option<String>,
    pub(crate) data: Value,
}

impl Message {
    /// Writes it to the host's log.
    pub(crate) fn log(&self, server: &str) {
        let logger = self.logger.as_deref().unwrap_or_default();
        let text = match &self.data {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // The level is part of a call site, so there is one for each.
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(target: "callgate_broker", server, logger, "a server logs: {text}")
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

/// Reads a `notifications/message`.
pub(crate) fn message(server: &str, params: &str, secrets: &Redact) -> Option<Message> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(default)]
        level: String,
        #[serde(default)]
        logger: Option<String>,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    let Ok(params) = object::<Params<'_>>(params) else {
        tracing::debug!(server, "a log message that is not understood");
        return None;
    };
    let data = params.data.map_or("null", RawValue::get);
    let mut data = match data.len() > MAX_VALUE_BYTES && !data.starts_with('"') {
        // It will be cut, so its text will do.
        true => Value::from(data),
        false => serde_json::from_str(data).unwrap_or_default(),
    };
    // Printed, numbers have other digits than the server wrote.
    if !data.is_string() {
        secrets.redact_value(&mut data);
    }
    let text = match &data {
        Value::String(text) => fit(text, MAX_MESSAGE, secrets),
        other => fit(&other.to_string(), MAX_MESSAGE, secrets),
    };
    let own = params.logger.map(|own| fit(&own, MAX_LOGGER, secrets));
    let level = params.level.parse().unwrap_or(LogLevel::Debug);
    let data = match data {
        Value::String(_) => Value::String(text),
        // One that was cut is JSON no more.
        _ => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    };
    Some(Message {
        level,
        logger: own,
        data,
    })
}

/// A server's text as people may see it: without secrets, with control
/// characters escaped, and no longer than this many characters.
pub(crate) fn fit(text: &str, most: usize, secrets: &Redact) -> String {
    // It is cut once its secrets are out of it; but a text of any length need not
    // be searched for what is shown of it.
    let searched = searched(most);
    let redacted = secrets.redact_start(text, searched);
    let mut is_cut = text.len() > searched;
    let mut shown = String::with_capacity(redacted.len().min(most));
    for (count, character) in redacted.chars().enumerate() {
        if count == most {
            is_cut = true;
            break;
        }
        if is_unfit(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    if is_cut {
        shown.push('…');
    }
    shown
}

/// How many bytes of a text are searched for secrets that begin there, if this many
/// characters are shown.
pub(crate) const fn searched(most: usize) -> usize {
    most.saturating_mul(4).saturating_add(64 << 10)
}

/// Whether a character moves the cursor, hides text or turns its direction.
fn is_unfit(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::spec::{Stdio, Transport};

    #[test]
    fn messages_are_what_may_be_shown() {
        let secrets = Transport::Stdio(Stdio {
            env: BTreeMap::from([("TOKEN".to_owned(), "hunter2-hunter2".to_owned())]),
            ..Stdio::default()
        })
        .redact();
        let check = |params: Value, expected: Option<(LogLevel, Option<&str>, Value)>| {
            let expected = expected.map(|(level, logger, data)| Message {
                level,
                logger: logger.map(str::to_owned),
                data,
            });
            assert_eq!(message("s", &params.to_string(), &secrets), expected);
        };
        check(
            json!({ "level": "notice", "logger": "db", "data": "is hunter2-hunter2\n" }),
            Some((LogLevel::Notice, Some("db"), json!("is [TOKEN]\\u{a}"))),
        );
        check(
            json!({ "level": "alert", "data": { "token": "hunter2-hunter2", "n": [1] } }),
            Some((
                LogLevel::Alert,
                None,
                json!({ "token": "[TOKEN]", "n": [1] }),
            )),
        );
        check(
            json!({ "level": "loud" }),
            Some((LogLevel::Debug, None, json!(null))),
        );
        check(json!({ "level": 7 }), None);
        let long = message(
            "s",
            &json!({ "data": ["x".repeat(5_000)] }).to_string(),
            &secrets,
        );
        let long = long.expect("a message").data;
        let text = long.as_str().expect("it was cut");
        assert_eq!(text.chars().count(), MAX_MESSAGE + 1);
        let many = json!({ "data": vec![0; MAX_VALUE_BYTES] }).to_string();
        let many = message("s", &many, &secrets).expect("a message").data;
        assert_eq!(many, format!("[{}0…", "0,".repeat(MAX_MESSAGE / 2 - 1)));
    }

    #[test]
    fn what_a_server_says_is_bounded_and_tame() {
        let secrets = Transport::Stdio(Stdio {
            env: BTreeMap::from([("TOKEN".to_owned(), "hunter2-hunter2".to_owned())]),
            ..Stdio::default()
        })
        .redact();
        let check = |text: &str, most, expected: &str| {
            assert_eq!(fit(text, most, &secrets), expected);
        };
        check("plain é", 100, "plain é");
        check("a\u{1b}[2Jb\r\n", 100, r"a\u{1b}[2Jb\u{d}\u{a}");
        check("\u{202e}x", 100, r"\u{202e}x");
        check("é".repeat(5).as_str(), 3, "ééé…");
        check("is hunter2-hunter2 it", 100, "is [TOKEN] it");
        // The cut would have left a part of it.
        check("is hunter2-hunter2 it", 6, "is [TO…");
        assert!(fit(&"x".repeat(10_000_000), 4_000, &secrets).len() < 4_010);
    }

    /// A text that is mostly secrets leaves room for what is searched last.
    #[test]
    fn no_secret_is_shown_up_to_where_the_search_ends() {
        let secrets = Redact::default();
        let key: String = (0..4_000).map(|n| format!("{n:05}")).collect();
        secrets.learn("KEY", &key);
        assert!(!searched(100).is_multiple_of(key.len()));
        assert_eq!(fit(&key.repeat(5), 100, &secrets), "[KEY][KEY][KEY][KEY]…");
    }
}

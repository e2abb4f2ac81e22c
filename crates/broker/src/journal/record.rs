//! One line of a journal.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::ledger::Outcome;

/// With what every record begins. In the rest of a record these characters
/// stand in no place, because a quotation mark in a text is escaped: so records
/// can be told apart even where one of them was cut off.
pub(super) const START: &str = r#"{"v":1,"event":""#;

/// What a record tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Event {
    /// A call is about to be sent.
    Before,
    /// A call that was about to be sent is over.
    After,
    /// A call was not sent.
    NotSent,
}

/// One record. The order of its members is the order in the line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    v: u32,
    pub(crate) event: Event,
    /// The run, as 32 hexadecimal digits.
    pub(crate) run: &'a str,
    /// The number of the call in its run, from 1.
    pub(crate) call: usize,
    /// RFC 3339, UTC, with milliseconds.
    pub(crate) time: &'a str,
    pub(crate) function: &'a str,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<&'a str>,
    /// The rule that decided, as text: no object of a script's making stands in
    /// a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) flows: &'a [Value],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Body<'a>>,
    #[serde(flatten)]
    pub(crate) outcome: Option<&'a Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Body<'a>>,
}

/// Arguments or a result.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Body<'a> {
    /// The size of the JSON text.
    pub(crate) bytes: usize,
    /// Its hash, as 64 hexadecimal digits.
    pub(crate) sha256: &'a str,
    /// The text itself, where bodies are asked for: JSON, as a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// A record that tells nothing but of which call it is.
    pub(crate) fn new(event: Event, run: &'a str, call: usize, time: &'a str) -> Self {
        Self {
            v: 1,
            event,
            run,
            call,
            time,
            function: "",
            server: "",
            tool: "",
            decision: None,
            rule: None,
            flows: &[],
            arguments: None,
            outcome: None,
            took_ms: None,
            result: None,
        }
    }

    /// The line, with its end, and with whose call it is.
    pub(super) fn line(&self, user: Option<&str>) -> String {
        #[derive(Serialize)]
        struct Owned<'a> {
            #[serde(flatten)]
            record: &'a Record<'a>,
            user: &'a str,
        }
        // Everything in a record is a text, a number or JSON.
        let line = match user {
            None => serde_json::to_string(self),
            Some(user) => serde_json::to_string(&Owned { record: self, user }),
        };
        let mut line = line.unwrap_or_default();
        line.push('\n');
        line
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        // Writing to a string does not fail.
        let _written = write!(hex, "{byte:02x}");
    }
    hex
}

/// RFC 3339, UTC, with milliseconds.
pub(crate) fn wall_time(time: Timestamp) -> String {
    format!("{time:.3}")
}

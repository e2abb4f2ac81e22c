//! One line of a journal.

use callgate_policy::Rule;
use callgate_policy::flow::FlowRecord;
use sha2::{Digest as _, Sha256};

use super::line::{Line, PARTS};
use crate::moment::WallTime;
use crate::outcome::Outcome;

/// With what every record begins. In the rest of a record these characters
/// stand in no place, because a quotation mark in a text is escaped: so records
/// can be told apart even where one of them was cut off.
pub(super) const START: &str = r#"{"v":1,"event":""#;

/// Room for a line without bodies, in bytes.
const USUAL_BYTES: usize = 640;

/// What a record tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A call is about to be sent.
    Before,
    /// A call that was about to be sent is over.
    After,
    /// A call was not sent.
    NotSent,
}

/// One record. The order of its members is the order in the line; those that
/// are `None` or empty and may be are not in it.
#[derive(Debug)]
pub(crate) struct Record<'a> {
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
    pub(crate) decision: Option<&'a str>,
    /// The rule that decided.
    pub(crate) rule: Option<&'a Rule>,
    /// Absent where nobody looked, or where another line has them.
    pub(crate) flows: Option<&'a [FlowRecord]>,
    /// How many there are besides.
    pub(crate) more_flows: usize,
    pub(crate) arguments: Option<Body<'a>>,
    pub(crate) outcome: Option<&'a Outcome>,
    pub(crate) took_ms: Option<u64>,
    pub(crate) result: Option<Body<'a>>,
    /// Whose call it is.
    pub(crate) user: Option<&'a str>,
}

/// Arguments or a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Body<'a> {
    /// The size of the JSON text.
    pub(crate) bytes: usize,
    /// Its hash, as 64 hexadecimal digits.
    pub(crate) sha256: &'a str,
    /// The text itself, where bodies are asked for: JSON, as a string.
    pub(crate) text: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// A record that tells nothing but of which call it is.
    pub(crate) fn new(event: Event, run: &'a str, call: usize, time: &'a str) -> Self {
        Self {
            event,
            run,
            call,
            time,
            function: "",
            server: "",
            tool: "",
            decision: None,
            rule: None,
            flows: None,
            more_flows: 0,
            arguments: None,
            outcome: None,
            took_ms: None,
            result: None,
            user: None,
        }
    }

    /// The line, with its end: text.
    pub(crate) fn line(&self) -> Line {
        let mut line = Line::with_room(self.bodies() + USUAL_BYTES);
        line.raw(START);
        line.raw(match self.event {
            Event::Before => "before",
            Event::After => "after",
            Event::NotSent => "notSent",
        });
        line.text_of::<32>(r#"","run":""#, self.run);
        line.number(r#","call":"#, self.call);
        line.text_of::<{ WallTime::USUAL }>(r#","time":""#, self.time);
        PARTS.with_borrow_mut(|parts| {
            line.names(&mut parts.names, [self.function, self.server, self.tool]);
            line.ruling(&mut parts.ruling, self.decision, self.rule);
        });
        if let Some(flows) = self.flows {
            line.raw(r#","flows":"#);
            line.json(&flows);
        }
        if self.more_flows > 0 {
            line.number(r#","moreFlows":"#, self.more_flows);
        }
        if let Some(arguments) = &self.arguments {
            line.body(r#","arguments":"#, arguments);
        }
        if let Some(outcome) = self.outcome {
            line.members(outcome);
        }
        if let Some(took_ms) = self.took_ms {
            line.number(r#","tookMs":"#, took_ms);
        }
        if let Some(result) = &self.result {
            line.body(r#","result":"#, result);
        }
        if let Some(user) = self.user {
            line.text(r#","user":""#, user);
        }
        line.raw("}\n");
        line
    }

    fn bodies(&self) -> usize {
        let text = |body: &Option<Body<'_>>| body.and_then(|body| body.text).map_or(0, str::len);
        text(&self.arguments) + text(&self.result)
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    let mut hex = [0; 64];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha256::digest(text)) {
        for (digit, value) in pair.iter_mut().zip([byte >> 4, byte & 15]) {
            *digit = value + if value < 10 { b'0' } else { b'a' - 10 };
        }
    }
    str::from_utf8(&hex).unwrap_or_default().to_owned()
}

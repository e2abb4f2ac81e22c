//! One line of a journal.

use std::cell::Cell;
use std::ops::Deref;

use callgate_policy::Rule;
use callgate_policy::flow::FlowRecord;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::outcome::Outcome;

/// With what every record begins. In the rest of a record these characters
/// stand in no place, because a quotation mark in a text is escaped: so records
/// can be told apart even where one of them was cut off.
pub(super) const START: &str = r#"{"v":1,"event":""#;

/// Room for a line without bodies, in bytes.
const USUAL_BYTES: usize = 640;

/// The largest room that a thread keeps for its next line, in bytes.
const MOST_KEPT: usize = 16 << 10;

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
            Event::Before => "before\"",
            Event::After => "after\"",
            Event::NotSent => "notSent\"",
        });
        line.text(r#","run":"#, self.run);
        line.number(r#","call":"#, self.call);
        line.text(r#","time":"#, self.time);
        line.text(r#","function":"#, self.function);
        line.text(r#","server":"#, self.server);
        line.text(r#","tool":"#, self.tool);
        if let Some(decision) = self.decision {
            line.text(r#","decision":"#, decision);
        }
        if let Some(rule) = self.rule {
            line.rule(r#","rule":"#, rule);
        }
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
            line.text(r#","user":"#, user);
        }
        line.raw("}\n");
        line
    }

    fn bodies(&self) -> usize {
        let text = |body: &Option<Body<'_>>| body.and_then(|body| body.text).map_or(0, str::len);
        text(&self.arguments) + text(&self.result)
    }
}

/// A line. Writing to memory does not fail, and all that is written is text, numbers and JSON.
#[derive(Debug)]
pub(crate) struct Line(Vec<u8>);

thread_local! {
    /// The room of this thread's last line: what is in the processor's caches.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Line {
    fn with_room(bytes: usize) -> Self {
        let mut room = ROOM.take();
        room.clear();
        room.reserve(bytes);
        Self(room)
    }

    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, key: &str, text: &str) {
        self.raw(key);
        // Most texts are names, digits and hashes. Looking at all of a text
        // without an early end is what the processor does at once.
        let is_plain = text.bytes().fold(true, |plain, byte| {
            plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\')
        });
        if is_plain {
            self.raw("\"");
            self.raw(text);
            self.raw("\"");
        } else {
            self.json(&text);
        }
    }

    /// As text that holds JSON: no object of a script's making stands in a record.
    fn rule(&mut self, key: &str, rule: &Rule) {
        match rule.only_pattern() {
            // Names and `*`, which nobody has to escape.
            Some(pattern) => {
                self.raw(key);
                self.raw(r#""\""#);
                self.raw(pattern);
                self.raw(r#"\"""#);
            }
            None => self.text(key, &rule.to_json().to_string()),
        }
    }

    fn number(&mut self, key: &str, number: impl TryInto<u64>) {
        self.raw(key);
        // Without the machinery of formatting. All of them fit.
        let mut rest = number.try_into().unwrap_or(u64::MAX);
        let mut digits = [b'0'; 20];
        let mut begins = digits.len();
        while let Some(digit) = begins.checked_sub(1).and_then(|at| digits.get_mut(at)) {
            *digit += (rest % 10) as u8;
            rest /= 10;
            begins -= 1;
            if rest == 0 {
                break;
            }
        }
        self.0
            .extend_from_slice(digits.get(begins..).unwrap_or_default());
    }

    fn body(&mut self, key: &str, body: &Body<'_>) {
        self.raw(key);
        self.number(r#"{"bytes":"#, body.bytes);
        self.text(r#","sha256":"#, body.sha256);
        if let Some(text) = body.text {
            self.text(r#","text":"#, text);
        }
        self.raw("}");
    }

    /// The members of an object that has some.
    fn members(&mut self, outcome: &Outcome) {
        // That of nearly every call.
        if *outcome == Outcome::Ok {
            return self.raw(r#","outcome":"ok""#);
        }
        let brace = self.0.len();
        self.json(outcome);
        if let Some(brace) = self.0.get_mut(brace) {
            *brace = b',';
        }
        self.0.pop();
    }

    fn json(&mut self, value: &impl serde::Serialize) {
        let _written = serde_json::to_writer(&mut self.0, value);
    }
}

impl Deref for Line {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.0.capacity() <= MOST_KEPT {
            ROOM.set(std::mem::take(&mut self.0));
        }
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

/// RFC 3339, UTC, with milliseconds.
pub(crate) fn wall_time(time: Timestamp) -> String {
    /// What stands before the fraction.
    const SECONDS: usize = "2026-06-01T12:00:00".len();
    thread_local! {
        // Of the second in which the last call of this thread was, since all
        // of a second begin alike.
        static LAST: Cell<(i64, [u8; SECONDS])> = const { Cell::new((i64::MIN, [0; SECONDS])) };
    }
    let second = time.as_second();
    let millisecond = time.subsec_millisecond();
    let (last, text) = LAST.get();
    if last == second
        && (0..1_000).contains(&millisecond)
        && let Ok(text) = str::from_utf8(&text)
    {
        let mut known = String::with_capacity(SECONDS + ".000Z".len());
        known.push_str(text);
        known.push('.');
        for unit in [100, 10, 1] {
            let digit = u8::try_from(millisecond / unit % 10).unwrap_or_default();
            known.push(char::from(b'0' + digit));
        }
        known.push('Z');
        return known;
    }
    let text = format!("{time:.3}");
    // Years of more than four digits are longer.
    if text.len() == SECONDS + ".000Z".len()
        && let Some(seconds) = text.as_bytes().first_chunk()
    {
        LAST.set((second, *seconds));
    }
    text
}

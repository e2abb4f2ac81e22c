//! The text of a journal's line: put together by hand, since every call waits for it.

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use callgate_policy::Rule;

use super::record::Body;
use crate::outcome::Outcome;

/// The largest room that a thread keeps for its next line, in bytes.
const MOST_KEPT: usize = 16 << 10;

/// The longest part of a line that a thread keeps, in bytes.
const MOST_OF_PART: usize = 2 << 10;

/// A line. Writing to memory does not fail, and all that is written is text, numbers and JSON.
#[derive(Debug)]
pub(crate) struct Line(Vec<u8>);

/// What many lines have in common, as it was made for the last one.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) names: Part<3>,
    pub(super) ruling: Part<2>,
}

/// A part of a line, and all that it was made of: where that is the same, so is this.
#[derive(Debug)]
pub(super) struct Part<const N: usize> {
    of: [String; N],
    made: Vec<u8>,
}

impl<const N: usize> Part<N> {
    const NONE: Self = Self {
        of: [const { String::new() }; N],
        made: Vec::new(),
    };

    fn is_of(&self, of: [&str; N]) -> bool {
        !self.made.is_empty() && self.of.iter().zip(of).all(|(known, of)| known == of)
    }

    fn keep(&mut self, of: [&str; N], made: &[u8]) {
        self.made.clear();
        if made.len() > MOST_OF_PART {
            return;
        }
        self.made.extend_from_slice(made);
        for (known, of) in self.of.iter_mut().zip(of) {
            of.clone_into(known);
        }
    }
}

thread_local! {
    /// The room of this thread's last line: what is in the processor's caches.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// The parts of it. Most calls are of the tool of the one before, by the same rule; and most
    /// of the time that a line takes goes into code and branches that the processor has not seen
    /// since.
    pub(super) static PARTS: RefCell<Parts> = const {
        RefCell::new(Parts { names: Part::NONE, ruling: Part::NONE })
    };
}

impl Line {
    pub(super) fn with_room(bytes: usize) -> Self {
        let mut room = ROOM.take();
        room.clear();
        room.reserve(bytes);
        Self(room)
    }

    #[inline(always)]
    pub(super) fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// With a key that ends with the quotation mark of the text.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.raw(key);
        match is_plain(text.as_bytes()) {
            true => self.raw(text),
            false => self.escaped(text),
        }
        self.raw("\"");
    }

    /// [`Self::text`] that has `N` bytes nearly always: a copy of a size that is known is a few
    /// instructions, and any other a call.
    #[inline(always)]
    pub(super) fn text_of<const N: usize>(&mut self, key: &str, text: &str) {
        match <&[u8; N]>::try_from(text.as_bytes()) {
            Ok(known) if is_plain(known) => {
                self.raw(key);
                self.0.extend_from_slice(known);
                self.raw("\"");
            }
            _ => self.text(key, text),
        }
    }

    /// Text in which something has to be escaped: mostly the quotation marks around a rule.
    fn escaped(&mut self, text: &str) {
        if text.bytes().any(|byte| byte < b' ') {
            self.0.pop();
            self.json(&text);
            self.0.pop();
            return;
        }
        let mut rest = text.as_bytes();
        while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
            let (before, from) = rest.split_at(at);
            self.0.extend_from_slice(before);
            self.0.push(b'\\');
            self.0.extend(from.first());
            rest = from.get(1..).unwrap_or_default();
        }
        self.0.extend_from_slice(rest);
    }

    /// What is called.
    pub(super) fn names(&mut self, part: &mut Part<3>, names: [&str; 3]) {
        if part.is_of(names) {
            return self.0.extend_from_slice(&part.made);
        }
        let begins = self.0.len();
        let [function, server, tool] = names;
        self.text(r#","function":""#, function);
        self.text(r#","server":""#, server);
        self.text(r#","tool":""#, tool);
        part.keep(names, self.0.get(begins..).unwrap_or_default());
    }

    /// What was decided, and by which rule.
    pub(super) fn ruling(
        &mut self,
        part: &mut Part<2>,
        decision: Option<&str>,
        rule: Option<&Rule>,
    ) {
        // What rules say besides is not looked at for this.
        let pattern = rule.and_then(Rule::only_pattern);
        let of = decision.zip(pattern).map(<[&str; 2]>::from);
        if of.is_some_and(|of| part.is_of(of)) {
            return self.0.extend_from_slice(&part.made);
        }
        let begins = self.0.len();
        if let Some(decision) = decision {
            self.text(r#","decision":""#, decision);
        }
        match (rule, pattern) {
            // As text that holds JSON: no object of a script's making stands in a record. Names
            // and `*` nobody has to escape.
            (Some(_), Some(pattern)) => {
                self.raw(r#","rule":"\""#);
                self.raw(pattern);
                self.raw(r#"\"""#);
            }
            (Some(rule), None) => self.text(r#","rule":""#, &rule.to_json().to_string()),
            (None, _) => {}
        }
        if let Some(of) = of {
            part.keep(of, self.0.get(begins..).unwrap_or_default());
        }
    }

    #[inline(always)]
    pub(super) fn number(&mut self, key: &str, number: impl TryInto<u64>) {
        self.raw(key);
        // Without the machinery of formatting. All of them fit.
        let mut rest = number.try_into().unwrap_or(u64::MAX);
        if rest < 10 {
            return self.0.push(b'0' + rest as u8);
        }
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

    pub(super) fn body(&mut self, key: &str, body: &Body<'_>) {
        self.raw(key);
        self.number(r#"{"bytes":"#, body.bytes);
        self.text_of::<64>(r#","sha256":""#, body.sha256);
        if let Some(text) = body.text {
            self.text(r#","text":""#, text);
        }
        self.raw("}");
    }

    /// The members of an object that has some.
    pub(super) fn members(&mut self, outcome: &Outcome) {
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

    pub(super) fn json(&mut self, value: &impl serde::Serialize) {
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

/// Whether nothing in it has to be escaped. Looking at all of a text without an early end is what
/// the processor does at once.
#[inline(always)]
fn is_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |plain, byte| {
        plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\')
    })
}

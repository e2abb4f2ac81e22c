//! Redaction: the values that must not appear in messages, and their replacement by names.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use parking_lot::RwLock;
use serde_json::Value;
use url::{Url, form_urlencoded};

/// Shorter values are not hidden: they are settings such as `1` or `true`, and a message
/// without every `1` would be useless.
const SHORTEST_SECRET: usize = 6;
/// Shorter lines of a value are not hidden by themselves: they are `{` rather than a key.
const SHORTEST_LINE: usize = 16;
/// The number of learned values that are kept. The oldest goes first: an old token is refused.
const MAX_LEARNED: usize = 64;
/// The depth of nested escapes of JSON and URLs: a URL in JSON, JSON in JSON.
const ESCAPE_DEPTH: usize = 2;
/// The longest message about a failure, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// The secret values of one server, each with the name to show in its place.
#[derive(Clone, Default)]
pub struct Redact {
    values: Arc<RwLock<Values>>,
}

#[derive(Default)]
struct Values {
    given: Vec<Secret>,
    learned: VecDeque<Secret>,
    /// Finds every spelling of every value; `None` if there are none.
    finder: Option<AhoCorasick>,
    /// The name to show for each pattern of the finder.
    names: Vec<Arc<str>>,
    /// The length of the longest pattern, in bytes.
    longest: usize,
}

#[derive(Clone, PartialEq)]
struct Secret {
    name: Arc<str>,
    value: String,
}

impl Redact {
    /// Hides these values, each a pair of a name and a value.
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let given = values.into_iter().map(|(name, value)| Secret {
            name: name.into(),
            value,
        });
        let mut values = Values {
            given: given.collect(),
            ..Values::default()
        };
        values.rebuild();
        Self {
            values: Arc::new(RwLock::new(values)),
        }
    }

    /// Hides one more value, to be shown as `name`.
    pub fn learn(&self, name: &str, value: &str) {
        let secret = Secret {
            name: name.into(),
            value: value.to_owned(),
        };
        let mut values = self.values.write();
        if values.given.contains(&secret) || values.learned.contains(&secret) {
            return;
        }
        if values.learned.len() == MAX_LEARNED {
            values.learned.pop_front();
        }
        values.learned.push_back(secret);
        values.rebuild();
    }

    /// A server's text about a failure: without secrets, and cut to [`MAX_MESSAGE_BYTES`].
    pub fn message(&self, text: &str) -> String {
        let mut message = self.redact_start(text, MAX_MESSAGE_BYTES);
        if text.len() > MAX_MESSAGE_BYTES {
            message.push('…');
        }
        // A name may be longer than the value it stands for.
        cut_message(&mut message);
        message
    }

    /// Replaces the secrets in every string, key and number of a JSON value.
    pub fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                for (key, mut member) in std::mem::take(members) {
                    self.redact_value(&mut member);
                    members.insert(self.redact(&key), member);
                }
            }
            Value::Number(number) => {
                let text = number.to_string();
                let redacted = self.redact(&text);
                if redacted != text {
                    *value = Value::String(redacted);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// `text` with every secret replaced by its name.
    pub fn redact(&self, text: &str) -> String {
        self.redact_start(text, text.len())
    }

    /// The first `most` bytes of `text`, redacted. A secret that begins there and goes on
    /// leaves nothing.
    pub fn redact_start(&self, text: &str, most: usize) -> String {
        let end = text.floor_char_boundary(most);
        let values = self.values.read();
        let Some(finder) = &values.finder else {
            return text.get(..end).unwrap_or_default().to_owned();
        };
        let searched = text.floor_char_boundary(end.saturating_add(values.longest));
        let searched = text.get(..searched).unwrap_or_default();
        let found = finder.find_overlapping_iter(searched);
        let found = found.filter(|found| found.start() < end).map(|found| {
            let name = values.names.get(found.pattern().as_usize());
            (found.range(), name.map_or("", |name| name))
        });
        replaced(text, end, found.collect())
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.read();
        write!(f, "Redact({})", values.given.len() + values.learned.len())
    }
}

impl Values {
    /// Makes the finder of all spellings.
    fn rebuild(&mut self) {
        let mut patterns = Vec::new();
        self.names.clear();
        for Secret { name, value } in self.given.iter().chain(&self.learned) {
            if value.len() >= SHORTEST_SECRET {
                let spellings = spellings(value);
                self.names
                    .extend(spellings.iter().map(|_| Arc::clone(name)));
                patterns.extend(spellings);
            }
        }
        self.longest = patterns.iter().map(String::len).max().unwrap_or_default();
        // Escapes may be written with small or capital digits. Building fails only for more
        // patterns than memory holds.
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(patterns);
        self.finder = finder.ok().filter(|_| self.longest > 0);
    }
}

/// `text` up to `end`, with names in place of these ranges.
fn replaced(text: &str, end: usize, mut ranges: Vec<(Range<usize>, &str)>) -> String {
    ranges.sort_by_key(|(range, name)| (range.start, *name));
    let mut merged: Vec<(Range<usize>, usize, &str)> = Vec::new();
    for (range, name) in ranges {
        match merged.last_mut() {
            Some((all, longest, named)) if range.start < all.end => {
                all.end = all.end.max(range.end);
                if range.len() > *longest {
                    (*longest, *named) = (range.len(), name);
                }
            }
            _ => merged.push((range.clone(), range.len(), name)),
        }
    }
    let mut out = String::with_capacity(end);
    let mut done = 0;
    for (range, _, name) in merged {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.extend(["[", name, "]"]);
        done = range.end;
    }
    out.push_str(text.get(done..end).unwrap_or_default());
    out
}

/// Every form in which a server may repeat a value: as it is, line by line, escaped for JSON
/// and for URLs, and in base64.
fn spellings(value: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([value.to_owned()]);
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        let lines = lines.filter(|line| line.len() >= SHORTEST_LINE);
        all.extend(lines.map(str::to_owned));
    }
    for _ in 0..ESCAPE_DEPTH {
        let escaped: Vec<String> = all.iter().flat_map(|text| escapes(text)).collect();
        all.extend(escaped);
    }
    all.extend(in_base64(&BASE64_STANDARD_NO_PAD, value));
    all.extend(in_base64(&BASE64_URL_SAFE_NO_PAD, value));
    all
}

/// The escaped forms of a text that libraries write: in a JSON string, and in a URL.
fn escapes(text: &str) -> Vec<String> {
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json
        .get(1..json.len().saturating_sub(1))
        .unwrap_or_default();
    let units = json.encode_utf16().map(|unit| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("\\u{unit:04x}"),
    });
    let ascii = units.collect();
    let form: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    let mut all = vec![json.replace('/', "\\/"), json.to_owned(), ascii, form];
    // RFC 3986, and encodeURIComponent of JavaScript.
    for kept in ["-._~", "-._~!*'()"] {
        let bytes = text.bytes().map(|byte| match char::from(byte) {
            kept_one if kept_one.is_ascii_alphanumeric() || kept.contains(kept_one) => {
                kept_one.to_string()
            }
            _ => format!("%{byte:02X}"),
        });
        all.push(bytes.collect());
    }
    all
}

/// A value in base64 within a longer text, for each of the three offsets: the characters that
/// do not depend on the text around it.
fn in_base64(engine: &impl Engine, value: &str) -> Vec<String> {
    let at = |offset: usize| {
        let padded = [vec![0; offset], value.as_bytes().to_vec()].concat();
        let text = engine.encode(&padded);
        let (first, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        text.get(first..end).unwrap_or_default().to_owned()
    };
    (0..3).map(at).collect()
}

/// Cuts a message about a failure to [`MAX_MESSAGE_BYTES`].
pub fn cut_message(message: &mut String) {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
    }
}

/// The values of a URL's query, its user and its password, each with the name to show in its place.
pub fn url_secrets(url: &str) -> Vec<(String, String)> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |name: &str, value: &str| {
        let pair = format!("={}", value.replace('&', "%26"));
        let decoded = form_urlencoded::parse(pair.as_bytes()).next();
        found.push((name.to_owned(), value.to_owned()));
        found.extend(decoded.map(|(_, value)| (name.to_owned(), value.into_owned())));
    };
    for pair in url.query().unwrap_or_default().split('&') {
        match pair.split_once('=').unwrap_or(("", pair)) {
            ("", value) => add("URL query", value),
            (name, value) => add(name, value),
        }
    }
    if let Some(password) = url.password() {
        // Together they are hidden, too: each alone may be too short for that.
        add("URL user", &format!("{}:{password}", url.username()));
        add("URL password", password);
    }
    add("URL user", url.username());
    found
}

#[cfg(test)]
mod tests;

//! Redaction: replaces secret values in messages by their names.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use callgate_text::{MAX_MESSAGE_BYTES, cut_message};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use url::{Url, form_urlencoded};

/// Bytes of the shortest hidden value. Shorter ones are settings such as `1` or `true`, and a
/// message without every `1` would be useless.
const MIN_SECRET: usize = 6;
/// Bytes of the shortest line that is hidden without the rest of its value. Shorter ones are rather
/// `{` than a key.
const MIN_LINE: usize = 16;
/// Learned values. The oldest is dropped first, because servers refuse old tokens.
const MAX_LEARNED: usize = 64;
/// Bytes of all spellings of the learned values. The newest value is always kept.
const MAX_SPELLED: usize = 1 << 20;
/// The depth of nested escapes of JSON and URLs: a URL in JSON, JSON in JSON.
const ESCAPE_DEPTH: usize = 2;

/// The secret values of one server, each with the name that is shown instead.
#[derive(Clone, Default)]
pub struct Redact {
    /// Locked while a finder is built.
    secrets: Arc<Mutex<Secrets>>,
    finder: Arc<RwLock<Arc<Finder>>>,
}

#[derive(Default)]
struct Secrets {
    given: Vec<Secret>,
    learned: VecDeque<Secret>,
}

struct Secret {
    name: Arc<str>,
    value: String,
    /// Empty if the value is not hidden.
    spellings: BTreeSet<String>,
}

/// Finds every spelling of every secret.
#[derive(Default)]
struct Finder {
    /// `None` without secrets.
    searcher: Option<AhoCorasick>,
    /// The shown name for each pattern.
    names: Vec<Arc<str>>,
}

/// A range of a text to replace.
struct Place<'f> {
    range: Range<usize>,
    /// The length of the longest secret in the range.
    longest: usize,
    /// The name of that secret.
    name: &'f str,
}

impl Redact {
    /// Hides these values, each a pair of a name and a value.
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let given = values.into_iter();
        let given = given.map(|(name, value)| Secret::new(&name, value));
        let secrets = Secrets {
            given: given.collect(),
            learned: VecDeque::new(),
        };
        Self {
            finder: Arc::new(RwLock::new(Arc::new(secrets.finder()))),
            secrets: Arc::new(Mutex::new(secrets)),
        }
    }

    /// Adds a value, to be shown as `name`. A long value takes some milliseconds, so this works on a
    /// blocking thread while redaction goes on.
    pub async fn learn(&self, name: &str, value: &str) {
        let (redact, name, value) = (self.clone(), name.to_owned(), value.to_owned());
        let learned = tokio::task::spawn_blocking(move || redact.add(&name, value)).await;
        if let Err(error) = learned {
            tracing::error!(%error, "a secret cannot be hidden in messages");
        }
    }

    fn add(&self, name: &str, value: String) {
        let mut secrets = self.secrets.lock();
        let mut known = secrets.given.iter().chain(&secrets.learned);
        if known.any(|known| *known.name == *name && known.value == value) {
            return;
        }
        secrets.learned.push_back(Secret::new(name, value));
        let sizes = secrets.learned.iter().rev().scan(0, |sum, secret| {
            *sum += secret.spellings.iter().map(String::len).sum::<usize>();
            Some(*sum)
        });
        let kept = sizes
            .take(MAX_LEARNED)
            .take_while(|sum| *sum <= MAX_SPELLED);
        let dropped = secrets.learned.len() - kept.count().max(1);
        secrets.learned.drain(..dropped);
        let finder = Arc::new(secrets.finder());
        *self.finder.write() = finder;
    }

    /// A server's text about a failure: without secrets, and cut to [`MAX_MESSAGE_BYTES`].
    pub fn message(&self, text: &str) -> String {
        let mut message = self.redact_start(text, MAX_MESSAGE_BYTES);
        if text.len() > MAX_MESSAGE_BYTES {
            message.push('…');
        }
        // A name may be longer than its value.
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

    /// Replaces every secret in `text` by its name.
    pub fn redact(&self, text: &str) -> String {
        self.redact_start(text, text.len())
    }

    /// The first `max` bytes of `text`, redacted. A secret that crosses the cut is replaced as a
    /// whole.
    pub fn redact_start(&self, text: &str, max: usize) -> String {
        let end = text.floor_char_boundary(max);
        let finder = Arc::clone(&self.finder.read());
        let longest = finder.searcher.as_ref();
        let longest = longest.map_or(0, AhoCorasick::max_pattern_len);
        let searched = text.floor_char_boundary(end.saturating_add(longest));
        let places = finder.places(text.get(..searched).unwrap_or_default(), end);
        replaced(text, end, &places)
    }
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets = self.secrets.lock();
        write!(f, "Redact({})", secrets.given.len() + secrets.learned.len())
    }
}

impl Secret {
    fn new(name: &str, value: String) -> Self {
        let spellings = if value.len() < MIN_SECRET {
            BTreeSet::new()
        } else {
            spellings(&value)
        };
        Self {
            name: name.into(),
            value,
            spellings,
        }
    }
}

impl Secrets {
    /// Builds the finder of all spellings.
    fn finder(&self) -> Finder {
        let mut patterns = Vec::new();
        let mut finder = Finder::default();
        for secret in self.given.iter().chain(&self.learned) {
            let names = secret.spellings.iter().map(|_| Arc::clone(&secret.name));
            finder.names.extend(names);
            patterns.extend(&secret.spellings);
        }
        // Escapes may be written with lower or upper case digits. An NFA, because the size of a DFA
        // is quadratic for repetitive values. Building fails only for more patterns than memory
        // holds.
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true);
        builder.kind(Some(AhoCorasickKind::ContiguousNFA));
        let searcher = builder.build(patterns).ok();
        finder.searcher = searcher.filter(|_| !finder.names.is_empty());
        finder
    }
}

impl Finder {
    /// The places of secrets that begin before `end`, in order. Overlapping secrets are one place.
    fn places(&self, text: &str, end: usize) -> Vec<Place<'_>> {
        let mut places: Vec<Place<'_>> = Vec::new();
        let searcher = self.searcher.iter();
        for found in searcher.flat_map(|searcher| searcher.find_overlapping_iter(text)) {
            // The first of the secrets with the same end is the longest, so it covers the others.
            let last = places.last();
            let is_covered = last.is_some_and(|last| last.range.end == found.end());
            if is_covered || found.start() >= end {
                continue;
            }
            let name = self.names.get(found.pattern().as_usize());
            let mut place = Place {
                range: found.range(),
                longest: found.len(),
                name: name.map_or("", |name| name),
            };
            while let Some(before) = places.pop_if(|it| place.range.start < it.range.end) {
                place.range.start = place.range.start.min(before.range.start);
                if before.longest >= place.longest {
                    (place.longest, place.name) = (before.longest, before.name);
                }
            }
            places.push(place);
        }
        places
    }
}

/// `text` up to `end`, with each place replaced by its name.
fn replaced(text: &str, end: usize, places: &[Place<'_>]) -> String {
    let mut out = String::with_capacity(end);
    let mut done = 0;
    for Place { range, name, .. } in places {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.extend(["[", name, "]"]);
        done = range.end;
    }
    out.push_str(text.get(done..end).unwrap_or_default());
    out
}

/// Every form in which a server may repeat a value: unchanged, line by line, escaped for JSON and
/// URLs, and in base64.
fn spellings(value: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([value.to_owned()]);
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        let lines = lines.filter(|line| line.len() >= MIN_LINE);
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

/// The escaped forms of a text in JSON strings and URLs.
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
    for unescaped in ["-._~", "-._~!*'()"] {
        let bytes = text.bytes().map(|byte| match char::from(byte) {
            plain if plain.is_ascii_alphanumeric() || unescaped.contains(plain) => {
                plain.to_string()
            }
            _ => format!("%{byte:02X}"),
        });
        all.push(bytes.collect());
    }
    all
}

/// A value in base64 within a longer text, for each of the three offsets: the characters that do
/// not depend on the surrounding text.
fn in_base64(engine: &impl Engine, value: &str) -> Vec<String> {
    let at = |offset: usize| {
        let padded = [vec![0; offset], value.as_bytes().to_vec()].concat();
        let text = engine.encode(&padded);
        let (first, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        text.get(first..end).unwrap_or_default().to_owned()
    };
    (0..3).map(at).collect()
}

/// The values of a URL's query, its user and its password, each with the name that is shown
/// instead.
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
        // The pair is hidden, too, because each part alone may be too short.
        add("URL user", &format!("{}:{password}", url.username()));
        add("URL password", password);
    }
    add("URL user", url.username());
    found
}

#[cfg(test)]
mod tests;

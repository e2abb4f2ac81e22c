//! What must not appear in a message: the values a server was given to keep.

mod in_url;

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use memchr::memmem;
use serde_json::Value;

pub use self::in_url::url_secrets;
use crate::spellings::{needle, readings, span};

/// Values shorter than this are left alone: they are settings such as `1` or
/// `true`, and hiding every `1` would make messages useless.
const SHORTEST_SECRET: usize = 6;
/// Lines of a value that are shorter than this are not looked for by themselves: they are
/// rather `{` than a part of a key.
const SHORTEST_LINE: usize = 16;
/// The longest message about a failure, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// How many values learned while a server is up are kept: tokens are renewed,
/// and an old one is refused anyway. The oldest goes first.
const MAX_LEARNED: usize = 64;

/// The values of a server's environment and headers, the secret parts of its URL
/// and arguments, and what was learned since, each with the name to show in its place.
/// Clones share what they learn.
#[derive(Clone, Default)]
pub struct Redact {
    values: Arc<RwLock<Values>>,
}

#[derive(Default)]
struct Values {
    given: Vec<Secret>,
    learned: VecDeque<Secret>,
    /// What is looked for: each as it is, and what base64 makes of it.
    forms: Vec<Form>,
    /// How long the shortest and the longest of these are, in bytes.
    lengths: Option<RangeInclusive<usize>>,
    /// Those that are numbers, as JSON has them that keeps no more digits than this.
    numbers: Vec<(f64, Arc<str>)>,
}

struct Form {
    finder: memmem::Finder<'static>,
    name: Arc<str>,
}

#[derive(Clone, PartialEq)]
struct Secret {
    name: Arc<str>,
    value: String,
}

impl Redact {
    /// Redaction of these values, each with the name to show in its place.
    pub fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let given = values.into_iter().map(|(name, value)| Secret {
            name: name.into(),
            value,
        });
        let mut values = Values {
            given: given.collect(),
            ..Values::default()
        };
        values.spell_out();
        Self {
            values: Arc::new(RwLock::new(values)),
        }
    }

    /// Adds a value that came later, to be shown as `name`.
    pub fn learn(&self, name: &str, value: &str) {
        let secret = Secret {
            name: name.into(),
            value: value.to_owned(),
        };
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        if values.given.contains(&secret) || values.learned.contains(&secret) {
            return;
        }
        if values.learned.len() == MAX_LEARNED {
            values.learned.pop_front();
        }
        values.learned.push_back(secret);
        values.spell_out();
    }

    /// What a server says of a failure, as it may be passed on: without secrets and not too long.
    pub fn message(&self, text: &str) -> String {
        // No more is searched than may be shown: it may be as long as a message.
        let mut message = self.redact_start(text, MAX_MESSAGE_BYTES);
        if text.len() > MAX_MESSAGE_BYTES {
            message.push('…');
        }
        // Names may be longer than what they stand for.
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
                let redacted = match number.as_f64().filter(|_| number.is_f64()) {
                    // Not every digit of a long one is left.
                    Some(number) => self.named(number).unwrap_or_else(|| self.redact(&text)),
                    None => self.redact(&text),
                };
                if redacted != text {
                    *value = Value::String(redacted);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// What is shown instead of a number that is a secret.
    fn named(&self, number: f64) -> Option<String> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut numbers = values.numbers.iter();
        let (_, name) = numbers.find(|(secret, _)| secret.abs() == number.abs())?;
        let sign = if number.is_sign_negative() { "-" } else { "" };
        Some(format!("{sign}[{name}]"))
    }

    /// `text` with every secret replaced by its name, whatever escapes it is written with.
    pub fn redact(&self, text: &str) -> String {
        self.redact_start(text, text.len())
    }

    /// The first `most` bytes of `text`, as [`Redact::redact`] has them, whatever follows. Of a
    /// secret that begins there and goes on, nothing is left.
    pub fn redact_start(&self, text: &str, most: usize) -> String {
        let end = text.floor_char_boundary(most);
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        // Undoing escapes makes no text longer.
        let lengths = values.lengths.as_ref();
        let lengths = lengths.filter(|lengths| *lengths.start() <= text.len());
        if let Some(longest) = lengths.map(|lengths| *lengths.end()) {
            let searched = text.floor_char_boundary(end.saturating_add(span(longest)));
            let searched = text.get(..searched).unwrap_or_default();
            readings(searched, longest, |reading| {
                for Form { finder, name } in &values.forms {
                    let places = finder.find_iter(reading.bytes()).map(|start| {
                        let end = start + finder.needle().len();
                        (reading.place(&(start..end)), name.as_ref())
                    });
                    found.extend(places);
                }
            });
        }
        found.retain(|(place, _)| place.start < end);
        replaced(text, end, found)
    }

    /// In how many bytes of a text a secret may be written.
    pub fn span(&self) -> usize {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let lengths = values.lengths.as_ref();
        lengths.map_or(0, |lengths| span(*lengths.end()))
    }
}

/// `text` up to `end`, with names in these places, which begin before that. Of places that overlap, all goes, and the longest
/// has its name shown.
fn replaced(text: &str, end: usize, mut places: Vec<(Range<usize>, &str)>) -> String {
    places.sort_by_key(|(place, name)| (place.start, *name));
    let mut merged: Vec<(Range<usize>, usize, &str)> = Vec::new();
    for (place, name) in places {
        match merged.last_mut() {
            Some((all, longest, named)) if place.start < all.end => {
                all.end = all.end.max(place.end);
                if place.len() > *longest {
                    (*longest, *named) = (place.len(), name);
                }
            }
            _ => merged.push((place.clone(), place.len(), name)),
        }
    }
    let mut out = String::with_capacity(end);
    let mut done = 0;
    for (place, _, name) in merged {
        out.push_str(text.get(done..place.start).unwrap_or_default());
        out.extend(["[", name, "]"]);
        done = place.end;
    }
    out.push_str(text.get(done..end).unwrap_or_default());
    out
}

impl Values {
    /// Writes down every form in which a server may repeat a value.
    fn spell_out(&mut self) {
        self.forms.clear();
        self.numbers.clear();
        for Secret { name, value } in self.given.iter().chain(&self.learned) {
            if value.len() < SHORTEST_SECRET {
                continue;
            }
            if let Some(number) = value.parse().ok().filter(|number: &f64| number.is_finite()) {
                self.numbers.push((number, Arc::clone(name)));
            }
            let mut forms = vec![value.clone()];
            // What is read or shown line by line never has the whole value.
            if value.contains('\n') {
                let lines = value.lines().map(str::trim);
                let lines = lines.filter(|line| line.len() >= SHORTEST_LINE);
                forms.extend(lines.map(str::to_owned));
            }
            forms.extend(in_base64(&BASE64_STANDARD_NO_PAD, value));
            forms.extend(in_base64(&BASE64_URL_SAFE_NO_PAD, value));
            // In most base64, nothing is of one alphabet alone.
            forms.sort_unstable();
            forms.dedup();
            let named = forms.into_iter().map(|form| Form {
                finder: memmem::Finder::new(&needle(&form)).into_owned(),
                name: Arc::clone(name),
            });
            self.forms.extend(named);
        }
        let lengths = self.forms.iter().map(|form| form.finder.needle().len());
        let shortest = lengths.clone().min();
        self.lengths = shortest.zip(lengths.max()).map(|(from, to)| from..=to);
    }
}

/// What base64 makes of a value that stands in a longer text, by the place that
/// it begins at: the characters that do not depend on what is around it.
fn in_base64(engine: &impl Engine, value: &str) -> Vec<String> {
    let at = |offset: usize| {
        let padded = [vec![0; offset], value.as_bytes().to_vec()].concat();
        let text = engine.encode(&padded);
        let (first, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        text.get(first..end).unwrap_or_default().to_owned()
    };
    (0..3).map(at).collect()
}

impl fmt::Debug for Redact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Redact({})", values.given.len() + values.learned.len())
    }
}

/// Cuts a message about a failure to the longest that is shown.
pub fn cut_message(message: &mut String) {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
    }
}

#[cfg(test)]
mod tests;

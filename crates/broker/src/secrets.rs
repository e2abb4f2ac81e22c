//! What must not appear in a message: the values a server was given to keep.

mod in_url;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use memchr::memmem;
use serde_json::Value;

use self::in_url::in_url;
use crate::shape::cut_message;
use crate::spec::{Http, Stdio, Transport};
use crate::spellings::{needle, readings, span};

/// Values shorter than this are left alone: they are settings such as `1` or
/// `true`, and hiding every `1` would make messages useless.
const SHORTEST_SECRET: usize = 6;
/// Lines of a value that are shorter than this are not looked for by themselves: they are
/// rather `{` than a part of a key.
const SHORTEST_LINE: usize = 16;
/// How many values learned while a server is up are kept: tokens are renewed,
/// and an old one is refused anyway. The oldest goes first.
const MAX_LEARNED: usize = 64;

/// The values of a server's environment and headers, the secret parts of its URL
/// and arguments, and what was learned since, each with the name to show in its place.
/// Clones share what they learn.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    values: Arc<RwLock<Values>>,
}

#[derive(Default)]
struct Values {
    given: Vec<Secret>,
    learned: VecDeque<Secret>,
    /// What is looked for: each as it is, and what base64 makes of it.
    forms: Vec<Form>,
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

impl Secrets {
    /// What is secret about a transport. Values that are still to be looked up
    /// are learned when they are.
    pub(crate) fn of(transport: &Transport) -> Self {
        let mut values: Vec<(String, String)> = Vec::new();
        let mut of_url = Vec::new();
        let parts = match transport {
            Transport::Stdio(Stdio { env, secrets, .. }) => {
                for (name, value) in env {
                    if name != "PATH" && name != "HOME" {
                        values.push((name.clone(), value.clone()));
                    }
                }
                secrets
            }
            Transport::Http(Http {
                url,
                headers,
                secrets,
                ..
            }) => {
                for (name, value) in headers {
                    values.push((name.clone(), value.clone()));
                    // A server that repeats a token does so without its scheme.
                    if let Some((_scheme, token)) = value.split_once(' ') {
                        values.push((name.clone(), token.to_owned()));
                    }
                }
                if let Some((_, query)) = url.split_once('?') {
                    values.push(("URL query".to_owned(), query.to_owned()));
                }
                of_url = in_url(url);
                secrets
            }
        };
        let parts = parts
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()));
        for (name, value) in parts.chain(of_url) {
            // One that is a whole value has the name of that.
            if !values.iter().any(|(_, given)| *given == value) {
                values.push((name, value));
            }
        }
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
    pub(crate) fn learn(&self, name: &str, value: &str) {
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
    pub(crate) fn message(&self, text: &str) -> String {
        // First the secrets: one that the cut goes through would not be found.
        let mut message = self.redact(text);
        cut_message(&mut message);
        message
    }

    /// Replaces the secrets in every string and key of a JSON value.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                for (key, mut member) in std::mem::take(members) {
                    self.redact_value(&mut member);
                    members.insert(self.redact(&key), member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `text` with every secret replaced by its name, whatever escapes it is written with.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redact_start(text, text.len())
    }

    /// The first `most` bytes of `text`, as [`Secrets::redact`] has them, whatever follows. Of a
    /// secret that begins there and goes on, nothing is left.
    pub(crate) fn redact_start(&self, text: &str, most: usize) -> String {
        let end = text.floor_char_boundary(most);
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        if let Some(longest) = values.longest() {
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
    pub(crate) fn span(&self) -> usize {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        values.longest().map_or(0, span)
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
    let mut out = String::with_capacity(text.len());
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
    /// How long the longest is of what is looked for.
    fn longest(&self) -> Option<usize> {
        let needles = self.forms.iter().map(|form| form.finder.needle().len());
        needles.max()
    }

    /// Writes down every form in which a server may repeat a value.
    fn spell_out(&mut self) {
        self.forms.clear();
        for Secret { name, value } in self.given.iter().chain(&self.learned) {
            if value.len() < SHORTEST_SECRET {
                continue;
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

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Secrets({})", values.given.len() + values.learned.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_form_of_a_secret_goes() {
        let http = Transport::Http(Http {
            url: "https://bob:pa55word@h/mcp?api_key=k1234567".to_owned(),
            headers: BTreeMap::from([(
                "Authorization".to_owned(),
                "Bearer s3cr3t-token".to_owned(),
            )]),
            ..Http::default()
        });
        let secrets = Secrets::of(&http);
        assert_eq!(
            secrets.redact(
                "no s3cr3t-token, no Bearer s3cr3t-token, no bob:pa55word@h?api_key=k1234567"
            ),
            "no [Authorization], no [Authorization], no [URL user]@h?[URL query]"
        );
        let mut value = serde_json::json!({
            "s3cr3t-token": [1, "Bearer s3cr3t-token", { "a": "k1234567?", "b": null }]
        });
        secrets.redact_value(&mut value);
        assert_eq!(
            value.to_string(),
            r#"{"[Authorization]":[1,"[Authorization]",{"a":"[api_key]?","b":null}]}"#
        );
        assert_eq!(
            secrets.redact("bob had pa55word, pa55%77ord"),
            "bob had [URL password], [URL password]"
        );
    }

    #[test]
    fn parts_of_arguments_and_urls_go() {
        let map = |pairs: &[(&str, &str)]| {
            let owned = pairs.iter();
            owned
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let stdio = Transport::Stdio(Stdio {
            args: vec!["--token=s3cr3t-token".to_owned()],
            env: map(&[("DSN", "db://u:pa55word@h"), ("T", "s3cr3t-token")]),
            secrets: map(&[("A", "s3cr3t-token"), ("P", "pa55word"), ("N", "1")]),
            ..Stdio::default()
        });
        assert_eq!(
            Secrets::of(&stdio).redact("1 argv: --token=s3cr3t-token db://u:pa55word@h pa55word"),
            "1 argv: --token=[T] [DSN] [P]"
        );
        let http = Transport::Http(Http {
            url: "https://h/k-1234567/mcp?v=1&key=k-7654321".to_owned(),
            secrets: map(&[("IN_PATH", "k-1234567"), ("IN_QUERY", "k-7654321")]),
            ..Http::default()
        });
        assert_eq!(
            Secrets::of(&http).redact("/k-1234567/mcp?v=1&key=k-7654321 k-7654321"),
            "/[IN_PATH]/mcp?[URL query] [IN_QUERY]"
        );
    }

    #[test]
    fn lines_of_a_value_go_by_themselves() {
        let secrets = Secrets::default();
        let key = "-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n  AQEFAASCBKcwggSjAgEA\n";
        secrets.learn("KEY", key);
        for (said, shown) in [
            ("MIIEvQIBADANBgkqhkiG9w0B", "[KEY]"),
            ("AQEFAASCBKcwggSjAgEA, short", "[KEY], short"),
            ("AQEFAASCBKcwggSjAgE", "AQEFAASCBKcwggSjAgE"),
            (r"MIIEvQIBADANBgkqhkiG9w0B\nshort", r"[KEY]\nshort"),
        ] {
            assert_eq!(secrets.redact(said), shown);
        }
        assert_eq!(secrets.redact(key), "[KEY]");
    }

    #[test]
    fn of_secrets_that_overlap_nothing_stays() {
        let secrets = Secrets::default();
        for (name, value) in [("one", "abcdef"), ("other", "defghij"), ("all", "xabcdefx")] {
            secrets.learn(name, value);
        }
        assert_eq!(
            secrets.redact("-abcdefghij-abcdefabcdef-xabcdefx-abc%64ef%20-defghijabcdef"),
            "-[other]-[one][one]-[all]-[one]%20-[other][one]"
        );
    }

    #[test]
    fn of_a_secret_at_the_cut_nothing_stays() {
        let secrets = Secrets::default();
        secrets.learn("token", "hunter2-hunter2");
        let text = r"é hunter2%2Dhunter\u0032 and more";
        for (most, expected) in [
            (0, ""),
            (1, ""),
            (3, "é "),
            (4, "é [token]"),
            (23, "é [token]"),
            (text.len() - 9, "é [token]"),
            (text.len() - 1, "é [token] and mor"),
            (text.len(), "é [token] and more"),
            (usize::MAX, "é [token] and more"),
        ] {
            assert_eq!(secrets.redact_start(text, most), expected, "{most}");
        }
    }

    #[test]
    fn of_a_secret_at_the_cut_nothing_stays_in_the_longest_spelling() {
        let secrets = Secrets::default();
        secrets.learn("token", "hunter2-hunter2");
        let in_json = |text: &str| {
            let units = text.chars().map(u32::from);
            units
                .map(|unit| format!("\\u{unit:04x}"))
                .collect::<String>()
        };
        let written = in_json(&in_json("hunter2-hunter2"));
        assert_eq!(written.len(), 15 * 36);
        let text = format!("no {written} and more");
        for most in 4..3 + written.len() {
            assert_eq!(secrets.redact_start(&text, most), "no [token]", "{most}");
        }
        assert_eq!(secrets.redact(&text), "no [token] and more");
    }

    #[test]
    fn what_is_learned_goes_in_every_spelling_and_is_bounded() {
        let secrets = Secrets::default();
        let shared = secrets.clone();
        shared.learn("token", "a\"b+c d/é~");
        for said in [
            "a\"b+c d/é~",
            r#"a\"b+c d/é~"#,
            "a%22b%2Bc+d%2F%C3%A9%7E",
            "YSJiK2MgZC/DqX4",
            "YSJiK2MgZC_DqX4=",
            "a%22b%2bc%20d%2f%c3%a9~",
            "a%2522b%252Bc%2520d/%25C3%25A9~",
            r#"a\\\"b+c d\/\u00e9\u007E"#,
        ] {
            let shown = secrets.redact(said);
            assert!(shown.starts_with("[token]"), "{said} became {shown}");
        }
        for other in ["a\"b+c d/é", "a\"b%2Cc d/é~", "a\\b+c d/é~", ""] {
            assert_eq!(secrets.redact(other), other);
        }
        for before in ["", "x", "xy", "xyz"] {
            let said = BASE64_STANDARD_NO_PAD.encode(format!("{before}a\"b+c d/é~ and more"));
            let shown = secrets.redact(&said);
            assert!(shown.contains("[token]"), "{said} became {shown}");
        }
        for n in 0..MAX_LEARNED {
            shared.learn("later", &format!("a later one {n}"));
        }
        assert_eq!(secrets.redact("a\"b+c d/é~"), "a\"b+c d/é~");
        assert_eq!(secrets.redact("a later one 0"), "[later]");
        assert_eq!(format!("{secrets:?}"), "Secrets(64)");
    }
}

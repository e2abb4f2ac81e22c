//! Hides what may be secrets in the lines of other clients' files before they are shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::entry::reference;
use super::secrets::Secrets;

/// The mark in place of a secret.
const HIDDEN: &str = "•••";

/// The values of a file that may be secrets, each with its form for people.
pub struct Mask {
    hidden: BTreeMap<String, String>,
    /// The values that are no secrets.
    plain: BTreeSet<String>,
    /// The values of our entry.
    ours: BTreeSet<String>,
}

impl Mask {
    /// The mask for a file with these settings, and for an entry of ours that is added to it.
    pub fn new(settings: &Value, ours: &Value) -> Self {
        let mut mask = Self {
            hidden: BTreeMap::new(),
            plain: BTreeSet::new(),
            ours: BTreeSet::new(),
        };
        mask.add_ours(ours);
        mask.add("", settings);
        mask
    }

    fn add_ours(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.ours.insert(text.clone());
            }
            Value::Array(array) => array.iter().for_each(|it| self.add_ours(it)),
            Value::Object(object) => object.values().for_each(|it| self.add_ours(it)),
            _ => {}
        }
    }

    /// Adds the secrets in a value that has this key.
    fn add(&mut self, key: &str, value: &Value) {
        let is_any = |keys: &[&str]| keys.iter().any(|it| key.eq_ignore_ascii_case(it));
        match value {
            Value::String(text) => self.hide(text, shown(key, text)),
            Value::Array(array) => {
                let texts: Vec<String> = array.iter().map(text).collect();
                let shown = with(|secrets| secrets.arguments("", "", &texts));
                for (text, shown) in texts.iter().zip(shown) {
                    self.hide(text, shown);
                }
                let others = array.iter().filter(|it| !it.is_string());
                others.for_each(|it| self.add(key, it));
            }
            Value::Object(object) => {
                let is_environment = is_any(&["env", "environment"]);
                let is_headers = is_any(&["headers", "http_headers"]);
                for (key, value) in object {
                    match value {
                        Value::String(text) if is_environment => {
                            self.hide(
                                text,
                                with(|it| vec![it.environment("", key, text)]).concat(),
                            );
                        }
                        Value::String(text) if is_headers => {
                            self.hide(text, with(|it| vec![it.header("", key, text)]).concat());
                        }
                        value => self.add(key, value),
                    }
                }
            }
            _ => {}
        }
    }

    fn hide(&mut self, text: &str, shown: String) {
        if shown == text {
            self.plain.insert(shown);
        } else if !self.ours.contains(text) {
            self.hidden.insert(text.to_owned(), shown);
        }
    }

    /// The text of the file for people. Lines stay lines.
    pub fn apply(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        let masked: String = lines.map(|line| self.line(line)).collect();
        // A text over several lines, and comments.
        let long = self.hidden.iter().filter(|(text, _)| text.len() >= 8);
        long.fold(masked, |masked, (text, shown)| masked.replace(text, shown))
    }

    /// A line, with the hidden values in its literals.
    fn line(&self, line: &str) -> String {
        let (mut masked, mut rest, mut key) = (String::new(), line, String::new());
        while let Some(start) = rest.find(['"', '\'']) {
            let (before, quoted) = rest.split_at(start);
            masked += &words(before);
            let is_apostrophe = quoted.starts_with('\'') && before.ends_with(char::is_alphanumeric);
            let Some(end) = end_of(quoted).filter(|_| !is_apostrophe) else {
                // In a comment.
                let (quote, after) = quoted.split_at(1);
                masked += quote;
                rest = after;
                continue;
            };
            let (literal, after) = quoted.split_at(end);
            let inner = &literal[1..end - 1];
            let decoded: String =
                serde_json::from_str(literal).unwrap_or_else(|_| inner.to_owned());
            let word = before.trim_end().strip_suffix('=').map(str::trim_end);
            let word = word.and_then(|it| it.rsplit([' ', '\t', ',', '{', '#', '.']).next());
            if let Some(word) = word.filter(|word| !word.is_empty()) {
                word.clone_into(&mut key);
            }
            let is_key = after.trim_start().starts_with([':', '=']);
            masked += &if is_key {
                literal.to_owned()
            } else {
                self.literal(literal, &key, &decoded)
            };
            if is_key {
                key = decoded;
            }
            rest = after;
        }
        masked + &words(rest)
    }

    /// A literal, given with its key and its decoded text.
    fn literal(&self, literal: &str, key: &str, decoded: &str) -> String {
        let shown = match self.hidden.get(decoded) {
            Some(shown) => shown.clone(),
            None if self.ours.contains(decoded) || self.plain.contains(decoded) => {
                return literal.to_owned();
            }
            // In a comment.
            None => shown(key, decoded),
        };
        if shown == decoded {
            return literal.to_owned();
        }
        let quote = &literal[..1];
        format!("{quote}{}{quote}", shown.escape_debug())
    }
}

/// The length of the literal at the start of a text, with its quotes; `None` if it does not end.
fn end_of(quoted: &str) -> Option<usize> {
    let mut characters = quoted.char_indices();
    let (_, quote) = characters.next()?;
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return Some(at + 1);
        }
        if character == '\\' && quote == '"' {
            characters.next();
        }
    }
    None
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A text that has this key, with marks in place of secrets.
fn shown(key: &str, text: &str) -> String {
    if key.is_empty() {
        return words(text);
    }
    let argument = format!("--{key}={text}");
    let shown = with(|secrets| secrets.arguments("", "", &[argument])).concat();
    let value = shown.strip_prefix(&format!("--{key}="));
    value.map_or(shown.clone(), str::to_owned)
}

/// A text outside of literals, with marks in place of words that look like tokens.
fn words(text: &str) -> String {
    let words = text.split_inclusive([' ', '\t', '\n', ',', ';', '(', ')', '[', ']', '<', '>']);
    let words: Vec<String> = words.map(str::to_owned).collect();
    // Each by itself: after a flag, a word would be its value.
    let shown = words.iter().map(|word| {
        let end = word.trim_end_matches([' ', '\t', '\n', ',', ';', '(', ')', '[', ']', '<', '>']);
        let shown = with(|secrets| secrets.arguments("", "", &[end.to_owned()])).concat();
        format!("{shown}{}", &word[end.len()..])
    });
    shown.collect()
}

/// The texts that `hide` gives, with marks in place of its new references.
fn with(hide: impl FnOnce(&mut Secrets) -> Vec<String>) -> Vec<String> {
    let mut secrets = Secrets::default();
    let mut texts = hide(&mut secrets);
    for text in &mut texts {
        for (name, _) in secrets.iter() {
            *text = text.replace(&reference(name), HIDDEN);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn possible_secrets_are_hidden() {
        let settings = json!({
            "theme": "Ayu", "mcpServers": {
                "a": { "command": "npx", "args": ["-y", "x", "--api-key", "quiet-word"],
                       "env": { "PLAIN": "sunrise", "LOG": "debug", "Q": "we\"ird" } },
                "b": { "url": "https://b.example/mcp?key=k1", "headers": { "X-Key": "hush" } } } });
        let ours = json!({ "command": "callgate", "args": ["serve", "--config", "/w/c.json"] });
        let mask = Mask::new(&settings, &ours);
        for text in [settings.to_string(), format!("{settings:#}")] {
            let shown = mask.apply(&text);
            for hidden in ["quiet-word", "sunrise", "ird", "k1", "hush"] {
                assert!(!shown.contains(hidden), "{hidden}: {shown}");
            }
            for kept in ["Ayu", "npx", "debug", "https://b.example/mcp?key=", "PLAIN"] {
                assert!(shown.contains(kept), "{kept}: {shown}");
            }
            assert_eq!(shown.lines().count(), text.lines().count());
        }
    }

    #[test]
    fn secrets_in_comments_and_toml_are_hidden() {
        let mask = Mask::new(&json!({}), &json!("/w/c.json"));
        for (line, expected) in [
            (
                "// don't: \"api_key\": \"s3cret\", it's\n",
                "// don't: \"api_key\": \"•••\", it's\n",
            ),
            ("API_KEY = \"s3cret\" # x\n", "API_KEY = \"•••\" # x\n"),
            ("# token = 'abc'\n", "# token = '•••'\n"),
            ("# ghp_0123456789abcdefgh\n", "# •••\n"),
            ("args = [\"/w/c.json\"]\n", "args = [\"/w/c.json\"]\n"),
        ] {
            assert_eq!(mask.apply(line), expected);
        }
    }
}

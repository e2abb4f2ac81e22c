//! Hides what may be secrets in the lines of other clients' files before they are shown.

use std::collections::BTreeSet;

use serde_json::Value;

use super::secrets::Secrets;

/// The mark in place of a secret.
const HIDDEN: &str = "•••";

/// Signs that end a word outside of literals.
const ENDS: [char; 11] = [' ', '\t', '\n', ',', ';', '(', ')', '[', ']', '<', '>'];

/// The texts of a file, sorted by whether they may be secrets. A literal that is not known, such as
/// one in a comment, is hidden.
#[derive(Default)]
pub struct Mask {
    plain: BTreeSet<String>,
    hidden: BTreeSet<String>,
}

impl Mask {
    /// The mask for a file with these settings, and for an entry of ours that is added to it.
    pub fn new(settings: &Value, ours: &Value) -> Self {
        let mut mask = Self::default();
        mask.add("", settings);
        mask.add_ours(ours);
        mask
    }

    fn add_ours(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.hidden.remove(text);
                self.plain.insert(text.clone());
            }
            Value::Array(array) => array.iter().for_each(|it| self.add_ours(it)),
            Value::Object(object) => object.values().for_each(|it| self.add_ours(it)),
            _ => {}
        }
    }

    /// Adds the texts in a value that has this key.
    fn add(&mut self, key: &str, value: &Value) {
        let is_any = |keys: &[&str]| keys.iter().any(|it| key.eq_ignore_ascii_case(it));
        match value {
            Value::String(text) => self.add_text(text, is_plain(format!("--{key}={text}"))),
            Value::Array(array) => {
                let texts = array.iter().map(|it| it.as_str().unwrap_or_default());
                let texts: Vec<String> = texts.map(str::to_owned).collect();
                let kept = Secrets::default().arguments("", "", &texts);
                for (text, kept) in texts.iter().zip(kept) {
                    self.add_text(text, kept == *text);
                }
                let others = array.iter().filter(|it| !it.is_string());
                others.for_each(|it| self.add(key, it));
            }
            Value::Object(object) => {
                let is_environment = is_any(&["env", "environment"]);
                let is_headers = is_any(&["headers", "http_headers"]);
                for (name, value) in object {
                    self.plain.insert(name.clone());
                    let mut secrets = Secrets::default();
                    match value {
                        Value::String(text) if is_environment => {
                            self.add_text(text, secrets.environment("", name, text) == *text);
                        }
                        Value::String(text) if is_headers => {
                            self.add_text(text, secrets.header("", name, text) == *text);
                        }
                        value => self.add(name, value),
                    }
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str, is_plain: bool) {
        let texts = if is_plain {
            &mut self.plain
        } else {
            &mut self.hidden
        };
        texts.insert(text.to_owned());
    }

    /// The text of the file for people. Lines stay lines.
    pub fn apply(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        let masked: String = lines.map(|line| self.line(line)).collect();
        // A text over several lines, and comments.
        let long = self.hidden.iter().filter(|text| text.len() >= 8);
        long.fold(masked, |masked, text| masked.replace(text, HIDDEN))
    }

    /// A line, with marks in place of its literals and words that may be secrets.
    fn line(&self, line: &str) -> String {
        let (mut masked, mut rest) = (String::new(), line);
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
            let is_key = after.trim_start().starts_with([':', '=']);
            if is_key || self.shows(literal) {
                masked += literal;
            } else {
                let quote = &literal[..1];
                masked += &format!("{quote}{HIDDEN}{quote}");
            }
            rest = after;
        }
        masked + &words(rest)
    }

    /// True if a literal, given with its quotes, is no secret.
    fn shows(&self, literal: &str) -> bool {
        let inner = &literal[1..literal.len() - 1];
        let decoded = serde_json::from_str(literal).unwrap_or_else(|_| inner.to_owned());
        decoded.is_empty() || self.plain.contains(&decoded) && !self.hidden.contains(&decoded)
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

/// True if an argument of a command holds no secret.
fn is_plain(argument: String) -> bool {
    let arguments = [argument];
    Secrets::default().arguments("", "", &arguments) == arguments
}

/// A text outside of literals, with marks in place of words that look like tokens.
fn words(text: &str) -> String {
    let words = text.split_inclusive(ENDS).map(|word| {
        // Each by itself: after a flag, a word would be its value.
        let bare = word.trim_end_matches(ENDS);
        let end = word.strip_prefix(bare).unwrap_or_default();
        let is_plain = is_plain(bare.to_owned());
        format!("{}{end}", if is_plain { bare } else { HIDDEN })
    });
    words.collect()
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
            for kept in ["Ayu", "npx", "debug", "PLAIN"] {
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

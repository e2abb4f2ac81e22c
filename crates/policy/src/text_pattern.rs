//! Whole-text matchers of argument rules: globs and regular expressions.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};

/// The maximum number of bytes of a glob or of a regular expression.
const MAX_BYTES: usize = 1_000;
/// The maximum number of bytes of one compiled expression, and of its cache.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The deepest nesting of groups in a regular expression.
const MAX_NESTING: u32 = 50;

/// A glob or a regular expression that has to match a whole text.
#[derive(Clone)]
pub struct TextPattern {
    text: String,
    regex: Regex,
}

impl TextPattern {
    /// Compiles a shell's pattern: `*` stands for any characters but `/`, `**` for any characters,
    /// `?` for one that is not `/`. At the start and after a `/`, `**/` stands for any number of
    /// folders, also for none: `**/.env` also matches `.env`.
    /// The error: a sentence about a glob that is empty, too long, or has one of `[ ] { } \`, which
    /// have no meaning here.
    pub(crate) fn glob(text: &str) -> Result<Self, String> {
        check_length(text)?;
        if let Some(sign) = text.chars().find(|c| "[]{}\\".contains(*c)) {
            return Err(format!(
                "it has \"{sign}\", which means nothing in a glob here; write a \"regex\""
            ));
        }
        let mut pattern = String::with_capacity(text.len() * 2);
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let begun = text.len() - rest.len();
            rest = if let Some(after) = after_folders(text, begun) {
                pattern.push_str("(?:.*/)?");
                after
            } else if let Some(after) = rest.strip_prefix("**") {
                pattern.push_str(".*");
                after.trim_start_matches('*')
            } else {
                match c {
                    '*' => pattern.push_str("[^/]*"),
                    '?' => pattern.push_str("[^/]"),
                    c => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
                }
                rest.get(c.len_utf8()..).unwrap_or_default()
            };
        }
        Self::whole(text, &pattern)
    }

    /// Compiles a regular expression. `.` matches line ends too. There are no look-around and no
    /// back references, and matching takes time proportional to the text.
    /// The error: a sentence about an expression that is empty, too long, invalid, or compiles to more
    /// than 1 MiB.
    pub(crate) fn regex(text: &str) -> Result<Self, String> {
        check_length(text)?;
        // By itself first, so that no parenthesis in it closes the group around
        // it.
        compile(text)?;
        Self::whole(text, text)
    }

    fn whole(text: &str, pattern: &str) -> Result<Self, String> {
        Ok(Self {
            text: text.to_owned(),
            regex: compile(&format!(r"\A(?:{pattern})\z"))?,
        })
    }

    /// The pattern as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// True if it matches all of `text`.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// The rest of a glob after `**/`, if that is at this place and stands for folders.
fn after_folders(glob: &str, at: usize) -> Option<&str> {
    let (before, rest) = glob.split_at_checked(at)?;
    if !(before.is_empty() || before.ends_with('/')) {
        return None;
    }
    let after = rest.strip_prefix("**")?;
    after.trim_start_matches('*').strip_prefix('/')
}

fn check_length(text: &str) -> Result<(), String> {
    match text.len() {
        0 => Err("it is empty; write what the whole text looks like".to_owned()),
        1..=MAX_BYTES => Ok(()),
        bytes => Err(format!("it has {bytes} bytes; the most is {MAX_BYTES}")),
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .dot_matches_new_line(true)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "it compiles to more than 1 MiB; write a shorter repetition".to_owned()
            }
            error => {
                // The message without the drawing of the place above it.
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                let last = last.trim_start_matches("error: ");
                format!("it is not a regular expression: {last}")
            }
        })
}

impl PartialEq for TextPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for TextPattern {}

impl fmt::Debug for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl Serialize for TextPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

//! Whole-text matchers of argument rules: globs and regular expressions.

use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};

/// The most bytes of a glob or of a regular expression.
pub(crate) const MAX_BYTES: usize = 1_000;
/// The most bytes of one compiled expression, and of its cache.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// The deepest nesting of groups in a regular expression.
const MAX_NESTING: u32 = 50;

/// A shell's pattern over a whole text: `*` stands for any characters but
/// `/`, `**` for any characters, `?` for one that is not `/`. At the beginning and
/// behind a `/`, `**/` stands for any number of folders, also for none: `**/.env` matches
/// `.env`, too.
#[derive(Clone)]
pub struct Glob {
    text: String,
    regex: Regex,
}

impl Glob {
    /// Checks and compiles a glob.
    ///
    /// # Errors
    ///
    /// [`TextError`] when it is empty, too long, or has one of `[ ] { } \`,
    /// which mean something elsewhere and nothing here.
    pub fn new(text: &str) -> Result<Self, TextError> {
        check_length(text)?;
        if let Some(sign) = text.chars().find(|c| "[]{}\\".contains(*c)) {
            return Err(TextError::Sign(sign));
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
        Ok(Self {
            text: text.to_owned(),
            regex: whole(&pattern)?,
        })
    }

    /// The glob as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the glob matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
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

/// A regular expression that has to match a whole text. `.` matches line ends
/// too. There are no look-around and no back references, and matching takes
/// time proportional to the text.
#[derive(Clone)]
pub struct WholeRegex {
    text: String,
    regex: Regex,
}

impl WholeRegex {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the expression matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl FromStr for WholeRegex {
    type Err = TextError;

    /// Checks and compiles an expression.
    fn from_str(text: &str) -> Result<Self, TextError> {
        check_length(text)?;
        // By itself first, so that no parenthesis in it closes the group around
        // it.
        compile(text)?;
        Ok(Self {
            text: text.to_owned(),
            regex: whole(text)?,
        })
    }
}

fn check_length(text: &str) -> Result<(), TextError> {
    match text.len() {
        0 => Err(TextError::Empty),
        1..=MAX_BYTES => Ok(()),
        bytes => Err(TextError::TooLong(bytes)),
    }
}

fn whole(pattern: &str) -> Result<Regex, TextError> {
    compile(&format!(r"\A(?:{pattern})\z"))
}

fn compile(pattern: &str) -> Result<Regex, TextError> {
    RegexBuilder::new(pattern)
        .dot_matches_new_line(true)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => TextError::CompiledTooBig,
            error => {
                // The message without the drawing of the place above it.
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                TextError::Syntax(last.trim_start_matches("error: ").to_owned())
            }
        })
}

/// A text that is not a glob or no regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// It has no characters.
    #[error("it is empty; write what the whole text looks like")]
    Empty,
    /// It has this many bytes, more than 1,000.
    #[error("it has {0} bytes; the most is {max}", max = MAX_BYTES)]
    TooLong(usize),
    /// A glob has a sign that would mean something in another kind of glob.
    #[error("it has {sign:?}, which means nothing in a glob here; write a \"regex\"", sign = .0.to_string())]
    Sign(char),
    /// The regular expression does not parse.
    #[error("it is not a regular expression: {0}")]
    Syntax(String),
    /// The regular expression compiles to more than 1 MiB.
    #[error("it compiles to more than 1 MiB; write a shorter repetition")]
    CompiledTooBig,
}

macro_rules! by_its_text {
    ($type:ty) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.text == other.text
            }
        }
        impl Eq for $type {}
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.text.serialize(serializer)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.text)
            }
        }
    };
}
by_its_text!(Glob);
by_its_text!(WholeRegex);

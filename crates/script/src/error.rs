//! The error of a script, shown at its place.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthChar;

/// A script that cannot be run as it is. Its `Display` is
/// `script.ts:3:14: message`, and below it the line and a caret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptError {
    kind: ScriptErrorKind,
    message: String,
    place: Option<Place>,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) text: String,
}

/// The kind of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScriptErrorKind {
    /// The text is not TypeScript.
    Syntax,
    /// The text is TypeScript, but uses something a script cannot have, such as an import.
    Unsupported,
    /// There is no code in the text.
    Empty,
    /// The text is longer than [`MAX_SCRIPT_BYTES`](crate::MAX_SCRIPT_BYTES).
    TooLong,
    /// The code is nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH), or takes too long to parse.
    TooComplex,
    /// The parser failed, or could not be started.
    Internal,
}

impl ScriptError {
    /// An error of the script as a whole, for a parser that did not come to its end.
    pub fn without_place(kind: ScriptErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind, message, None)
    }

    pub(crate) fn new(
        kind: ScriptErrorKind,
        message: impl Into<String>,
        place: Option<Place>,
    ) -> Self {
        Self {
            kind,
            message: printable(&message.into()),
            place,
            name: "script.ts".to_owned(),
        }
    }

    /// An error with another message at the same place.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same error with the name of the script's file.
    #[must_use]
    pub fn in_file(self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// The kind of mistake.
    pub fn kind(&self) -> ScriptErrorKind {
        self.kind
    }

    /// What is wrong and what to do, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line, from 1, as V8 and editors count: `None` for an error of the script as a whole.
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().map(|place| place.line)
    }

    /// The column, from 1, in UTF-16 units, as V8 and editors count.
    pub fn column(&self) -> Option<u32> {
        self.place.as_ref().map(|place| place.column)
    }

    /// The line's own text.
    pub fn source_line(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.text.as_str())
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return write!(f, "{}: {}", self.name, self.message);
        };
        writeln!(
            f,
            "{}:{}:{}: {}",
            self.name, place.line, place.column, self.message
        )?;
        let (line, padding) = excerpt(&place.text, place.column);
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{number} | {line}")?;
        write!(f, "{margin} | {padding}^")
    }
}

/// Characters of a long line that are shown on each side of the caret.
const AROUND: usize = 60;

/// The part of a line around a column, and white space as wide as what stands before the caret.
fn excerpt(line: &str, column: u32) -> (String, String) {
    let target = column.saturating_sub(1);
    let mut units = 0_u32;
    let at = line
        .chars()
        .take_while(|c| {
            let before = units < target;
            units += u32::try_from(c.len_utf16()).unwrap_or(1);
            before
        })
        .count();
    let start = at.saturating_sub(AROUND);
    let mut shown = String::new();
    let mut padding = String::new();
    if start > 0 {
        shown.push('…');
        padding.push(' ');
    }
    let mut characters = line.chars().skip(start);
    for c in characters.by_ref().take(at - start) {
        let c = visible(c);
        shown.push(c);
        // A tab stays a tab, so that both lines jump to the same place.
        match c {
            '\t' => padding.push('\t'),
            c => padding.extend(std::iter::repeat_n(' ', c.width().unwrap_or(0))),
        }
    }
    shown.extend(characters.by_ref().take(AROUND).map(visible));
    if characters.next().is_some() {
        shown.push('…');
    }
    (shown.trim_end().to_owned(), padding)
}

/// A text without characters that could steer a terminal: each is U+FFFD, as wide for a caret.
pub fn printable(text: &str) -> String {
    text.chars().map(visible).collect()
}

fn visible(c: char) -> char {
    // Bidirectional controls could show a line in another order than it runs.
    let steers = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if (c.is_control() && c != '\t') || steers {
        '\u{fffd}'
    } else {
        c
    }
}

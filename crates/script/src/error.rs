//! The error of a script, with its place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A script that cannot be run as it is. Its `Display` is `3:14: message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptError {
    kind: ScriptErrorKind,
    message: String,
    place: Option<Place>,
}

/// Line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
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
        }
    }

    /// An error with another message at the same place.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The kind of mistake.
    pub fn kind(&self) -> ScriptErrorKind {
        self.kind
    }

    /// The mistake and its remedy, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line, from 1, as V8 and editors count: `None` for an error of the script as a whole.
    pub fn line(&self) -> Option<u32> {
        Some(self.place?.line)
    }

    /// The column, from 1, in UTF-16 units, as V8 and editors count.
    pub fn column(&self) -> Option<u32> {
        Some(self.place?.column)
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { line, column }) = self.place {
            write!(f, "{line}:{column}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A text without characters that could steer a terminal: each is U+FFFD, as wide for a caret.
pub fn printable(text: &str) -> String {
    let visible = |c: char| {
        // Bidirectional controls could show a line in another order than it runs.
        let steers = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\t') || steers {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(visible).collect()
}

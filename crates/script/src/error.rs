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
    /// The text is TypeScript, but uses a feature that scripts lack, such as an import.
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
    /// An error of the script as a whole, for a parser that did not finish.
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

    /// The same error with a different message.
    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    pub fn kind(&self) -> ScriptErrorKind {
        self.kind
    }

    /// The mistake and its remedy, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line, from 1; `None` for an error of the script as a whole.
    pub fn line(&self) -> Option<u32> {
        Some(self.place?.line)
    }

    /// The column, from 1, in UTF-16 units like V8 and editors.
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

/// Replaces each character that controls a terminal by U+FFFD, which keeps columns.
pub fn printable(text: &str) -> String {
    let visible = |c: char| {
        // Bidirectional controls could show code in a different order than it runs.
        let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (c.is_control() && c != '\t') || reorders {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(visible).collect()
}

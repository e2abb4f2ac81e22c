//! A place in the script's text, as reports show it.

use serde::Serialize;

/// Characters of a source line that a position shows.
const SHOWN_LINE: usize = 160;

/// A place in the author's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Position {
    /// The line, counted from 1.
    pub line: u32,
    /// The column in UTF-16 units, counted from 1, as editors count.
    pub column: u32,
    /// The line's text, without its end; long lines are shortened.
    pub source_line: String,
}

impl Position {
    /// The place in the author's text; `None` if the text has no such line.
    pub(crate) fn find(source: &str, line: u32, column: u32) -> Option<Self> {
        let text = callgate_script::printable(callgate_script::line(source, line)?);
        let source_line = match text.char_indices().nth(SHOWN_LINE) {
            None => text,
            Some((end, _)) if (column as usize) < SHOWN_LINE => {
                format!("{}…", text.get(..end).unwrap_or_default())
            }
            // The caret would stand past the end of the shortened line.
            Some(_) => String::new(),
        };
        Some(Self {
            line,
            column: column.max(1),
            source_line,
        })
    }
}

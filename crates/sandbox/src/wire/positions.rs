//! From a place in the running code to the place in the author's text.

use serde::{Deserialize, Serialize};

/// A stretch of the code, from a place on until the next stretch begins, and where it stands in the
/// author's text. Lines and columns count from 1, columns in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The line of the code where it begins.
    pub line: u32,
    /// Its column.
    pub column: u32,
    /// Line and column in the author's text; `None` for code that is not the author's.
    pub author: Option<(u32, u32)>,
}

/// The author's line and column of a place in the code; `None` if it is not the author's.
///
/// A place keeps its distance to the beginning of its stretch: on the first line of the stretch by
/// columns, and below that line by lines, with the same column.
#[must_use]
pub(crate) fn author_place(stretches: &[Stretch], line: u32, column: u32) -> Option<(u32, u32)> {
    let after = stretches.partition_point(|s| (s.line, s.column) <= (line, column));
    let stretch = stretches.get(after.checked_sub(1)?)?;
    let (author_line, author_column) = stretch.author?;
    Some(match line.saturating_sub(stretch.line) {
        0 => (
            author_line,
            author_column.saturating_add(column.saturating_sub(stretch.column)),
        ),
        lines => (author_line.saturating_add(lines), column),
    })
}

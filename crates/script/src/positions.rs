//! Source maps from the code that runs to the author's text.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use swc_sourcemap::SourceMap;

use crate::form::RETURN;

/// A range of the code that runs, up to the start of the next range, and its place in the author's
/// text.
///
/// Places keep their distance to the start of the range: in columns on its first line, and in lines,
/// with unchanged columns, below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedRange {
    /// The line of the code, from 1.
    pub line: u32,
    /// The column of the code, from 1, in UTF-16 units.
    pub column: u32,
    /// Line and column in the author's text, both from 1. `None` for generated code.
    pub author: Option<(u32, u32)>,
}

/// The source map of code that has the author's text unchanged, one line lower, with one generated
/// line before it and some after it. `value` is the column in the first line where a statement starts,
/// and the author's place where it continues: V8 reports a call of an undefined function at the start
/// of its statement. `returned` is the author's place before which [`RETURN`] is inserted.
pub(crate) fn in_place(
    source_lines: u32,
    value: Option<(u32, (u32, u32))>,
    returned: Option<(u32, u32)>,
) -> Vec<MappedRange> {
    let range = |line, column, author| MappedRange {
        line,
        column,
        author,
    };
    [range(1, 1, None)]
        .into_iter()
        .chain(value.map(|(column, place)| range(1, column, Some(place))))
        .chain([range(2, 1, Some((1, 1)))])
        .chain(returned.map(|(line, column)| {
            let behind = column + RETURN.len() as u32;
            range(line + 1, behind, Some((line, column)))
        }))
        .chain([range(source_lines + 2, 1, None)])
        .collect()
}

/// The source map of reprinted code with a parenthesis before it. `map` leads from that code to a text
/// with the source map `in_place`.
pub(crate) fn through(map: &SourceMap, in_place: &[MappedRange]) -> Vec<MappedRange> {
    let mut places: Vec<((u32, u32), (u32, u32))> = map
        .tokens()
        .filter(swc_sourcemap::Token::has_source)
        .map(|token| (token.get_dst(), token.get_src()))
        .collect();
    // One token may start where the previous one ends: the last entry of a place is the new token's.
    places.reverse();
    places.sort_by_key(|(code, _)| *code);
    places.dedup_by_key(|(code, _)| *code);

    let mut source_map: Vec<MappedRange> = Vec::new();
    for (code, text) in places {
        let ((line, column), text) = (from_one(code), from_one(text));
        let column = if line == 1 { column + 1 } else { column };
        let author = author_place(in_place, text.0, text.1);
        if let Some(last) = source_map.last().copied() {
            // A line without a token was generated: it gets the place of the code before it.
            for between in last.line + 1..line {
                source_map.push(MappedRange {
                    line: between,
                    column: 1,
                    author: last.author,
                });
            }
            if last.line == line && advanced(last, (line, column)) == author {
                continue;
            }
        }
        source_map.push(MappedRange {
            line,
            column,
            author,
        });
    }
    source_map
}

/// Converts a place of a source map, which counts from 0. For the map, U+2028 and U+2029 end no line.
fn from_one((line, column): (u32, u32)) -> (u32, u32) {
    (line.saturating_add(1), column.saturating_add(1))
}

/// The author's line and column of a place in the code; `None` for generated code.
pub fn author_place(source_map: &[MappedRange], line: u32, column: u32) -> Option<(u32, u32)> {
    let after = source_map.partition_point(|s| (s.line, s.column) <= (line, column));
    let range = source_map.get(after.checked_sub(1)?)?;
    advanced(*range, (line, column))
}

/// The author's place of a place in a range.
fn advanced(range: MappedRange, (line, column): (u32, u32)) -> Option<(u32, u32)> {
    let (author_line, author_column) = range.author?;
    Some(match line.saturating_sub(range.line) {
        0 => {
            let distance = column.saturating_sub(range.column);
            (author_line, author_column.saturating_add(distance))
        }
        lines => (author_line.saturating_add(lines), column),
    })
}

//! Type errors in the author's lines and columns.

use std::collections::HashSet;

use crate::message::{self, Reported};
use crate::script::Script;
use crate::unknown;

/// The most type errors of a script that are shown; the rest is counted.
pub const MAX_DIAGNOSTICS: usize = 10;

/// The type errors of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The first type errors by their place, at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The number of further errors.
    pub more: u32,
}

/// One type error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The author's line, from 1.
    pub line: u32,
    /// The author's column in UTF-16 units, from 1.
    pub column: u32,
    /// TypeScript's number for this kind of error.
    pub code: u32,
    /// The error, in one line of bounded length.
    pub message: String,
    /// The name, where the error is that nothing has it.
    pub unknown: Option<Unknown>,
}

/// A name that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The name itself, or the property of `mcp`.
    pub name: String,
    /// The dotted name that it begins, such as `fs.read_file`.
    pub path: String,
    /// The tool that a call such as `client.callTool("read_file")` names, else the dotted name.
    pub tool: String,
}

/// The errors of a script in the author's terms.
pub(crate) fn checked(script: &Script, mut reported: Vec<Reported>) -> Checked {
    reported.sort_by(|a, b| (a.pos, a.code, &a.text).cmp(&(b.pos, b.code, &b.text)));
    reported.dedup_by(|a, b| a.pos == b.pos && a.text == b.text);
    let more = reported.len().saturating_sub(MAX_DIAGNOSTICS);
    reported.truncate(MAX_DIAGNOSTICS);
    let mut hinted = HashSet::new();
    let diagnostics = reported.iter().map(|error| {
        let place = place(&script.text, error.pos);
        // Nothing before the author's first line is his, so nothing is wrong there.
        let (line, column) = match place.line.checked_sub(script.line_offset) {
            None | Some(0) => (1, 1),
            Some(line) => (line, place.column),
        };
        let rest = script.text.get(place.byte..).unwrap_or_default();
        let mut message = message::of(error, rest, &script.declarations);
        // Each hint is given once.
        if let Some(hint) = unknown::result_hint(error, rest, script)
            && hinted.insert(hint.clone())
        {
            message = format!("{message}: {hint}");
        }
        Diagnostic {
            line,
            column,
            code: error.code,
            message,
            unknown: unknown::name(error, rest),
        }
    });
    Checked {
        diagnostics: diagnostics.collect(),
        more: u32::try_from(more).unwrap_or(u32::MAX),
    }
}

/// A place in a script. Lines and columns, in UTF-16 units, are counted from 1.
pub(crate) struct Place {
    line: u32,
    column: u32,
    pub(crate) byte: usize,
}

/// The place `units` UTF-16 units from the start; the end, if that is sooner.
pub(crate) fn place(text: &str, units: u64) -> Place {
    let (mut line, mut column, mut byte, mut before) = (1, 1, 0, 0);
    let mut characters = text.chars().peekable();
    while before < units {
        let Some(c) = characters.next() else { break };
        before += c.len_utf16() as u64;
        byte += c.len_utf8();
        let ends_line = match c {
            '\n' | '\u{2028}' | '\u{2029}' => true,
            '\r' => characters.peek() != Some(&'\n'),
            _ => false,
        };
        if ends_line {
            (line, column) = (line + 1, 1);
        } else {
            column += c.len_utf16() as u32;
        }
    }
    Place { line, column, byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_utf16_columns() {
        let text = "a\r\nbc\u{2028}😀d\re";
        let check = |units, line, column, next: &str| {
            let place = place(text, units);
            assert_eq!((place.line, place.column), (line, column), "{units}");
            assert_eq!(&text[place.byte..], next, "{units}");
        };
        check(0, 1, 1, text);
        check(3, 2, 1, "bc\u{2028}😀d\re");
        check(4, 2, 2, "c\u{2028}😀d\re");
        check(6, 3, 1, "😀d\re");
        check(8, 3, 3, "d\re");
        check(10, 4, 1, "e");
        check(u64::MAX, 4, 2, "");
    }

    #[test]
    fn diagnostics_beyond_the_limit_are_counted() {
        let script = Script {
            text: "export {};\nx\n".to_owned(),
            line_offset: 1,
            declarations: "".into(),
            time: std::time::Duration::ZERO,
            language: crate::script::Language::TypeScript,
            untyped: "".into(),
        };
        let error = |pos| Reported {
            pos,
            category: 1,
            text: "Wrong.".to_owned(),
            ..Reported::default()
        };
        let many = (0..20).map(error).chain([error(11)]).collect();
        let checked = checked(&script, many);
        assert_eq!((checked.diagnostics.len(), checked.more), (10, 10));
        let places: Vec<_> = checked
            .diagnostics
            .iter()
            .map(|d| (d.line, d.column))
            .collect();
        assert_eq!(places, [(1, 1); 10]);
    }
}

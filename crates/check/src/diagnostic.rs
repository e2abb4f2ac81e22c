//! Type errors in the author's lines and columns.

use std::collections::HashSet;

use crate::message::{self, Reported};
use crate::script::Script;
use crate::unknown;

/// Maximum type errors of a script that are shown; further ones are counted.
pub const MAX_DIAGNOSTICS: usize = 10;

/// An argument of a wrong type.
const WRONG_ARGUMENT: u32 = 2345;

/// The type errors of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The first type errors in the script, at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The number of further errors.
    pub more: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The author's line, from 1.
    pub line: u32,
    /// The author's column in UTF-16 units, from 1.
    pub column: u32,
    /// TypeScript's number for this kind of error.
    pub code: u32,
    /// One line of bounded length.
    pub message: String,
    /// Set if the error is an undeclared name.
    pub unknown: Option<Unknown>,
}

/// An undeclared name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The name itself, or the property of `mcp`.
    pub name: String,
    /// The dotted name that starts with it, such as `fs.read_file`.
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
        let byte = byte_at(&script.text, error.pos);
        let (line, column) = callgate_script::line_and_column(&script.text, byte);
        // Lines before the author's first one are generated.
        let (line, column) = match line.checked_sub(script.line_offset) {
            None | Some(0) => (1, 1),
            Some(line) => (line, column),
        };
        let (before, rest) = script.text.split_at_checked(byte).unwrap_or_default();
        let mut message = message::of(error, rest, &script.declarations);
        // Other programs take an object with the name and the arguments.
        let call = before.trim_end().rsplit_once("mcp.callTool");
        let is_name = |(_, call): (&str, &str)| {
            call == "(" || (call.starts_with('<') && call.ends_with(">("))
        };
        if error.code == WRONG_ARGUMENT && call.is_some_and(is_name) {
            message.push_str("; write mcp.callTool(name, input)");
        }
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

/// The byte after `units` UTF-16 units, at most the end of the text.
pub(crate) fn byte_at(text: &str, units: u64) -> usize {
    let mut before = 0;
    let found = text.char_indices().find(|(_, c)| {
        let is_reached = before >= units;
        before += c.len_utf16() as u64;
        is_reached
    });
    found.map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_utf16_columns() {
        let text = "a\r\nbc\u{2028}😀d\re";
        let check = |units, line, column, next: &str| {
            let byte = byte_at(text, units);
            let place = callgate_script::line_and_column(text, byte);
            assert_eq!(place, (line, column), "{units}");
            assert_eq!(&text[byte..], next, "{units}");
        };
        check(0, 1, 1, text);
        check(3, 2, 1, "bc\u{2028}😀d\re");
        check(4, 2, 2, "c\u{2028}😀d\re");
        check(6, 3, 1, "😀d\re");
        check(8, 3, 3, "d\re");
        check(10, 4, 1, "e");
        check(u64::MAX, 4, 2, "");
    }
}

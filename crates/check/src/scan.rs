//! TypeScript text without parsing it: comments, strings and words.

use std::collections::HashSet;

/// Maximum bytes of a name.
pub(crate) const MAX_NAME: usize = 200;

/// One line without characters that control a terminal.
pub(crate) fn one_line(text: &str) -> String {
    callgate_script::printable(&text.replace(['\n', '\r', '\t'], " "))
}

/// All runs of characters of identifiers: a superset of the names that a script uses. `None` if the
/// text may spell names with escapes, which are not decoded.
pub fn words(text: &str) -> Option<HashSet<&str>> {
    if text.contains("\\u") {
        return None;
    }
    let parts = |c: char| match c {
        '_' | '$' => false,
        '\u{feff}' => true,
        c if c.is_ascii() => !c.is_ascii_alphanumeric(),
        c => c.is_whitespace(),
    };
    let words = text.split(parts).filter(|word| !word.is_empty());
    Some(words.collect())
}

/// The start of a text: at most this many bytes.
pub(crate) fn start(text: &str, max: usize) -> &str {
    text.split_at(text.floor_char_boundary(max)).0
}

/// The identifier at the start of a text, and the rest.
pub(crate) fn word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (!word.is_empty() && word.len() <= MAX_NAME).then_some((word, rest))
}

/// The text without comments, indentation and blank lines. Line ends stay, because they can replace
/// semicolons.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len() / 2);
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'', '`', '\n']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let length = match from.as_bytes() {
            [b'/', b'/', ..] => {
                rest = from.find('\n').map_or("", |end| from.split_at(end).1);
                continue;
            }
            [b'/', b'*', ..] => {
                rest = from.split_once("*/").map_or("", |(_, after)| after);
                // The texts on both sides of a comment must not merge into one word.
                out.push(' ');
                continue;
            }
            [b'\n', ..] => {
                out.truncate(out.trim_end_matches([' ', '\t', '\r']).len());
                if !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
                rest = from.trim_start_matches(['\n', ' ', '\t', '\r']);
                continue;
            }
            [b'/', ..] => 1,
            _ => string_length(from),
        };
        let (string, after) = from.split_at(length);
        out.push_str(string);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of the string at the start of a text, with its quotes. A quoted string ends at its
/// line's end at the latest.
fn string_length(text: &str) -> usize {
    let mut characters = text.char_indices();
    let Some((_, quote)) = characters.next() else {
        return 0;
    };
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '\n' if quote != '`' => return at,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_every_run_of_identifier_characters() {
        let check = |text: &str, expected: &[&str]| {
            let mut found: Vec<_> = words(text).unwrap().into_iter().collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{text}");
        };
        check("", &[]);
        check("a_b({x: $c})", &["$c", "a_b", "x"]);
        check("a\u{a0}b\u{2028}c\u{feff}d", &["a", "b", "c", "d"]);
        check(
            "日本.名('in a string')",
            &["a", "in", "string", "名", "日本"],
        );
        assert_eq!(words("\\u0061()"), None);
    }

    #[test]
    fn comments_and_indentation_go() {
        let check = |text, expected| assert_eq!(without_comments(text), expected, "{text}");
        check("a // b\n  c", "a\nc");
        check("/* x\n y */ a;\n\n\n\tb /**/ ;", "  a;\nb   ;");
        check("'/*' + \"//\" + `\n//` // z", "'/*' + \"//\" + `\n//` ");
        check("'it\\'s // one' / 2", "'it\\'s // one' / 2");
        check("'unclosed\n// x", "'unclosed\n");
        check("/* unclosed", " ");
        check("a / b", "a / b");
    }
}

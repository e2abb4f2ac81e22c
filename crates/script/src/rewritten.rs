//! Texts in which a program has wrapped or respelled the code: JSON, HTML entities, escaped line ends,
//! quotes and spaces of a word processor.

use serde_json::{Map, Value};

/// Keys of a JSON object for code.
const KEYS: [&str; 5] = ["code", "script", "source", "typescript", "javascript"];
/// Keys of a tool call for its arguments.
const ARGUMENTS: [&str; 4] = ["arguments", "input", "args", "parameters"];
const ENTITIES: [(&str, char); 12] = [
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&amp;", '&'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&#39;", '\''),
    ("&#039;", '\''),
    ("&#x27;", '\''),
    ("&#34;", '"'),
    ("&#60;", '<'),
    ("&#62;", '>'),
    ("&nbsp;", ' '),
];
const ESCAPES: [(&str, char); 3] = [("\\r\\n", '\n'), ("\\n", '\n'), ("\\t", '\t')];

/// A text with wrapped or respelled code.
pub(crate) struct Rewrite {
    /// Names the kind of text and the remedy.
    pub(crate) advice: &'static str,
    /// The plain code, unless it is ambiguous.
    pub(crate) code: Option<String>,
}

/// Finds wrapped or respelled code in a text.
pub(crate) fn rewrite(text: &str) -> Option<Rewrite> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let block = trimmed
        .strip_prefix("```json")
        .and_then(|rest| rest.strip_suffix("```"));
    let json = block.unwrap_or(trimmed).trim();
    if json.starts_with('{')
        && let Ok(object) = serde_json::from_str::<Map<String, Value>>(json)
    {
        return Some(Rewrite {
            advice: "the text is a JSON object; send the code alone, without JSON around it",
            code: code_in(&object),
        });
    }
    if json.starts_with('"')
        && let Ok(string) = serde_json::from_str::<String>(json)
    {
        let is_code = ["(", ";", "return ", "await "]
            .iter()
            .any(|part| string.contains(part));
        return is_code.then_some(Rewrite {
            advice: "the text is a JSON string; send the code in it, without quotes and escapes",
            code: Some(string),
        });
    }
    if let Some(decoded) = replace_in_code(text, one_of(&ENTITIES)) {
        // In a text without plain `<` and `>`, the strings are escaped, too.
        let is_all = !text.contains(['<', '>']);
        let all = || replace(text, one_of(&ENTITIES));
        return Some(Rewrite {
            advice: "the code has HTML entities such as \"&lt;\"; write the characters themselves",
            code: Some(if is_all { all() } else { decoded }),
        });
    }
    if !trimmed.contains('\n') {
        let whole = || serde_json::from_str(&format!("\"{trimmed}\"")).ok();
        let whole = trimmed.contains("\\\"").then(whole).flatten();
        if let Some(code) = whole.or_else(|| replace_in_code(trimmed, one_of(&ESCAPES))) {
            return Some(Rewrite {
                advice: "the code has \"\\n\" in place of line ends; send line ends",
                code: Some(code),
            });
        }
    }
    let code = replace_in_code(text, plain)?;
    Some(Rewrite {
        advice: "the code has characters that only look like quotes, spaces or signs, such as U+201C \
                 or U+200B; write plain ones",
        code: Some(code),
    })
}

/// The code under one of the usual keys, or in the arguments of a call.
fn code_in(object: &Map<String, Value>) -> Option<String> {
    let mut codes = KEYS.iter().filter_map(|key| object.get(*key)?.as_str());
    if let Some(code) = codes.next() {
        return codes.next().is_none().then(|| code.to_owned());
    }
    let mut inner = ARGUMENTS
        .iter()
        .filter_map(|key| object.get(*key)?.as_object());
    inner.find_map(code_in)
}

/// Finds one of these spellings of characters as the prefix of a text.
fn one_of(spellings: &[(&str, char)]) -> impl Fn(&str) -> Option<(usize, char)> {
    move |rest| {
        let found = spellings
            .iter()
            .find(|(spelling, _)| rest.starts_with(spelling));
        found.map(|(spelling, character)| (spelling.len(), *character))
    }
}

/// The plain character for a lookalike at the start of a text. Both are equally wide in UTF-16.
fn plain(rest: &str) -> Option<(usize, char)> {
    let first = rest.chars().next()?;
    let plain = match first {
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' => ' ',
        // Full-width forms of ASCII; letters and digits may be in names.
        '\u{ff01}'..='\u{ff5e}' if !first.is_alphanumeric() => {
            char::from_u32(u32::from(first) - 0xfee0)?
        }
        _ => return None,
    };
    Some((first.len_utf8(), plain))
}

/// Replaces each prefix of a remaining text that `find` knows.
fn replace(text: &str, find: impl Fn(&str) -> Option<(usize, char)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, character) = find(rest).unwrap_or((first.len_utf8(), first));
        out.push(character);
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// The kind of text at a place of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    /// A string, by its quote. True if the quote was replaced, so that the closing one may be.
    String(char, bool),
    /// A regular expression. True in a class, where a slash does not end it.
    Pattern(bool),
    LineComment,
    Comment,
}

/// Like [`replace`], outside of strings, patterns and comments; `None` if there is nothing to replace.
/// A replacement may itself be a quote, or a line end that ends a comment.
fn replace_in_code(text: &str, find: impl Fn(&str) -> Option<(usize, char)>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut inside, mut is_changed) = (text, Inside::Code, false);
    while let Some(first) = rest.chars().next() {
        let found = find(rest).filter(|(_, character)| match inside {
            Inside::Code => true,
            Inside::String(quote, is_other) => is_other && *character == quote,
            Inside::LineComment => *character == '\n',
            Inside::Pattern(_) | Inside::Comment => false,
        });
        let is_escape = matches!(inside, Inside::String(..) | Inside::Pattern(_)) && first == '\\';
        let (length, character) = found.unwrap_or((first.len_utf8(), first));
        let (_, after) = rest.split_at_checked(length)?;
        rest = after;
        inside = match (inside, character) {
            (Inside::Code, '"' | '\'' | '`') => Inside::String(character, found.is_some()),
            (Inside::Code, '/') if after.starts_with('/') => Inside::LineComment,
            (Inside::Code, '/') if after.starts_with('*') => Inside::Comment,
            (Inside::Code, '/') if is_before_value(&out) => Inside::Pattern(false),
            (Inside::String(quote, _), _) if character == quote => Inside::Code,
            (Inside::Pattern(false), '/') | (Inside::LineComment, '\n') => Inside::Code,
            (Inside::Comment, '/') if out.ends_with('*') => Inside::Code,
            (Inside::Pattern(_), '[') => Inside::Pattern(true),
            (Inside::Pattern(_), ']') => Inside::Pattern(false),
            (inside, _) => inside,
        };
        is_changed |= found.is_some();
        out.push(character);
        if is_escape && let Some(escaped) = rest.chars().next() {
            out.push(escaped);
            rest = rest.get(escaped.len_utf8()..).unwrap_or_default();
        }
    }
    is_changed.then_some(out)
}

/// True if a slash after this code starts a regular expression: there is no value before it.
fn is_before_value(code: &str) -> bool {
    let code = code.trim_end();
    let end = code.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')));
    let word = code.get(end.map_or(0, |end| end + 1)..).unwrap_or_default();
    match word {
        "" => !code.ends_with([')', ']', '}', '"', '\'', '`']),
        word => [
            "return", "typeof", "case", "of", "in", "throw", "await", "void",
        ]
        .contains(&word),
    }
}

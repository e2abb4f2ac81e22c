//! Texts in which code is wrapped or spelled as a program would do it, not an author: JSON, HTML
//! entities, escaped line ends, quotes and spaces of a word processor.

use serde_json::{Map, Value};

/// Keys of a JSON object under which code stands.
const KEYS: [&str; 5] = ["code", "script", "source", "typescript", "javascript"];
/// Keys under which a call of a tool has its arguments.
const ARGUMENTS: [&str; 4] = ["arguments", "input", "args", "parameters"];
const ENTITIES: [(&str, &str); 12] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&amp;", "&"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&#039;", "'"),
    ("&#x27;", "'"),
    ("&#34;", "\""),
    ("&#60;", "<"),
    ("&#62;", ">"),
    ("&nbsp;", " "),
];

/// Another reading of a text.
pub(crate) struct Reading {
    pub(crate) text: String,
    /// What the text is, and what to send.
    pub(crate) advice: &'static str,
    /// True if the text as it is means nothing, even if it parses.
    pub(crate) is_preferred: bool,
}

/// The other reading of a text, if there is one. It is the one to run if it is a script, and the
/// text itself is none.
pub(crate) fn reading(text: &str) -> Option<Reading> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let reading = |text, advice, is_preferred| Reading {
        text,
        advice,
        is_preferred,
    };
    if trimmed.starts_with('{')
        && let Ok(object) = serde_json::from_str::<Map<String, Value>>(trimmed)
    {
        let advice = "the text is a JSON object; send the code in it alone, without JSON around";
        return Some(reading(code_in(&object)?, advice, true));
    }
    if trimmed.starts_with('"')
        && let Ok(string) = serde_json::from_str::<String>(trimmed)
    {
        let is_code = ["(", ";", "return ", "await "]
            .iter()
            .any(|part| string.contains(part));
        let advice = "the text is a JSON string; send the code in it, without quotes and escapes";
        return is_code.then(|| reading(string, advice, true));
    }
    let is_bare = |c: char| matches!(c, '<' | '>');
    let entity = |rest: &str| {
        let found = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity));
        found.map(|(entity, character)| (entity.len(), *character))
    };
    if let Some(decoded) = rewrite_code(text, entity) {
        // Where all is escaped, the strings are, too.
        let decoded = if text.contains(is_bare) {
            decoded
        } else {
            rewrite(text, entity)
        };
        let advice = "the code has HTML entities such as \"&lt;\"; write the characters themselves";
        return Some(reading(decoded, advice, true));
    }
    let escape = |rest: &str| {
        let escapes = [("\\r\\n", "\n"), ("\\n", "\n"), ("\\t", "\t")];
        let found = escapes.iter().find(|(escape, _)| rest.starts_with(escape));
        found.map(|(escape, character)| (escape.len(), *character))
    };
    let whole = || serde_json::from_str(&format!("\"{trimmed}\"")).ok();
    let whole = trimmed.contains("\\\"").then(whole).flatten();
    let unescaped = || whole.or_else(|| rewrite_code(trimmed, escape));
    if !trimmed.contains('\n')
        && let Some(unescaped) = unescaped()
    {
        let advice = "the code has \"\\n\" in place of line ends; send line ends";
        return Some(reading(unescaped, advice, true));
    }
    let advice = "the code has characters that only look like quotes and spaces, such as U+201C or \
                  U+200B; write plain ones";
    rewrite_code(text, plain).map(|text| reading(text, advice, false))
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

/// The plain character for one that looks like it, outside strings. Both are as wide in UTF-16.
fn plain(rest: &str) -> Option<(usize, &'static str)> {
    let first = rest.chars().next()?;
    let plain = match first {
        '\u{201c}'..='\u{201f}' => "\"",
        '\u{2018}'..='\u{201b}' => "'",
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' => " ",
        _ => return None,
    };
    Some((first.len_utf8(), plain))
}

/// The text with what `replace` finds at the beginning of any rest of it replaced.
fn rewrite<'r>(text: &str, replace: impl Fn(&str) -> Option<(usize, &'r str)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match replace(rest) {
            Some((length, with)) => {
                out.push_str(with);
                length
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// As [`rewrite`], outside strings, templates and comments; none if there is nothing to replace.
/// What is found may be a quote itself, and a line end ends a comment.
fn rewrite_code<'r>(
    text: &str,
    replace: impl Fn(&str) -> Option<(usize, &'r str)>,
) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_changed = false;
    // The end of the string or comment around the present place, and true if its beginning was
    // written in another way, as its end may be.
    let mut inside: Option<(&str, bool)> = None;
    while let Some(first) = rest.chars().next() {
        let is_here = |with: &str| match inside {
            None => true,
            Some((end, is_other)) => with == end && (is_other || end == "\n"),
        };
        let found = replace(rest).filter(|(_, with)| is_here(with));
        let is_string = inside.is_some_and(|(end, _)| !matches!(end, "\n" | "*/"));
        let length = match found {
            Some((length, _)) => length,
            None if first == '\\' && is_string => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            None => first.len_utf8(),
        };
        let (taken, after) = rest.split_at_checked(length)?;
        let written = found.map_or(taken, |(_, with)| with);
        is_changed |= found.is_some();
        out.push_str(written);
        inside = match inside {
            Some(("*/", _)) if out.ends_with("*/") => None,
            Some((end, _)) if written == end => None,
            None => match written {
                "'" => Some(("'", found.is_some())),
                "\"" => Some(("\"", found.is_some())),
                "`" => Some(("`", false)),
                "/" if after.starts_with('/') => Some(("\n", false)),
                "/" if after.starts_with('*') => Some(("*/", false)),
                _ => None,
            },
            inside => inside,
        };
        rest = after;
    }
    is_changed.then_some(out)
}

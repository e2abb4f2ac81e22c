//! JSON text before it is parsed: its size, and lone surrogates in it.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The size of a text as values, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Values.
    pub parts: u64,
    /// Levels of arrays and objects.
    pub levels: u32,
}

/// Measures a text without parsing it. It may count more values than there are, and not fewer.
pub fn extent(json: &str) -> Extent {
    let (mut parts, mut level, mut levels) = (1_u64, 0_u32, 0_u32);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => {
                        bytes.next();
                    }
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            b'[' | b'{' => {
                level = level.saturating_add(1);
                levels = levels.max(level);
                parts += 1;
            }
            b']' | b'}' => level = level.saturating_sub(1),
            b',' => parts += 1,
            _ => {}
        }
    }
    Extent { parts, levels }
}

/// Parses a text, with lone surrogates replaced by U+FFFD.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    match serde_json::from_str(json) {
        Ok(value) => Ok(value),
        Err(error) => match replace_lone_surrogates(json) {
            Some(replaced) => serde_json::from_str(&replaced),
            None => Err(error),
        },
    }
}

/// Replaces each lone surrogate by U+FFFD; `None` if there is none.
///
/// JavaScript writes lone surrogates for a text that was cut within a character, and other readers
/// refuse them.
fn replace_lone_surrogates(json: &str) -> Option<String> {
    json.contains("\\u").then(|| replace_halves(json)).flatten()
}

/// The JSON text with U+FFFD in place of each lone surrogate, so that every reader sees the
/// same text.
pub fn without_lone_surrogates(json: Box<RawValue>) -> Box<RawValue> {
    replace_lone_surrogates(json.get())
        .and_then(|replaced| RawValue::from_string(replaced).ok())
        .unwrap_or(json)
}

fn replace_halves(json: &str) -> Option<String> {
    let mut replaced = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..)?.find('\\') {
        let escape = at + found;
        at = match unit(json, escape) {
            None => escape + 2,
            Some(0xD800..=0xDBFF) if matches!(unit(json, escape + 6), Some(0xDC00..=0xDFFF)) => {
                escape + 12
            }
            Some(0xD800..=0xDFFF) => {
                replaced.push_str(json.get(copied..escape)?);
                replaced.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            Some(_) => escape + 6,
        };
        // The escaped character may have several bytes.
        at = json.ceil_char_boundary(at.min(json.len()));
    }
    if copied == 0 {
        return None;
    }
    replaced.push_str(json.get(copied..)?);
    Some(replaced)
}

/// The unit that the escape at this place stands for, if it is one of four digits.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn extent_counts_parts_and_levels() {
        let check = |json: &str, parts, levels| {
            assert_eq!(extent(json), Extent { parts, levels }, "{json}");
        };
        check("7", 1, 0);
        check(r#"{"a,[": "\"]}\\", "b": [[], 1]}"#, 6, 3);
        check("[[[[", 5, 4);
        check(r#"["\"#, 2, 1);
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let check = |json: &str, expected: &str| {
            let read = match read::<Value>(json) {
                Ok(value) => value.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(read, expected, "{json}");
        };
        check(r#"["\ud83d\ude00", "\\ud83d"]"#, r#"["😀","\\ud83d"]"#);
        check(
            r#"["a\ud83d", "\ude00é\\", "\ud83d\ud83d\ude00"]"#,
            r#"["a�","�é\\","�😀"]"#,
        );
        check(
            r#"["\ud83d", 1e400]"#,
            "number out of range at line 1 column 16",
        );
        check("1e400", "number out of range at line 1 column 5");
        check("\"\\", "EOF while parsing a string at line 1 column 2");
        check("\"\\é\\ud83", "invalid escape at line 1 column 3");
    }

    #[test]
    fn text_without_lone_surrogates_is_unchanged() {
        for json in [r#""\\ud83d""#, r#""\uD83D\uDE00""#, r#""\u00e9""#, "7"] {
            assert_eq!(replace_lone_surrogates(json), None, "{json}");
        }
        let upper = replace_lone_surrogates(r#"{"\uD83D":1.0 }"#);
        assert_eq!(upper.as_deref(), Some(r#"{"\ufffd":1.0 }"#));
    }
}

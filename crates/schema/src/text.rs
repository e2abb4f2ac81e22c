//! JSON text before it is parsed: how much it is going to be, and the one thing
//! in it that JavaScript reads and others do not.

use memchr::memmem;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// How much a text is as values, at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Values.
    pub(crate) parts: u64,
    /// Levels of arrays and objects.
    pub(crate) levels: u32,
}

/// Measures a text without parsing it. It may count more values than there are,
/// and not fewer.
pub(crate) fn extent(json: &str) -> Extent {
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

/// Parses a text as [`mended`] has it.
///
/// # Errors
///
/// What is wrong with it.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    match serde_json::from_str(json) {
        Ok(value) => Ok(value),
        Err(error) => match mended(json) {
            Some(mended) => serde_json::from_str(&mended),
            None => Err(error),
        },
    }
}

/// JSON text in which each half of a surrogate pair on its own, which JavaScript
/// writes for a text that was cut within a character, is U+FFFD; `None` if it has none.
/// What is not mended is refused by those who hold JSON to be Unicode.
pub fn mended(json: &str) -> Option<String> {
    // Most texts have no such escape, and that is told soon.
    memmem::find(json.as_bytes(), b"\\u").and_then(|_| without_halves(json))
}

/// The JSON text with U+FFFD in place of each lone surrogate, so that every reader sees the
/// same text.
pub fn replace_lone_surrogates(json: Box<RawValue>) -> Box<RawValue> {
    mended(json.get())
        .and_then(|mended| RawValue::from_string(mended).ok())
        .unwrap_or(json)
}

fn without_halves(json: &str) -> Option<String> {
    let mut mended = String::new();
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
                mended.push_str(json.get(copied..escape)?);
                mended.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            Some(_) => escape + 6,
        };
        // What is escaped may be the first byte of a character.
        at = json.ceil_char_boundary(at.min(json.len()));
    }
    if copied == 0 {
        return None;
    }
    mended.push_str(json.get(copied..)?);
    Some(mended)
}

/// The unit that the escape at this place stands for, if it is one of four
/// digits.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn extents() {
        let check = |json: &str, parts, levels| {
            assert_eq!(extent(json), Extent { parts, levels }, "{json}");
        };
        check("7", 1, 0);
        check(r#"{"a,[": "\"]}\\", "b": [[], 1]}"#, 6, 3);
        check("[[[[", 5, 4);
        check(r#"["\"#, 2, 1);
    }

    #[test]
    fn halves_of_pairs() {
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
    fn what_needs_no_mending_is_left() {
        for json in [r#""\\ud83d""#, r#""\uD83D\uDE00""#, r#""\u00e9""#, "7"] {
            assert_eq!(mended(json), None, "{json}");
        }
        let upper = mended(r#"{"\uD83D":1.0 }"#);
        assert_eq!(upper.as_deref(), Some(r#"{"\ufffd":1.0 }"#));
    }
}

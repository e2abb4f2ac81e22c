//! JSON text before it is parsed: its tokens and size, lone surrogates in it, and faults of
//! parsers without the text's own words.

use serde::Deserialize as _;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

/// A piece of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
}

/// The kind of a [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A string with its quotation marks.
    String,
    /// Digits, signs, points and exponents.
    Number,
    /// `[` or `{`.
    Open,
    /// `]` or `}`.
    Close,
    Comma,
    Space,
    /// `:`, a literal, or anything that JSON does not have.
    Other,
}

/// Splits a text into tokens. The text need not be JSON: the tokens' texts, joined, are the text.
pub fn tokens(json: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let kind = kind(*bytes.first()?);
        let is_in_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let end = match kind {
            TokenKind::String => string_end(bytes),
            TokenKind::Number => run_end(bytes, is_in_number),
            TokenKind::Open | TokenKind::Close | TokenKind::Comma => 1,
            TokenKind::Space | TokenKind::Other => run_end(bytes, |byte| self::kind(byte) == kind),
        };
        let (text, behind) = rest.split_at_checked(end)?;
        rest = behind;
        Some(Token { kind, text })
    })
}

/// The kind of the token that begins with this byte.
fn kind(first: u8) -> TokenKind {
    match first {
        b'"' => TokenKind::String,
        b'-' | b'0'..=b'9' => TokenKind::Number,
        b'[' | b'{' => TokenKind::Open,
        b']' | b'}' => TokenKind::Close,
        b',' => TokenKind::Comma,
        b' ' | b'\t' | b'\n' | b'\r' => TokenKind::Space,
        _ => TokenKind::Other,
    }
}

fn run_end(bytes: &[u8], is_part: impl Fn(u8) -> bool) -> usize {
    let end = bytes.iter().position(|byte| !is_part(*byte));
    end.unwrap_or(bytes.len())
}

/// The end of the string at the start of the bytes. A string that is not closed ends with them.
fn string_end(bytes: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Upper bounds of the size of a text as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of values.
    pub parts: u64,
    /// The levels of arrays and objects.
    pub levels: u32,
}

/// Measures a text without parsing it. It may count too many values, never too few.
pub fn extent(json: &str) -> Extent {
    let (mut parts, mut level, mut levels) = (1_u64, 0_u32, 0_u32);
    for token in tokens(json) {
        match token.kind {
            TokenKind::Open => {
                level = level.saturating_add(1);
                levels = levels.max(level);
                parts += 1;
            }
            TokenKind::Close => level = level.saturating_sub(1),
            TokenKind::Comma => parts += 1,
            _ => {}
        }
    }
    Extent { parts, levels }
}

/// Deserializes a member so that `null` is a value and not an absent member: for
/// `deserialize_with`, beside `default`.
pub fn present<'de, D: Deserializer<'de>>(member: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(member).map(Some)
}

/// Describes a parser's error without its message, which may quote secrets of the text.
pub fn json_fault(error: &serde_json::Error) -> String {
    let fault = if error.is_data() {
        "a value has the wrong type"
    } else {
        "it cannot be read as JSON"
    };
    format!("{fault} at line {} column {}", error.line(), error.column())
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

/// Replaces each lone surrogate by U+FFFD; `None` for a text without one.
///
/// JavaScript writes lone surrogates for a text that was cut within a character, and other parsers
/// refuse them.
fn replace_lone_surrogates(json: &str) -> Option<String> {
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

/// Replaces each lone surrogate by U+FFFD, so that every parser reads the same text.
pub fn without_lone_surrogates(json: Box<RawValue>) -> Box<RawValue> {
    replace_lone_surrogates(json.get())
        .and_then(|replaced| RawValue::from_string(replaced).ok())
        .unwrap_or(json)
}

/// The UTF-16 unit of the escape at this place, if it has four digits.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn tokens_cover_the_text() {
        let check = |json: &str, expected: &[&str]| {
            let texts: Vec<&str> = tokens(json).map(|token| token.text).collect();
            assert_eq!(texts, expected, "{json}");
        };
        check(
            "{ \"a\\\"[\": [-1.5e+3,true]}",
            &[
                "{",
                " ",
                "\"a\\\"[\"",
                ":",
                " ",
                "[",
                "-1.5e+3",
                ",",
                "true",
                "]",
                "}",
            ],
        );
        check("\"é\\é\u{20ac}\\", &["\"é\\é\u{20ac}\\"]);
        check("é1 \n,", &["é", "1", " \n", ","]);
        check("", &[]);
    }

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

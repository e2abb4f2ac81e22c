//! The normal form of texts: escapes undone, white space collapsed.
//!
//! Results and arguments are compared in this form, so that a text and its escaped copies come
//! out the same. Case is kept, because a person is shown the text; nothing here depends on it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// The shortest run of base64 characters that is decoded. It stands for 16 bytes.
const MIN_BASE64: usize = 22;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    NO_PAD.with_decode_allow_trailing_bits(true),
);

/// Undoes escapes of JSON and of URLs, at any depth, turns each run of white space and control
/// characters into one space, and drops characters without width. A `+` stays: base64 needs it.
pub(super) fn normalize(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(byte) = raw.get(at) {
        at = match byte {
            b'\\' => undo_backslashes(raw, at, &mut out),
            b'%' => undo_percent(raw, at, &mut out),
            0..=b' ' => skip_space(raw, at, &mut out),
            _ => {
                out.push(*byte);
                at + 1
            }
        };
    }
    fold_invisible(out)
}

/// Turns spaces of Unicode into plain ones, collapsed, and drops soft hyphens, joiners, marks of
/// direction and the like.
fn fold_invisible(text: Vec<u8>) -> Vec<u8> {
    if text.is_ascii() {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = &*text;
    loop {
        let (length, kept) = match rest {
            [] => return out,
            [0xc2, 0xa0, ..] => (2, b" ".as_slice()),
            [0xe2, 0x80, 0x80..=0x8a | 0xa8 | 0xa9 | 0xaf, ..]
            | [0xe2, 0x81, 0x9f, ..]
            | [0xe3, 0x80, 0x80, ..] => (3, b" ".as_slice()),
            [0xc2, 0xad, ..] => (2, [].as_slice()),
            [0xe2, 0x80, 0x8b..=0x8f | 0xaa..=0xae, ..]
            | [0xe2, 0x81, 0xa0..=0xaf, ..]
            | [0xef, 0xbb, 0xbf, ..] => (3, [].as_slice()),
            [byte, ..] => (1, std::slice::from_ref(byte)),
        };
        if kept != b" " || out.last() != Some(&b' ') {
            out.extend_from_slice(kept);
        }
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// Turns each `+` into a space, as in a form, and collapses the spaces again.
pub(super) fn plus_to_space(text: Vec<u8>) -> Vec<u8> {
    if !text.contains(&b'+') {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'+' | b' ' if out.last() == Some(&b' ') => {}
            b'+' => out.push(b' '),
            _ => out.push(byte),
        }
    }
    out
}

/// The normal form without `+` in lower case, for texts that are only searched.
pub(super) fn search_form(raw: &[u8]) -> Vec<u8> {
    plus_to_space(normalize(raw)).to_ascii_lowercase()
}

/// Calls `visit` with each string's content, still escaped and marked `true`, and with the text
/// between strings.
pub(super) fn each_part(json: &[u8], mut visit: impl FnMut(&[u8], bool)) {
    let (mut start, mut at, mut is_string) = (0, 0, false);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                visit(json.get(start..at).unwrap_or_default(), is_string);
                start = at + 1;
                is_string = !is_string;
            }
            // The escaped character ends no string.
            b'\\' if is_string => at += 1,
            _ => {}
        }
        at += 1;
    }
    visit(json.get(start..).unwrap_or_default(), is_string);
}

/// Calls `visit` with the decoded bytes of each run of base64 in a text, in either alphabet. A path
/// or a word may stand right before the data, so that each run is decoded from four places.
pub(super) fn each_base64(text: &[u8], mut visit: impl FnMut(Vec<u8>)) {
    let is_base64 =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    for run in text.split(|byte| !is_base64(byte)) {
        if run.len() < MIN_BASE64 {
            continue;
        }
        let run: Vec<u8> = run.iter().map(|byte| standard_alphabet(*byte)).collect();
        for shift in 0..4 {
            let shifted = run.get(shift..).unwrap_or_default();
            // A single character is not a whole byte.
            let whole = shifted.len() - usize::from(shifted.len() % 4 == 1);
            if let Ok(decoded) = BASE64.decode(shifted.get(..whole).unwrap_or_default()) {
                visit(decoded);
            }
        }
    }
}

fn standard_alphabet(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        _ => byte,
    }
}

/// Writes one space, unless there is one, and skips the white space that follows: plain or
/// escaped.
fn skip_space(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    if out.last() != Some(&b' ') {
        out.push(b' ');
    }
    let mut rest = raw.get(at..).unwrap_or_default();
    loop {
        rest = match rest {
            [0..=b' ', rest @ ..] => rest,
            [b'\\', letter, rest @ ..] if is_space_letter(*letter) => rest,
            _ => return raw.len() - rest.len(),
        };
    }
}

/// True if a backslash and this letter stand for white space. Case is ignored: changing the case
/// of a path such as `C:\new` changes what looks like an escape, too.
fn is_space_letter(letter: u8) -> bool {
    matches!(
        letter.to_ascii_lowercase(),
        b'n' | b'r' | b't' | b'b' | b'f'
    )
}

/// Undoes an escape that begins with a run of backslashes. The length of the run only says how
/// often the text was quoted.
fn undo_backslashes(raw: &[u8], mut at: usize, out: &mut Vec<u8>) -> usize {
    loop {
        while raw.get(at) == Some(&b'\\') {
            at += 1;
        }
        let escaped = match raw.get(at) {
            Some(letter) if is_space_letter(*letter) => return skip_space(raw, at + 1, out),
            Some(b'u' | b'U') => read_unicode(raw, at),
            Some(b' ') if out.last() == Some(&b' ') => return skip_space(raw, at, out),
            _ => None,
        };
        let Some((character, end)) = escaped else {
            return at;
        };
        match u8::try_from(character) {
            // It may begin the next escape.
            Ok(b'\\') => at = end,
            Ok(byte) if byte.is_ascii() => return write_byte(raw, end, byte, out),
            _ => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return end;
            }
        }
    }
}

/// The character that `u` and four digits stand for, and the place behind it. Two escapes of
/// surrogates are one character.
fn read_unicode(raw: &[u8], at: usize) -> Option<(char, usize)> {
    let mut point = read_hex(raw, at + 1, 4)?;
    let mut end = at + 5;
    if (0xD800..0xDC00).contains(&point) {
        let rest = raw.get(end..).unwrap_or_default();
        let low = end + rest.iter().take_while(|byte| **byte == b'\\').count();
        if low > end
            && let Some(b'u' | b'U') = raw.get(low)
            && let Some(unit) = read_hex(raw, low + 1, 4)
            && (0xDC00..0xE000).contains(&unit)
        {
            point = 0x1_0000 + ((point - 0xD800) << 10) + (unit - 0xDC00);
            end = low + 5;
        }
    }
    let character = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((character, end))
}

/// Undoes `%` and two digits. `%25` is an escaped `%`, so that any number of `25` between them
/// only says how often the text was encoded.
fn undo_percent(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let mut end = at + 1;
    while raw.get(end..end + 2) == Some(b"25") {
        end += 2;
    }
    match read_hex(raw, end, 2).and_then(|byte| u8::try_from(byte).ok()) {
        Some(byte) => write_byte(raw, end + 2, byte, out),
        None => {
            out.push(b'%');
            end
        }
    }
}

/// Writes an unescaped byte; `at` is behind the escape.
fn write_byte(raw: &[u8], at: usize, byte: u8, out: &mut Vec<u8>) -> usize {
    match byte {
        0..=b' ' => skip_space(raw, at, out),
        b'\\' => undo_backslashes(raw, at, out),
        _ => {
            out.push(byte);
            at
        }
    }
}

fn read_hex(raw: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = raw.get(at..at + digits)?;
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> String {
        String::from_utf8_lossy(&plus_to_space(normalize(text.as_bytes()))).into_owned()
    }

    #[test]
    fn escapes_are_undone_at_any_depth() {
        for (text, expected) in [
            (r#"a \"quoted\" \\\"word\\\""#, r#"a "quoted" "word""#),
            (r"a\n\t b\\n\\n c", "a b c"),
            ("a \n\r\t b", "a b"),
            (
                r"\u0041\\u0042 \u00e9 \ud83d\ude00 \ud83d",
                "AB é 😀 \u{fffd}",
            ),
            (r"\u005cn\u12", " u12"),
            ("a%20b%2520c%252520d+e + f", "a b c d e f"),
            ("100% %zz %2", "100% %zz %2"),
            ("%c3%a9%41", "éA"),
            (r"C:\Users\table", "C:Users able"),
            ("a\u{a0} b\u{2009}\u{3000}c%C2%A0d", "a b c d"),
            ("pass\u{ad}word\u{200b}s \u{2066}x", "passwords x"),
            (r"l\u2060i\u200dn%e2%80%8be\ufeff", "line"),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
    }

    #[test]
    fn json_is_cut_into_strings() {
        let mut parts = Vec::new();
        each_part(br#"{"a\"b":[1,"c\\"],"open"#, |part, _| {
            parts.push(String::from_utf8_lossy(part).into_owned());
        });
        assert_eq!(parts, ["{", r#"a\"b"#, ":[1,", r"c\\", "],", "open"]);
    }

    proptest! {
        #[test]
        fn escaping_changes_no_normal_form(text in "[a-zA-Z0-9 \"/.:é\n]{0,40}") {
            let quoted = serde_json::to_string(&text).expect("JSON");
            let inner = quoted.get(1..quoted.len() - 1).expect("quotes");
            prop_assert_eq!(normal(inner), normal(&text));
        }
    }
}

//! The normal form in which texts are compared.
//!
//! Escapes of JSON and of URLs are undone at any depth, white space is
//! collapsed, and a `+` counts as a space, as it does in a form. Both sides of
//! a comparison go through this, so what matters is only that a text and its
//! encoded forms come out the same. Case is left to the hashes, so that a
//! person is shown the text as it was written.

use memchr::memchr2;
use memchr::memmem::Finder;

/// Brings texts into the normal form.
#[derive(Debug)]
pub(super) struct Normaliser {
    doubled: Finder<'static>,
}

impl Normaliser {
    pub(super) fn new() -> Self {
        Self {
            doubled: Finder::new(b"  "),
        }
    }

    /// Whether `raw` is its own normal form, except for `+`.
    pub(super) fn is_normal(&self, raw: &[u8]) -> bool {
        memchr2(b'\\', b'%', raw).is_none() && self.doubled.find(raw).is_none()
    }

    /// Appends the normal form of `raw` to `out`, except for `+`.
    pub(super) fn append(&self, raw: &[u8], out: &mut Vec<u8>) {
        out.reserve(raw.len() + WORD);
        let next = |found: Option<usize>, at: usize| found.map_or(raw.len(), |found| at + found);
        let rest = |at: usize| raw.get(at..).unwrap_or_default();
        let mut at = 0;
        // Where the next ones are, as far as was searched.
        let (mut escape, mut spaces) = (None, None);
        // Where escapes are close together, a search for the next costs more than
        // it saves.
        let mut dense = false;
        loop {
            let begin = at;
            let (mut stop, found) = if dense {
                copy_near(raw, at, out)
            } else {
                (at, false)
            };
            if !found {
                let ahead = |found: &usize| *found >= stop;
                let search = || next(memchr2(b'\\', b'%', rest(stop)), stop);
                let next_escape = escape.filter(ahead).unwrap_or_else(search);
                let search = || next(self.doubled.find(rest(stop)), stop);
                let next_spaces = spaces.filter(ahead).unwrap_or_else(search);
                (escape, spaces) = (Some(next_escape), Some(next_spaces));
                let far = next_escape.min(next_spaces);
                out.extend_from_slice(raw.get(stop..far).unwrap_or_default());
                stop = far;
            }
            dense = stop - begin < NEAR_WORDS * WORD;
            at = match raw.get(stop) {
                None => return,
                Some(b'\\') => backslashes(raw, stop, out),
                Some(b'%') => percent(raw, stop, out),
                Some(_) => space(raw, stop, out),
            };
        }
    }
}

const WORD: usize = 8;

/// How many words are looked at before there is a search.
const NEAR_WORDS: usize = 8;

/// Copies from `at` up to the next escape or pair of spaces, if it is near.
/// Returns where that is, or what has not been copied begins, and whether it was
/// found.
fn copy_near(raw: &[u8], at: usize, out: &mut Vec<u8>) -> (usize, bool) {
    let mut at = at;
    for _ in 0..NEAR_WORDS {
        let Some(bytes) = raw.get(at..).and_then(<[u8]>::first_chunk::<WORD>) else {
            break;
        };
        let word = u64::from_le_bytes(*bytes);
        let space = equal(word, b' ');
        let stops = equal(word, b'\\') | equal(word, b'%') | space & (space >> 8);
        let length = out.len();
        out.extend_from_slice(bytes);
        if stops != 0 {
            let before = stops.trailing_zeros() as usize / 8;
            out.truncate(length + before);
            return (at + before, true);
        }
        // The last byte may be the first of two spaces.
        out.truncate(length + WORD - 1);
        at += WORD - 1;
    }
    (at, false)
}

/// The highest bit of each byte of the word that equals `byte`.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let different = word ^ u64::from_ne_bytes([byte; WORD]);
    !(((different & LOW) + LOW) | different | LOW)
}

/// The last step of the normal form, apart because base64 knows a `+` of its
/// own.
pub(super) fn plus_is_space(text: &mut [u8]) {
    for byte in text {
        *byte = without_plus(*byte);
    }
}

/// [`plus_is_space`] of one byte.
pub(super) fn without_plus(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte }
}

/// Calls `visit` with each string's content, still escaped and marked `true`,
/// and with what stands between strings.
pub(super) fn strings(json: &[u8], mut visit: impl FnMut(&[u8], bool)) {
    let mut rest = json;
    while let Some(start) = memchr::memchr(b'"', rest) {
        let (between, string) = rest.split_at(start);
        visit(between, false);
        let string = string.get(1..).unwrap_or_default();
        let end = closing(string);
        visit(string.get(..end).unwrap_or_default(), true);
        rest = string.get(end + 1..).unwrap_or_default();
    }
    visit(rest, false);
}

/// Where the string ends, without its closing quote.
fn closing(string: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', string.get(at..).unwrap_or_default()) {
        at += found;
        if string.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    string.len()
}

/// Writes one space, unless there is one, and passes over all that follow.
fn space(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    if out.last() != Some(&b' ') {
        out.push(b' ');
    }
    let spaces = raw.get(at..).unwrap_or_default().iter();
    at + spaces.take_while(|byte| **byte == b' ').count()
}

/// Undoes an escape that begins with a run of backslashes. How long the run is
/// says only how often the text was quoted.
fn backslashes(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let run = raw.get(at..).unwrap_or_default().iter();
    let at = at + run.take_while(|byte| **byte == b'\\').count();
    match raw.get(at) {
        Some(b'n' | b'r' | b't' | b'b' | b'f') => space(raw, at + 1, out),
        Some(b'u') => unicode(raw, at, out),
        _ => at,
    }
}

/// Undoes `u` and four digits; without them it is an ordinary letter.
fn unicode(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let Some(unit) = hex(raw, at + 1, 4) else {
        return at;
    };
    let mut end = at + 5;
    let mut point = unit;
    if (0xD800..0xDC00).contains(&unit) {
        let run = raw.get(end..).unwrap_or_default().iter();
        let low = end + run.take_while(|byte| **byte == b'\\').count();
        if low > end
            && raw.get(low) == Some(&b'u')
            && let Some(unit) = hex(raw, low + 1, 4)
            && (0xDC00..0xE000).contains(&unit)
        {
            point = 0x1_0000 + ((point - 0xD800) << 10) + (unit - 0xDC00);
            end = low + 5;
        }
    }
    let c = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => plain(raw, end, byte, out),
        _ => {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            end
        }
    }
}

/// Undoes `%` and two digits. `%25` stands for the sign itself, so any number
/// of `25` between the two says only how often the text was encoded.
fn percent(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let mut end = at + 1;
    while raw.get(end..end + 2) == Some(b"25") {
        end += 2;
    }
    match hex(raw, end, 2).and_then(|byte| u8::try_from(byte).ok()) {
        Some(byte) => plain(raw, end + 2, byte, out),
        None => {
            out.push(b'%');
            end
        }
    }
}

/// Writes a byte that an escape stood for; `at` is behind the escape.
fn plain(raw: &[u8], at: usize, byte: u8, out: &mut Vec<u8>) -> usize {
    match byte {
        0..=b' ' => space(raw, at, out),
        b'\\' => backslashes(raw, at, out),
        _ => {
            out.push(byte);
            at
        }
    }
}

fn hex(raw: &[u8], at: usize, digits: usize) -> Option<u32> {
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
        let mut out = Vec::new();
        Normaliser::new().append(text.as_bytes(), &mut out);
        plus_is_space(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The normal form, byte by byte.
    fn append_plainly(raw: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        while let Some(byte) = raw.get(at) {
            at = match byte {
                b'\\' => backslashes(raw, at, out),
                b'%' => percent(raw, at, out),
                b' ' if raw.get(at + 1) == Some(&b' ') => space(raw, at, out),
                _ => {
                    out.push(*byte);
                    at + 1
                }
            };
        }
    }

    #[test]
    fn encoded_forms_come_out_the_same() {
        let check = |text: &str, expected: &str| {
            assert_eq!(normal(text), expected, "{text:?}");
            let once = serde_json::to_string(text).expect("JSON");
            let once = &once[1..once.len() - 1];
            assert_eq!(normal(once), expected, "{once:?}");
            let twice = serde_json::to_string(once).expect("JSON");
            let twice = &twice[1..twice.len() - 1];
            assert_eq!(normal(twice), expected, "{twice:?}");
        };
        check("plain text", "plain text");
        check("two  spaces,   three", "two spaces, three");
        check("he said \"no\"", "he said \"no\"");
        check("a\\d\\\\c", "adc");
        check("caf\u{e9} \\u00e9 😀 \\ud83d\\ude00", "café é 😀 😀");
        check("lone \\ud83d surrogate", "lone \u{fffd} surrogate");
        check("100% and 50%25 and %41%2541%zz", "100% and 50% and AA%zz");
        check("a+b%2Bc%20d", "a b c d");
        check("C:%5Cnew%5C%5Cold", "C: ewold");
    }

    #[test]
    fn white_space_is_one_space() {
        assert_eq!(normal("a\\n\\n  \\tb"), "a b");
        assert_eq!(normal("a \\r\\n b%0A%20 c"), "a b c");
    }

    #[test]
    fn strings_and_what_is_between() {
        let mut parts = Vec::new();
        strings(br#"{"a\"b":[1,"c\\"],"d""#, |part, string| {
            parts.push((String::from_utf8_lossy(part).into_owned(), string));
        });
        let strings: Vec<_> = parts.iter().filter(|part| part.1).map(|p| &p.0).collect();
        assert_eq!(strings, ["a\\\"b", "c\\\\", "d"]);
        let between: Vec<_> = parts.iter().filter(|part| !part.1).map(|p| &p.0).collect();
        assert_eq!(between, ["{", ":[1,", "],", ""]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            Normaliser::new().append(&raw, &mut out);
            strings(&raw, |_, _| {});
        }

        #[test]
        fn searching_ahead_changes_nothing(
            raw in "([a-z ]{0,30}|  |\\\\[nu\"\\\\]|%(25)*2[05]|[\u{e9}+ ]{1,9}|[a-z]{50,80}){0,12}",
        ) {
            let (mut out, mut plainly) = (Vec::new(), Vec::new());
            let normaliser = Normaliser::new();
            normaliser.append(raw.as_bytes(), &mut out);
            append_plainly(raw.as_bytes(), &mut plainly);
            prop_assert_eq!(&out, &plainly);
            prop_assert!(!normaliser.is_normal(raw.as_bytes()) || out == raw.as_bytes());
        }

        #[test]
        fn json_escaping_changes_nothing(text in "[a-z0-9 \\\\\"%/nu\u{e9}\u{1f600}\n\t+]{0,60}") {
            let once = serde_json::to_string(&text).expect("JSON");
            let twice = serde_json::to_string(&once).expect("JSON");
            let once = &once[1..once.len() - 1];
            prop_assert_eq!(normal(once), normal(&twice[3..twice.len() - 3]));
        }
    }
}

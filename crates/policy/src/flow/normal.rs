//! The normal form in which texts are compared.
//!
//! Escapes of JSON and of URLs are undone at any depth, white space is
//! collapsed, and a `+` counts as a space, as it does in a form. Both sides of
//! a comparison go through this, so what matters is only that a text and its
//! encoded forms come out the same. Case is left to the hashes, so that a
//! person is shown the text as it was written; nothing here may depend on it.

use memchr::memmem;

use super::kinds::{CHUNK, Kinds, Visit, walk};

/// What may be put between two texts: no normal form of a text has it.
pub(super) const END: u8 = 0xFF;

/// Whether `raw` is its own normal form, except for `+`.
pub(super) fn is_normal(raw: &[u8]) -> bool {
    let mut compared = Compared {
        raw,
        is_normal: true,
    };
    walk(raw, &mut compared);
    compared.is_normal
}

struct Compared<'a> {
    raw: &'a [u8],
    is_normal: bool,
}

impl Visit for Compared<'_> {
    #[inline(always)]
    fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
        self.is_normal = stops(self.raw, at, kinds) == 0;
        if self.is_normal {
            at + CHUNK
        } else {
            usize::MAX
        }
    }
}

/// Appends the normal form of `raw` to `out`, except for `+`.
pub(super) fn append(raw: &[u8], out: &mut Vec<u8>) {
    out.reserve(raw.len() + MANY);
    let mut appended = Appended { raw, out, done: 0 };
    walk(raw, &mut appended);
    let done = appended.done;
    out.extend_from_slice(raw.get(done..).unwrap_or_default());
}

struct Appended<'a> {
    raw: &'a [u8],
    out: &'a mut Vec<u8>,
    /// What is before is in `out`.
    done: usize,
}

impl Visit for Appended<'_> {
    #[inline(always)]
    fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
        let Self { raw, out, done } = self;
        let mut stops = stops(raw, at, kinds);
        while stops != 0 {
            let stop = at + stops.trailing_zeros() as usize;
            copy(raw, *done, stop, out);
            *done = match raw.get(stop..stop + 2) {
                // JSON within JSON has it beside every word.
                Some(br#"\""#) => stop + 1,
                _ => undo(raw, stop, out),
            };
            if *done >= at + CHUNK {
                return *done;
            }
            stops &= u64::MAX << (*done - at);
        }
        at + CHUNK
    }
}

/// Where the chunk at `at` differs from its normal form, or may: at escapes, and
/// at each space that another follows.
#[inline(always)]
pub(super) fn stops(raw: &[u8], at: usize, kinds: Kinds) -> u64 {
    let next = u64::from(raw.get(at + CHUNK) == Some(&b' '));
    kinds.backslashes | kinds.percents | kinds.spaces & (kinds.spaces >> 1 | next << 63)
}

/// A number of bytes that is known beforehand, so that copying them is faster than
/// copying fewer.
const MANY: usize = 16;

/// Copies what is between two places.
#[inline(always)]
fn copy(raw: &[u8], from: usize, to: usize, out: &mut Vec<u8>) {
    let rest = raw.get(from..).unwrap_or_default();
    if to <= from + MANY
        && let Some(bytes) = rest.first_chunk::<MANY>()
    {
        let length = out.len() + to.saturating_sub(from);
        out.extend_from_slice(bytes);
        out.truncate(length);
    } else {
        out.extend_from_slice(raw.get(from..to).unwrap_or_default());
    }
}

/// Undoes what is at a stop, and returns what is behind it.
fn undo(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    match raw.get(at) {
        Some(b'\\') => backslashes(raw, at, out),
        Some(b'%') => percent(raw, at, out),
        _ => space(raw, at, out),
    }
}

/// The last step of the normal form, from a place on, apart because base64 knows a `+` of
/// its own.
pub(super) fn plus_is_space(text: &mut Vec<u8>, from: usize) {
    for byte in text.get_mut(from..).unwrap_or_default() {
        *byte = without_plus(*byte);
    }
    // Those beside each other, or beside a space, are one.
    let two = memmem::Finder::new("  ");
    let next = |text: &[u8], from: usize| {
        let found = two.find(text.get(from..).unwrap_or_default());
        found.map_or(text.len(), |at| from + at)
    };
    let mut row = next(text, from);
    let mut end = row;
    while row < text.len() {
        let spaces = text.iter().skip(row).take_while(|byte| **byte == b' ');
        let behind = row + spaces.count();
        row = next(text, behind);
        // One of them stays.
        text.copy_within(behind - 1..row, end);
        end += row + 1 - behind;
    }
    text.truncate(end);
}

/// [`plus_is_space`] of one byte.
pub(super) fn without_plus(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte }
}

/// Calls `visit` with each string's content, still escaped and marked `true`,
/// and with what stands between strings.
pub(super) fn strings(json: &[u8], visit: impl FnMut(&[u8], bool)) {
    let mut strings = Strings {
        json,
        begin: 0,
        inside: false,
        visit,
    };
    walk(json, &mut strings);
    let Strings { begin, inside, .. } = strings;
    (strings.visit)(json.get(begin..).unwrap_or_default(), inside);
}

struct Strings<'a, F> {
    json: &'a [u8],
    /// Where the part begins that is not over.
    begin: usize,
    /// Whether it is a string.
    inside: bool,
    visit: F,
}

impl<F: FnMut(&[u8], bool)> Visit for Strings<'_, F> {
    #[inline(always)]
    fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
        let mut marks = kinds.quotes | kinds.backslashes;
        while marks != 0 {
            let bit = marks.trailing_zeros();
            marks &= marks - 1;
            let place = at + bit as usize;
            if kinds.quotes >> bit & 1 != 0 {
                let part = self.json.get(self.begin..place);
                (self.visit)(part.unwrap_or_default(), self.inside);
                (self.begin, self.inside) = (place + 1, !self.inside);
            } else if self.inside {
                // Whatever follows is no quote.
                if bit == u64::BITS - 1 {
                    return place + 2;
                }
                marks &= !(2 << bit);
            }
        }
        at + CHUNK
    }
}

/// Writes one space, unless there is one, and passes over all white space that
/// follows: spaces, and escapes of white space that was quoted once.
fn space(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    if out.last() != Some(&b' ') {
        out.push(b' ');
    }
    let mut rest = raw.get(at..).unwrap_or_default();
    loop {
        rest = match rest {
            [b' ', rest @ ..] => rest,
            [b'\\', letter, rest @ ..] if is_white_space(*letter) => rest,
            _ => return raw.len() - rest.len(),
        };
    }
}

/// Whether a backslash and this letter stand for white space. In either case: whoever changes
/// that of a text, such as of a path, changes that of what looks like an escape.
fn is_white_space(letter: u8) -> bool {
    matches!(letter | 0x20, b'n' | b'r' | b't' | b'b' | b'f')
}

/// Undoes an escape that begins with a run of backslashes. How long the run is
/// says only how often the text was quoted.
fn backslashes(raw: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    let mut at = at;
    loop {
        while raw.get(at) == Some(&b'\\') {
            at += 1;
        }
        let (c, end) = match raw.get(at) {
            Some(letter) if is_white_space(*letter) => return space(raw, at + 1, out),
            Some(b'u' | b'U') => match unicode(raw, at) {
                Some(escaped) => escaped,
                None => return at,
            },
            // Nothing is left of it, and what stands around it meets.
            Some(b' ') if out.last() == Some(&b' ') => return space(raw, at, out),
            _ => return at,
        };
        match u8::try_from(c) {
            // It may belong to an escape itself.
            Ok(b'\\') => at = end,
            Ok(byte) if byte.is_ascii() => return plain(raw, end, byte, out),
            _ => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return end;
            }
        }
    }
}

/// What `u` and four digits stand for, and the place behind them; without the digits it
/// is an ordinary letter.
fn unicode(raw: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = hex(raw, at + 1, 4)?;
    let mut end = at + 5;
    let mut point = unit;
    if (0xD800..0xDC00).contains(&unit) {
        let run = raw.get(end..).unwrap_or_default().iter();
        let low = end + run.take_while(|byte| **byte == b'\\').count();
        if low > end
            && let Some(b'u' | b'U') = raw.get(low)
            && let Some(unit) = hex(raw, low + 1, 4)
            && (0xDC00..0xE000).contains(&unit)
        {
            point = 0x1_0000 + ((point - 0xD800) << 10) + (unit - 0xDC00);
            end = low + 5;
        }
    }
    let c = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((c, end))
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
            out.push(byte.min(END - 1));
            at
        }
    }
}

#[inline]
fn hex(raw: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = raw.get(at..at + digits)?;
    let mut value = 0;
    for digit in digits {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            _ => match digit | 0x20 {
                letter @ b'a'..=b'f' => letter - b'a' + 10,
                _ => return None,
            },
        };
        value = value << 4 | u32::from(digit);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(text: &str) -> String {
        let mut out = Vec::new();
        append(text.as_bytes(), &mut out);
        plus_is_space(&mut out, 0);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// [`normal`] of arguments, which are not gone through once more without a `+`.
    fn looked_for(text: &str) -> String {
        let mut out = Vec::new();
        append(text.as_bytes(), &mut out);
        if out.contains(&b'+') {
            plus_is_space(&mut out, 0);
        }
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
        assert_eq!(normal("a++b + c+ d +e+++++f+"), "a b c d e f ");
        assert_eq!(normal("++a%2B+%20b"), " a b");
    }

    #[test]
    fn what_is_dropped_between_spaces_leaves_one() {
        for between in [
            r"\", r"\\", r"\ \", r"\u005c", r"%5C", r"%20\%20", r"\n\\\n",
        ] {
            let text = format!("a {between} b");
            assert_eq!(looked_for(&text), "a b", "{text}");
            assert_eq!(normal(&text), "a b", "{text}");
        }
        assert_eq!(looked_for(r"a \x \ ux \ "), "a x ux ");
    }

    #[test]
    fn escapes_within_escapes_are_undone_without_end() {
        assert_eq!(normal(&format!("a{}nb", "\\u005c".repeat(200_000))), "a b");
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
            append(&raw, &mut out);
            strings(&raw, |_, _| {});
        }

        #[test]
        fn many_bytes_at_once_are_the_same_as_one_by_one(
            raw in "([a-z ]{0,30}|  |\\\\[nu\"\\\\]|%(25)*2[05]|[\u{e9}+ ]{1,9}|[a-z]{50,80}){0,12}",
        ) {
            let (mut out, mut plainly) = (Vec::new(), Vec::new());
            append(raw.as_bytes(), &mut out);
            append_plainly(raw.as_bytes(), &mut plainly);
            prop_assert_eq!(&out, &plainly);
            prop_assert!(!is_normal(raw.as_bytes()) || out == raw.as_bytes());
        }

        #[test]
        fn case_changes_nothing(
            raw in "([a-z ]{0,9}|\\\\{1,3}|\\\\[nrtbfuNRTBFU]|\\\\[uU][dD]?[0-9a-fA-F]{3,4}|%(25)*[0-9a-fA-F]{2}){0,12}",
        ) {
            let lower = |text: &str| normal(text).to_ascii_lowercase();
            prop_assert_eq!(lower(&raw.to_ascii_uppercase()), lower(&raw));
            prop_assert_eq!(lower(&raw.to_ascii_lowercase()), lower(&raw));
        }

        #[test]
        fn json_escaping_changes_nothing(
            text in "([a-z0-9 \\\\\"%/nu\u{e9}\u{1f600}\n\t]{0,9}| [\\\\+] |%5[cC]|%20|\\\\u00(5c|20)){0,9}",
        ) {
            let once = serde_json::to_string(&text).expect("JSON");
            let twice = serde_json::to_string(&once).expect("JSON");
            let once = &once[1..once.len() - 1];
            let twice = &twice[3..twice.len() - 3];
            let learnt = normal(once);
            prop_assert_eq!(&looked_for(once), &learnt);
            prop_assert_eq!(&normal(twice), &learnt);
            prop_assert_eq!(&looked_for(twice), &learnt);
        }
    }
}

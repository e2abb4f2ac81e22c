//! What a text says once the escapes of JSON and of URLs in it are undone, and where in
//! the text that is said: a server repeats a secret in whatever spelling its messages have.

use std::ops::Range;

/// How many times escapes are undone: those of a URL within JSON, of JSON within JSON.
const DEPTH: u32 = 2;

/// The most bytes that one byte is written with, escaped so often: each time up to six
/// (`\u0041`), and each of those up to six.
const LONGEST_ESCAPE: usize = 6_usize.pow(DEPTH);

/// How much of a text is read at a time at least, in bytes, besides what the next part has
/// again: a reading takes many times as much memory.
const PART: usize = 64 << 10;

/// What is looked for in readings to find a text in them: a plus sign is a space, as in
/// forms.
pub(crate) fn needle(text: &str) -> Vec<u8> {
    text.bytes().map(without_plus).collect()
}

/// The most bytes of a text in which a needle of up to `longest` bytes is written.
pub(crate) fn span(longest: usize) -> usize {
    longest.saturating_add(1).saturating_mul(LONGEST_ESCAPE)
}

/// Calls `visit` with each reading of a text: as it is, and with escapes undone. Needles of
/// up to `longest` bytes are in one of them as a whole, and may be in several.
pub(crate) fn readings(text: &str, longest: usize, mut visit: impl FnMut(&Reading)) {
    let again = span(longest);
    // No more is read again than is read.
    let part = PART.max(again);
    let mut start = 0;
    loop {
        let end = text.floor_char_boundary(again.saturating_add(start + part));
        let plain = Reading {
            bytes: needle(text.get(start..end).unwrap_or_default()),
            starts: (start..=end).collect(),
        };
        visit(&plain);
        visit_deeper(&plain, DEPTH, &mut visit);
        if end == text.len() {
            return;
        }
        start = text.floor_char_boundary(start + part);
    }
}

fn visit_deeper(reading: &Reading, depth: u32, visit: &mut impl FnMut(&Reading)) {
    if depth == 0 {
        return;
    }
    for undo in [json, percent] {
        if let Some(undone) = reading.undone(undo) {
            visit(&undone);
            visit_deeper(&undone, depth - 1, visit);
        }
    }
}

/// One reading of a part of a text.
pub(crate) struct Reading {
    bytes: Vec<u8>,
    /// Where in the text each byte begins, and where the last one ends.
    starts: Vec<usize>,
}

impl Reading {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where in the text these bytes are.
    pub(crate) fn place(&self, bytes: &Range<usize>) -> Range<usize> {
        let start = |at: usize| self.starts.get(at).copied().unwrap_or_default();
        start(bytes.start)..start(bytes.end)
    }

    /// With one kind of escapes undone; `None` if there are none.
    fn undone(&self, undo: impl Fn(&[u8]) -> Option<Escape>) -> Option<Self> {
        let rest = |at: usize| self.bytes.get(at..).unwrap_or_default();
        let first = (0..self.bytes.len()).find(|at| undo(rest(*at)).is_some())?;
        let mut undone = Self {
            bytes: self.bytes.get(..first)?.to_vec(),
            starts: self.starts.get(..first)?.to_vec(),
        };
        let mut at = first;
        while let (Some(byte), Some(start)) = (self.bytes.get(at), self.starts.get(at)) {
            let escape = undo(rest(at)).unwrap_or(Escape {
                says: [*byte, 0, 0, 0],
                bytes: 1,
                length: 1,
            });
            let says = escape.says.get(..escape.bytes).unwrap_or_default();
            undone.bytes.extend(says.iter().copied().map(without_plus));
            undone.starts.extend(says.iter().map(|_| *start));
            at += escape.length;
        }
        undone.starts.extend(self.starts.last());
        Some(undone)
    }
}

/// What an escape stands for, in UTF-8, and how long it is.
struct Escape {
    says: [u8; 4],
    bytes: usize,
    length: usize,
}

impl Escape {
    fn of(character: char, length: usize) -> Self {
        let mut says = [0; 4];
        let bytes = character.encode_utf8(&mut says).len();
        Self {
            says,
            bytes,
            length,
        }
    }
}

/// An escape within a JSON string (RFC 8259, section 7) at the beginning of a text.
fn json(text: &[u8]) -> Option<Escape> {
    let [b'\\', kind, ..] = text else {
        return None;
    };
    let character = match kind {
        b'"' | b'\\' | b'/' => char::from(*kind),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some(Escape::of(character, 2))
}

fn unicode(text: &[u8]) -> Option<Escape> {
    let unit = |at: usize| match text.get(at..at + 6)? {
        [b'\\', b'u', digits @ ..] => u16::try_from(hexadecimal(digits)?).ok(),
        _ => None,
    };
    let first = unit(0)?;
    let pair = unit(6).map_or(vec![first], |second| vec![first, second]);
    let character = char::decode_utf16(pair).next()?.ok()?;
    Some(Escape::of(character, 6 * character.len_utf16()))
}

/// A percent-encoded byte (RFC 3986, section 2.1) at the beginning of a text.
fn percent(text: &[u8]) -> Option<Escape> {
    let [b'%', digits @ ..] = text else {
        return None;
    };
    let byte = u8::try_from(hexadecimal(digits.get(..2)?)?).ok()?;
    Some(Escape {
        says: [byte, 0, 0, 0],
        bytes: 1,
        length: 3,
    })
}

fn without_plus(byte: u8) -> u8 {
    match byte {
        b'+' => b' ',
        other => other,
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The reading that says this, and the text in which it does.
    fn found(text: &str, said: &str) -> Option<String> {
        let mut found = None;
        readings(text, said.len(), |reading| {
            let at = memchr::memmem::find(reading.bytes(), &needle(said));
            let place = at.map(|at| reading.place(&(at..at + said.len())));
            if let Some(place) = place {
                found = found.take().or(text.get(place).map(str::to_owned));
            }
        });
        found
    }

    #[test]
    fn escapes_are_undone() {
        let check = |text: &str, said: &str, expected: Option<&str>| {
            assert_eq!(found(text, said).as_deref(), expected, "{text}");
        };
        check("<a b>", "a b", Some("a b"));
        check("<a%20b>", "a b", Some("a%20b"));
        check("<a+b>", "a b", Some("a+b"));
        check("<a+b%2B>", "a b+", Some("a+b%2B"));
        check("<a%2520b>", "a b", Some("a%2520b"));
        check("<%c3%A9>", "é", Some("%c3%A9"));
        check(r#"<\u00E9\"\/\n\\>"#, "é\"/\n\\", Some(r#"\u00E9\"\/\n\\"#));
        check(r"<\ud83d\uDD11>", "\u{1F511}", Some(r"\ud83d\uDD11"));
        check(r#"<\\\"%2F>"#, "\"/", Some(r#"\"%2F"#));
        check(r"<\ud83d \uDD11 \u12 %2 %zz \x>", "\u{1F511}", None);
        check("", "x", None);
    }

    #[test]
    fn parts_of_a_long_text_are_read_as_one() {
        for escaped in [r"\\u0041", LONGEST] {
            let all = escaped.repeat(10);
            for before in (PART - all.len() - 80..PART + 100).step_by(23) {
                let text = ["x".repeat(before), all.clone(), "x".repeat(PART)].concat();
                assert_eq!(
                    found(&text, &"A".repeat(10)).as_ref(),
                    Some(&all),
                    "{before}"
                );
            }
        }
        assert_eq!(LONGEST.len(), LONGEST_ESCAPE);
    }

    /// An `A` of JSON in JSON, nothing of which is written as it is.
    const LONGEST: &str = r"\u005c\u0075\u0030\u0030\u0034\u0031";

    proptest! {
        #[test]
        fn any_text_is_read(text in "([%\\\\+]{0,3}(u00|ud8|[0-9a-f\"é/n])?){0,20}") {
            readings(&text, 4, |reading| {
                let all = reading.place(&(0..reading.bytes().len()));
                assert!(all.is_empty() || text.get(all).is_some());
            });
        }

        #[test]
        fn what_was_escaped_is_read(said in "\\PC{1,20}", url: bool) {
            let in_json = serde_json::to_string(&said).expect("JSON");
            let text = match url {
                true => url::form_urlencoded::byte_serialize(in_json.as_bytes()).collect(),
                false => in_json,
            };
            prop_assert!(found(&text, &said).is_some(), "{text}");
        }
    }
}

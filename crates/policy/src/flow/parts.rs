//! What begins and ends within a text: numbers, and runs of base64.
//!
//! Most chunks of most texts have no part of either. Of those no more is learnt
//! than that; where there may be one, the look begins anew, a chunk earlier.

use std::ops::Range;

use super::encoded::MIN_RUN;
use super::kinds::{CHUNK, Kinds, Marked, Row, Visit, bits, ends_of_rows, walk};
use super::normal::stops;
use super::numbers::MIN_DIGITS;

/// What was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Base64 characters, of either alphabet, as many as [`MIN_RUN`] or more, with
    /// others among them than hexadecimal digits.
    Base64(Range<usize>),
    /// Digits, as many as [`MIN_DIGITS`] or more, without a letter, a digit or `_`
    /// beside them, but for an exponent.
    Digits(Range<usize>),
}

/// Which parts are looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) base64: bool,
    pub(super) digits: bool,
}

/// Calls `visit` with the parts of a text that are wanted.
pub(super) fn parts(text: &[u8], wanted: Wanted, visit: impl FnMut(Part)) {
    let mut parts = Parts {
        text,
        wanted,
        visit,
        base64: Rows::default(),
        words: Rows::default(),
    };
    walk(text, &mut parts);
}

/// [`parts`] of a text that is its own normal form, except for `+`, which is told on the same
/// way. Otherwise `false`, and there may be parts missing.
pub(super) fn parts_of_normal(text: &[u8], wanted: Wanted, visit: impl FnMut(Part)) -> bool {
    let parts = Parts {
        text,
        wanted,
        visit,
        base64: Rows::default(),
        words: Rows::default(),
    };
    let mut normal = Normal {
        parts,
        is_normal: true,
    };
    walk(text, &mut normal);
    normal.is_normal
}

struct Normal<'a, F> {
    parts: Parts<'a, F>,
    is_normal: bool,
}

impl<F: FnMut(Part)> Visit for Normal<'_, F> {
    #[inline(always)]
    fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
        self.is_normal = stops(self.parts.text, at, kinds) == 0;
        if self.is_normal {
            self.parts.chunk(at, kinds)
        } else {
            usize::MAX
        }
    }
}

struct Parts<'a, F> {
    text: &'a [u8],
    wanted: Wanted,
    visit: F,
    base64: Rows<MIN_RUN>,
    words: Rows<MIN_DIGITS>,
}

/// Of a part that goes over from one chunk to the next, one of them has half.
const HALF_RUN: u32 = MIN_RUN / 2;
const HALF_NUMBER: u32 = MIN_DIGITS / 2;

impl<F: FnMut(Part)> Visit for Parts<'_, F> {
    #[inline(always)]
    fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
        let mut next = at + CHUNK;
        if self.wanted.base64 {
            match self.base64.looks_at::<HALF_RUN>(at, kinds.graphic) {
                Look::Pass => {}
                Look::Before => next = at - CHUNK,
                Look::Here => {
                    let (row, beyond) = (kinds.base64, kinds.base64 & !kinds.hex);
                    for (run, is_beyond) in self.base64.ends(at, row, beyond) {
                        if is_beyond {
                            (self.visit)(Part::Base64(run));
                        }
                    }
                    self.base64.pass(at, row, row.leading_ones() >= HALF_RUN);
                }
            }
        }
        if self.wanted.digits {
            match self.words.looks_at::<HALF_NUMBER>(at, kinds.digits) {
                Look::Pass => {}
                Look::Before => next = at - CHUNK,
                Look::Here => {
                    let (row, beyond) = (kinds.words, kinds.words & !kinds.digits);
                    for (word, is_beyond) in self.words.ends(at, row, beyond) {
                        let digits = match is_beyond {
                            false => Some(word),
                            true => before_exponent(self.text, word),
                        };
                        if let Some(digits) = digits {
                            (self.visit)(Part::Digits(digits));
                        }
                    }
                    let digits = kinds.digits.leading_ones();
                    let goes_on = digits >= HALF_NUMBER || ends_in_exponent(self.text, at + CHUNK);
                    self.words.pass(at, row, goes_on);
                }
            }
        }
        next
    }
}

/// The digits of a word that are followed by an exponent, as in `123456e7`, if they are
/// enough.
fn before_exponent(text: &[u8], word: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.get(word.clone())?;
    let count = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (b'e' | b'E', exponent) = bytes.get(count..)?.split_first()? else {
        return None;
    };
    let is_number = count >= MIN_DIGITS as usize
        && exponent.len() <= MAX_EXPONENT
        && exponent.iter().all(u8::is_ascii_digit);
    is_number.then(|| word.start..word.start + count)
}

/// The most digits of an exponent.
const MAX_EXPONENT: usize = 3;

/// Whether the text before `end` ends in a number's exponent, which may go on.
fn ends_in_exponent(text: &[u8], end: usize) -> bool {
    let before = text.get(..end).unwrap_or(text);
    let last = before.get(before.len().saturating_sub(MAX_EXPONENT + 2)..);
    let mut last = last.unwrap_or(before).iter().rev();
    let beyond = last.by_ref().find(|byte| !byte.is_ascii_digit());
    matches!(beyond, Some(b'e' | b'E')) && last.next().is_some_and(u8::is_ascii_digit)
}

/// What is to be done with a chunk.
enum Look {
    /// Nothing: no part is in it, or it was looked at.
    Pass,
    /// The one before is to be looked at first.
    Before,
    /// The rows in it are to be looked at.
    Here,
}

/// The rows of one kind, as far as they are looked at.
#[derive(Debug, Default)]
struct Rows<const LENGTH: u32> {
    row: Row,
    beyond: Marked,
    /// The chunks that begin before are looked at in any case.
    certain: usize,
    /// Where the last chunk ends that was looked at.
    seen: usize,
}

impl<const LENGTH: u32> Rows<LENGTH> {
    /// What is to be done with a chunk where there may only be a part if it has a
    /// row of `HALF` bytes of this kind.
    #[inline(always)]
    fn looks_at<const HALF: u32>(&mut self, at: usize, kind: u64) -> Look {
        if at < self.seen {
            return Look::Pass;
        }
        if at < self.certain {
            return Look::Here;
        }
        if ends_of_rows::<HALF>(kind) == 0 {
            return Look::Pass;
        }
        self.certain = at + 1;
        if self.seen == at {
            return Look::Here;
        }
        self.seen = at - CHUNK;
        self.row = Row::at(self.seen);
        self.beyond = Marked::default();
        Look::Before
    }

    /// The rows of so many bytes that end in a chunk, and whether they have a byte
    /// that is marked.
    #[inline(always)]
    fn ends(
        &mut self,
        at: usize,
        kind: u64,
        marks: u64,
    ) -> impl Iterator<Item = (Range<usize>, bool)> {
        let beyond = self.beyond.behind(kind, marks);
        let row = &self.row;
        bits(row.behind::<LENGTH>(at, kind)).map(move |end| {
            let range = row.start(at, kind, end)..at + end as usize;
            (range, beyond >> end & 1 != 0)
        })
    }

    /// Goes on to the next chunk, which is looked at if this one ends within what
    /// may be a part.
    #[inline(always)]
    fn pass(&mut self, at: usize, kind: u64, goes_on: bool) {
        self.row.pass(at, kind);
        self.seen = at + CHUNK;
        if goes_on {
            self.certain = self.seen + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The parts, byte by byte.
    fn plainly(text: &[u8]) -> Vec<Part> {
        let rows = |is: fn(u8) -> bool| {
            let mut rows = Vec::new();
            let mut start = 0;
            for row in text.split(|byte| !is(*byte)) {
                rows.push(start..start + row.len());
                start += row.len() + 1;
            }
            rows.into_iter()
        };
        let all = |row: &Range<usize>, is: fn(&u8) -> bool| text[row.clone()].iter().all(is);
        let base64 = rows(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte))
            .filter(|row| row.len() >= MIN_RUN as usize)
            .filter(|row| !all(row, |byte| byte.is_ascii_hexdigit() || *byte == b'-'));
        let words = rows(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let digits = words.filter_map(|row| {
            let word = std::str::from_utf8(&text[row.clone()]).expect("ASCII");
            let (digits, exponent) = word.split_once(['e', 'E']).unwrap_or((word, ""));
            let mut bytes = digits.bytes().chain(exponent.bytes());
            let is_number = digits.len() >= MIN_DIGITS as usize
                && exponent.len() <= MAX_EXPONENT
                && bytes.all(|byte| byte.is_ascii_digit());
            is_number.then(|| row.start..row.start + digits.len())
        });
        base64
            .map(Part::Base64)
            .chain(digits.map(Part::Digits))
            .collect()
    }

    fn found(text: &[u8], encoded: bool) -> Vec<Part> {
        let (mut found, mut digits) = (Vec::new(), Vec::new());
        let wanted = Wanted {
            base64: encoded,
            digits: true,
        };
        parts(text, wanted, |part| match part {
            Part::Base64(_) => found.push(part),
            Part::Digits(_) => digits.push(part),
        });
        found.extend(digits);
        found
    }

    struct Counted<'a, F> {
        parts: Parts<'a, F>,
        chunks: usize,
    }

    impl<F: FnMut(Part)> Visit for Counted<'_, F> {
        fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
            self.chunks += 1;
            self.parts.chunk(at, kinds)
        }
    }

    proptest! {
        #[test]
        fn every_part_is_found(
            text in proptest::collection::vec(
                "[0-9]{1,12}|[0-9]{5,9}[eE][0-9]{0,4}|[a-zA-Z0-9/_+-]{1,30}|[a-f0-9-]{16,40}|[a-zA-Z0-9]{60,140}|[a-z ]{1,90}|[ .\u{e9}:@\\[`{]",
                0..16,
            ),
        ) {
            let text = text.concat();
            let mut expected = plainly(text.as_bytes());
            prop_assert_eq!(&found(text.as_bytes(), true), &expected);
            expected.retain(|part| matches!(part, Part::Digits(_)));
            prop_assert_eq!(&found(text.as_bytes(), false), &expected);
        }

        #[test]
        fn no_chunk_is_seen_more_than_a_few_times(
            text in proptest::collection::vec("[0-9]{3,70}|[g-z]{3,70}|[ _+]{1,70}", 0..60),
        ) {
            let text = text.concat();
            let wanted = Wanted { base64: true, digits: true };
            let parts = Parts { text: text.as_bytes(), wanted, visit: |_| {}, base64: Rows::default(), words: Rows::default() };
            let mut counted = Counted { parts, chunks: 0 };
            walk(text.as_bytes(), &mut counted);
            // Each kind goes back once, and over two chunks again.
            prop_assert!(counted.chunks <= 5 * (text.len() / CHUNK + 1));
        }

        #[test]
        fn a_part_is_found_wherever_it_stands(
            before in 0_usize..200, length in 1_usize..80, words in "[a-z]{1,20}( [a-z]{1,20}){0,9}",
        ) {
            let (row, number) = ("7".repeat(length), "7".repeat(length) + "e123");
            for part in ["g".repeat(length), row, number] {
                let text = format!("{}.{part}.{words}", " ".repeat(before));
                prop_assert_eq!(found(text.as_bytes(), true), plainly(text.as_bytes()), "{}", text);
            }
        }
    }
}

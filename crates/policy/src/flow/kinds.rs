//! What kinds of bytes a text has, sixty-four of them at a time: a mask for each
//! kind, in which the lowest bit is for the first byte.
//!
//! Processors with AVX2 tell kinds apart by two look-ups, of the upper half and
//! the lower half of each byte; others do the same byte by byte.

/// How many bytes are looked at together.
pub(super) const CHUNK: usize = 64;

/// The bytes of a chunk that are of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    /// Decimal digits.
    pub(super) digits: u64,
    /// Letters and digits of ASCII, and `_`.
    pub(super) words: u64,
    /// Both alphabets of base64.
    pub(super) base64: u64,
    /// Hexadecimal digits and `-`.
    pub(super) hex: u64,
    /// What is beyond `*` in ASCII: all of the kinds above and more, told sooner.
    pub(super) graphic: u64,
    pub(super) backslashes: u64,
    pub(super) percents: u64,
    pub(super) quotes: u64,
    pub(super) spaces: u64,
}

/// What a byte is, by a bit for each of the sets below: those of its lower half,
/// as far as those of its upper half have them, too.
const DIGIT: u8 = 1;
/// `A` to `O`.
const FIRST_LETTER: u8 = 1 << 1;
/// `P` to `Z`.
const LAST_LETTER: u8 = 1 << 2;
const UNDERSCORE: u8 = 1 << 3;
/// `+` and `/`.
const SIGN: u8 = 1 << 4;
/// `A` to `F`.
const HEX_LETTER: u8 = 1 << 5;
const HYPHEN: u8 = 1 << 6;

const WORD: u8 = DIGIT | FIRST_LETTER | LAST_LETTER | UNDERSCORE;
const BASE64: u8 = WORD | SIGN | HYPHEN;
const HEX: u8 = DIGIT | HEX_LETTER | HYPHEN;

static LOWER_HALVES: [u8; 16] = {
    const ONE: u8 = DIGIT | FIRST_LETTER | LAST_LETTER | HEX_LETTER;
    const SEVEN: u8 = DIGIT | FIRST_LETTER | LAST_LETTER;
    [
        DIGIT | LAST_LETTER,
        ONE,
        ONE,
        ONE,
        ONE,
        ONE,
        ONE,
        SEVEN,
        SEVEN,
        SEVEN,
        FIRST_LETTER | LAST_LETTER,
        FIRST_LETTER | SIGN,
        FIRST_LETTER,
        FIRST_LETTER | HYPHEN,
        FIRST_LETTER,
        FIRST_LETTER | UNDERSCORE | SIGN,
    ]
};

static UPPER_HALVES: [u8; 16] = [
    0,
    0,
    SIGN | HYPHEN,
    DIGIT,
    FIRST_LETTER | HEX_LETTER,
    LAST_LETTER | UNDERSCORE,
    FIRST_LETTER | HEX_LETTER,
    LAST_LETTER,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
];

/// Who sees the chunks of a text, one after the other. A trait, so that what is
/// done with a chunk becomes one with how its kinds are told.
pub(super) trait Visit {
    /// Takes the chunk at this place, and says where the next one begins.
    fn chunk(&mut self, at: usize, kinds: Kinds) -> usize;
}

/// Shows a text to `visit`. The last chunk is not whole: what it lacks is of no
/// kind, and at least one byte of that is seen.
#[inline]
pub(super) fn walk(text: &[u8], visit: &mut impl Visit) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only thing that is asked of it.
        return unsafe { walk_avx2(text, visit) };
    }
    walk_by(text, kinds, visit);
}

/// The places of the bits that are set, the lowest first.
#[inline(always)]
pub(super) fn bits(mask: u64) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let bit = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit)
    })
}

/// The bits with which so many set ones end, at the least.
#[inline(always)]
pub(super) fn ends_of_rows<const LENGTH: u32>(mask: u64) -> u64 {
    let mut ends = mask;
    let mut length = 1;
    while length < LENGTH {
        let step = length.min(LENGTH - length);
        ends &= ends << step;
        length += step;
    }
    ends
}

/// A row of bytes of one kind that goes on from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Where the one begins that is not over.
    start: usize,
}

impl Row {
    /// Rows of which nothing before this place is known.
    pub(super) fn at(start: usize) -> Self {
        Self { start }
    }

    /// The bits of the chunk at `at` that are right behind a row of at least so
    /// many bytes.
    #[inline(always)]
    pub(super) fn behind<const LENGTH: u32>(&self, at: usize, kind: u64) -> u64 {
        // The one that began before.
        let first = kind.trailing_ones();
        let is_long = at + first as usize >= self.start + LENGTH as usize;
        let end = u64::from(is_long).checked_shl(first).unwrap_or(0);
        ends_of_rows::<LENGTH>(kind) << 1 & !kind | end
    }

    /// Where the row begins that ends, in the chunk at `at`, before its byte
    /// `end`.
    #[inline(always)]
    pub(super) fn start(&self, at: usize, kind: u64, end: u32) -> usize {
        let others = !kind & ((1 << end) - 1);
        match others {
            0 => self.start,
            _ => at + CHUNK - others.leading_zeros() as usize,
        }
    }

    /// Goes on to the next chunk.
    #[inline(always)]
    pub(super) fn pass(&mut self, at: usize, kind: u64) {
        let open = kind.leading_ones() as usize;
        if open < CHUNK {
            self.start = at + CHUNK - open;
        }
    }
}

/// Which rows have a byte that is marked.
#[derive(Debug, Default)]
pub(super) struct Marked {
    open: bool,
}

impl Marked {
    /// The bits right behind the rows of `kind` in which one of `marks` is, if
    /// they end there. All marks are of the kind.
    #[inline(always)]
    pub(super) fn behind(&mut self, kind: u64, marks: u64) -> u64 {
        // The sum carries from a mark to the first bit that is not of the row.
        let (sum, first) = kind.overflowing_add(marks);
        let (sum, second) = sum.overflowing_add(u64::from(self.open));
        self.open = first | second;
        sum & !kind
    }
}

#[inline(always)]
fn walk_by(text: &[u8], kinds: impl Fn(&[u8; CHUNK]) -> Kinds, visit: &mut impl Visit) {
    let mut at = 0;
    let mut last;
    while let Some(rest) = text.get(at..) {
        let chunk = match rest.first_chunk() {
            Some(chunk) => chunk,
            None => {
                last = [0; CHUNK];
                for (to, from) in last.iter_mut().zip(rest) {
                    *to = *from;
                }
                &last
            }
        };
        at = visit.chunk(at, kinds(chunk));
    }
}

fn kinds(chunk: &[u8; CHUNK]) -> Kinds {
    let mut kinds = Kinds::default();
    let half = |halves: &[u8; 16], half: u8| halves.get(usize::from(half)).copied();
    for (place, byte) in chunk.iter().enumerate() {
        let lower = half(&LOWER_HALVES, byte & 0x0F).unwrap_or(0);
        let sets = lower & half(&UPPER_HALVES, byte >> 4).unwrap_or(0);
        let bit = |of: u8| u64::from(sets & of != 0) << place;
        kinds.digits |= bit(DIGIT);
        kinds.words |= bit(WORD);
        kinds.base64 |= bit(BASE64);
        kinds.hex |= bit(HEX);
        let equal = |other: u8| u64::from(*byte == other) << place;
        kinds.graphic |= u64::from(matches!(byte, b'+'..=0x7F)) << place;
        kinds.backslashes |= equal(b'\\');
        kinds.percents |= equal(b'%');
        kinds.quotes |= equal(b'"');
        kinds.spaces |= equal(b' ');
    }
    kinds
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn walk_avx2(text: &[u8], visit: &mut impl Visit) {
    walk_by(text, |chunk| kinds_avx2(chunk), visit);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn kinds_avx2(chunk: &[u8; CHUNK]) -> Kinds {
    use std::arch::x86_64::*;

    let bytes = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let twice = |halves: &[u8; 16]| {
        let halves = i128::from_le_bytes(*halves);
        let (low, high) = (halves as i64, (halves >> 64) as i64);
        _mm256_setr_epi64x(low, high, low, high)
    };
    let (lower_halves, upper_halves) = (twice(&LOWER_HALVES), twice(&UPPER_HALVES));
    let (words, _) = chunk.as_chunks::<8>();
    let &[a, b, c, d, e, f, g, h] = words else {
        return kinds(chunk);
    };
    let load = |words: [[u8; 8]; 4]| {
        let [a, b, c, d] = words.map(i64::from_le_bytes);
        _mm256_setr_epi64x(a, b, c, d)
    };
    let text = [load([a, b, c, d]), load([e, f, g, h])];
    let sets = text.map(|text| {
        let lower = _mm256_and_si256(text, bytes(0x0F));
        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(text), bytes(0x0F));
        let lower = _mm256_shuffle_epi8(lower_halves, lower);
        _mm256_and_si256(lower, _mm256_shuffle_epi8(upper_halves, upper))
    });
    let mask = |bytes: [__m256i; 2]| {
        let [low, high] = bytes.map(|bytes| u64::from(_mm256_movemask_epi8(bytes).cast_unsigned()));
        low | high << 32
    };
    let of = |set: u8| {
        let zero = _mm256_setzero_si256();
        !mask(sets.map(|sets| _mm256_cmpeq_epi8(_mm256_and_si256(sets, bytes(set)), zero)))
    };
    let equal = |byte: u8| mask(text.map(|text| _mm256_cmpeq_epi8(text, bytes(byte))));
    Kinds {
        digits: of(DIGIT),
        words: of(WORD),
        base64: of(BASE64),
        hex: of(HEX),
        graphic: mask(text.map(|text| _mm256_cmpgt_epi8(text, bytes(b'*')))),
        backslashes: equal(b'\\'),
        percents: equal(b'%'),
        quotes: equal(b'"'),
        spaces: equal(b' '),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl<F: FnMut(usize, Kinds)> Visit for F {
        fn chunk(&mut self, at: usize, kinds: Kinds) -> usize {
            self(at, kinds);
            at + CHUNK
        }
    }

    /// The kinds of all bytes of a text, by the plain way and by this processor's.
    fn both(text: &[u8]) -> (Vec<Kinds>, Vec<Kinds>) {
        let (mut plain, mut own) = (Vec::new(), Vec::new());
        walk_by(text, kinds, &mut |_, kinds| plain.push(kinds));
        walk(text, &mut |_, kinds| own.push(kinds));
        (plain, own)
    }

    #[test]
    fn kinds_of_each_byte() {
        for byte in 0..=u8::MAX {
            let kinds = kinds(&[byte; CHUNK]);
            let all = |is: bool| if is { u64::MAX } else { 0 };
            let word = byte.is_ascii_alphanumeric() || byte == b'_';
            let expected = Kinds {
                digits: all(byte.is_ascii_digit()),
                words: all(word),
                base64: all(word || b"+/-".contains(&byte)),
                hex: all(byte.is_ascii_hexdigit() || byte == b'-'),
                graphic: all((b'+'..=0x7F).contains(&byte)),
                backslashes: all(byte == b'\\'),
                percents: all(byte == b'%'),
                quotes: all(byte == b'"'),
                spaces: all(byte == b' '),
            };
            assert_eq!(kinds, expected, "{byte:#x}");
        }
    }

    proptest! {
        #[test]
        fn this_processor_tells_the_same(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (plain, own) = both(&text);
            prop_assert_eq!(plain.len(), text.len() / CHUNK + 1);
            prop_assert_eq!(plain, own);
        }

        #[test]
        fn rows_are_told_by_their_ends(
            text in proptest::collection::vec("[0-9]{1,9}|[a-z]{1,9}|[0-9]{70}| ", 0..30),
        ) {
            let text = text.concat();
            let mut found = Vec::new();
            let (mut row, mut marked) = (Row::default(), Marked::default());
            walk(text.as_bytes(), &mut |at, kinds: Kinds| {
                let marked = marked.behind(kinds.words, kinds.words & !kinds.digits);
                for end in bits(row.behind::<6>(at, kinds.words) & marked) {
                    found.push(&text[row.start(at, kinds.words, end)..at + end as usize]);
                }
                row.pass(at, kinds.words);
            });
            let expected = text.split(' ').filter(|row| row.len() >= 6 && row.bytes().any(|b| b.is_ascii_lowercase()));
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}

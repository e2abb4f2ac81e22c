//! Base64 within a text: finding what looks like it, and decoding it.

use std::ops::Range;

/// The shortest run of the alphabet that is decoded: sixteen bytes.
pub(super) const MIN_RUN: u32 = 22;

/// The longest run that is decoded whole if there may be text anywhere. Of a longer one it is
/// stretches that look like text.
pub(super) const MAX_SHIFTED: usize = 4096;

/// The length of the blocks in which a longer run is looked at for text.
const BLOCK: usize = 4096;

/// How far apart the places of a block are that must look like text.
const BLOCK_STEP: usize = 1024;

/// The decoded bytes that must look like text at each of those places.
const PROBE: usize = 24;

/// Decodes `run` as base64 whose first group begins at its first byte, and puts
/// what `map` makes of each byte into `out`. What is left of an unfinished group
/// is decoded too.
pub(super) fn decode(run: &[u8], out: &mut Vec<u8>, map: impl Fn(u8) -> u8) {
    out.clear();
    out.reserve(run.len() / 4 * 3 + 3);
    // So much that it stays at hand until it is copied; and less where that is enough, as
    // there may be many runs.
    if run.len() <= 128 {
        decode_by::<128, { 128 / 4 * 3 + SPARE }>(run, out, map);
    } else {
        decode_by::<4096, { 4096 / 4 * 3 + SPARE }>(run, out, map);
    }
}

fn decode_by<const PART: usize, const ROOM: usize>(
    run: &[u8],
    out: &mut Vec<u8>,
    map: impl Fn(u8) -> u8,
) {
    let mut room = [0; ROOM];
    for part in run.chunks(PART) {
        let decoded = decode_part(part, &mut room);
        for byte in &mut *decoded {
            *byte = map(*byte);
        }
        out.extend_from_slice(decoded);
    }
}

/// Room that decoding needs besides that for what it decodes.
const SPARE: usize = 8;

fn decode_part<'a>(run: &[u8], room: &'a mut [u8]) -> &'a mut [u8] {
    let wide = decode_wide(run, room);
    let mut written = wide / 4 * 3;
    let (words, rest) = run.get(wide..).unwrap_or_default().as_chunks::<8>();
    for word in words {
        if let Some(place) = room.get_mut(written..written + 8) {
            place.copy_from_slice(&six_bytes(word).to_le_bytes());
        }
        written += 6;
    }
    for group in rest.chunks(4) {
        let shifts = [58, 52, 46, 40];
        let sextets = group.iter().zip(shifts);
        let group_bits = sextets.fold(0, |sum, (byte, shift)| sum | bits(*byte, shift));
        if let Some(place) = room.get_mut(written..written + 8) {
            place.copy_from_slice(&group_bits.to_be_bytes());
        }
        // A group of n characters holds n - 1 whole bytes.
        written += group.len() - 1;
    }
    room.get_mut(..written).unwrap_or_default()
}

/// Decodes as much as can be decoded many groups at once, and returns how much
/// of `run` that is. `out` has room for all.
fn decode_wide(run: &[u8], out: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if run.len() >= WIDE && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only thing that is asked of it.
        return unsafe { decode_avx2(run, out) };
    }
    let _no_other_way = (run, out);
    0
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn decode_avx2(run: &[u8], out: &mut [u8]) -> usize {
    use std::arch::x86_64::*;

    const GROUPS: usize = WIDE / 4 * 3;
    let bytes = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    // What has to be added to a character to get its sextet, by the upper half
    // of its byte: `/` and the like, digits, upper case, lower case.
    let shifts = _mm256_setr_epi8(
        0, 0, 16, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0, //
        0, 0, 16, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0,
    );
    // Three bytes of each four, the other way round.
    let order = _mm256_setr_epi8(
        2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, //
        2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1,
    );
    let halves = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);

    let mut done = 0;
    for (from, to) in run
        .as_chunks::<WIDE>()
        .0
        .iter()
        .zip(out.as_chunks_mut::<GROUPS>().0)
    {
        let (words, _) = from.as_chunks::<8>();
        let [a, b, c, d] = words else { break };
        let text = _mm256_setr_epi64x(
            i64::from_le_bytes(*a),
            i64::from_le_bytes(*b),
            i64::from_le_bytes(*c),
            i64::from_le_bytes(*d),
        );
        let upper = _mm256_and_si256(_mm256_srli_epi32::<4>(text), bytes(0x0F));
        // Those that the table has wrong.
        let mend =
            |character, by| _mm256_and_si256(_mm256_cmpeq_epi8(text, bytes(character)), bytes(by));
        let mended = _mm256_or_si256(
            _mm256_or_si256(mend(b'+', 3), mend(b'-', 1)),
            mend(b'_', 33),
        );
        let shift = _mm256_add_epi8(_mm256_shuffle_epi8(shifts, upper), mended);
        let sextets = _mm256_add_epi8(text, shift);
        let pairs = _mm256_maddubs_epi16(sextets, _mm256_set1_epi32(0x0140_0140));
        let groups = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_1000));
        let packed = _mm256_shuffle_epi8(groups, order);
        let packed = _mm256_permutevar8x32_epi32(packed, halves);
        let (parts, _) = to.as_chunks_mut::<8>();
        if let [first, second, third] = parts {
            *first = _mm256_extract_epi64::<0>(packed).to_le_bytes();
            *second = _mm256_extract_epi64::<1>(packed).to_le_bytes();
            *third = _mm256_extract_epi64::<2>(packed).to_le_bytes();
        }
        done += WIDE;
    }
    done
}

/// Calls `visit` with each stretch of a long run in which there is text. A
/// block of other data, such as an image's, is passed over.
pub(super) fn texts(run: &[u8], mut visit: impl FnMut(Range<usize>)) {
    let mut start = None;
    for (place, block) in run.chunks(BLOCK).enumerate() {
        let has_text = block.chunks(BLOCK_STEP).any(begins_like_text);
        let at = place * BLOCK;
        if has_text {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            visit(start..at);
        }
    }
    if let Some(start) = start {
        visit(start..run.len());
    }
}

/// Whether there may be text anywhere in what the run decodes to: a piece of sixteen bytes
/// without control characters is not passed over. Other data in base64 letters, such as
/// identifiers, hardly ever has any.
pub(super) fn may_have_text(run: &[u8]) -> bool {
    let (words, _) = run.as_chunks();
    let mut words = words.iter().enumerate();
    words.any(|(nth, word)| may_be_text(six_bytes(word)) && may_go_on(run, nth * 8))
}

/// Whether there may be twelve bytes of text, six of which begin with this character.
#[cold]
fn may_go_on(run: &[u8], at: usize) -> bool {
    let may_be = |at: usize| {
        let word = run.get(at..).and_then(<[u8]>::first_chunk);
        word.is_some_and(|word| may_be_text(six_bytes(word)))
    };
    may_be(at + 8)
        || at.checked_sub(8).is_some_and(may_be)
        || at.checked_sub(4).is_some_and(may_be) && may_be(at + 4)
}

/// Whether what the run decodes to begins like text.
fn begins_like_text(run: &[u8]) -> bool {
    // What most other data does not even begin like.
    let may_be = |word| may_be_text(six_bytes(word));
    run.first_chunk().is_none_or(may_be) && decodes_to_text(run)
}

/// The six bytes that eight characters stand for, the first one lowest.
#[inline]
fn six_bytes([a, b, c, d, e, f, g, h]: &[u8; 8]) -> u64 {
    let first = bits(*a, 58) | bits(*b, 52) | bits(*c, 46) | bits(*d, 40);
    let second = bits(*e, 34) | bits(*f, 28) | bits(*g, 22) | bits(*h, 16);
    (first | second).swap_bytes()
}

fn decodes_to_text(run: &[u8]) -> bool {
    let run = run.get(..PROBE / 3 * 4).unwrap_or(run);
    looks_like_text(decode_part(run, &mut [0; PROBE + SPARE]))
}

/// Whether the lower six bytes may be those that a text begins with, the lowest
/// first: none of them a control character, and those beyond ASCII in an order in
/// which they may be. The first three may be the end of a character.
#[inline]
fn may_be_text(bytes: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    const SIX: u64 = 0xFFFF_FFFF_FFFF;
    let low = bytes & !HIGH;
    let at_least = |least: u8| low + ONES * u64::from(0x80 - least);
    // White space is between the two.
    let control = !bytes & (!at_least(b' ') & at_least(0x0E) | !at_least(b'\t'));
    let beyond = bytes & HIGH;
    let first = beyond & bytes << 1;
    let later = beyond & !(bytes << 1);
    let alone = first << 8 & !later | later & !(beyond << 8) & !0xFF_FFFF;
    (control & HIGH | alone) & SIX == 0
}

fn looks_like_text(bytes: &[u8]) -> bool {
    // A piece may begin in the middle of a character.
    let skip = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xC0 == 0x80);
    let text = bytes.get(skip.count()..).unwrap_or_default();
    let control = |byte: &u8| *byte < b' ' && !byte.is_ascii_whitespace();
    if text.iter().any(control) {
        return false;
    }
    match std::str::from_utf8(text) {
        Ok(_) => true,
        // Cut within a character at the end, which is no mistake.
        Err(error) => error.error_len().is_none(),
    }
}

/// A sextet that is none.
const INVALID: u8 = 64;

static SEXTETS: [u8; 256] = sextets();

const fn sextets() -> [u8; 256] {
    let mut table = [INVALID; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < 64 {
        table[alphabet[value as usize] as usize] = value;
        value += 1;
    }
    // The alphabet for URLs differs in the last two.
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
}

fn sextet(byte: u8) -> u8 {
    SEXTETS[usize::from(byte)]
}

/// The character's six bits, that many places to the left.
#[inline]
fn bits(byte: u8, shift: u32) -> u64 {
    u64::from(sextet(byte) & 63) << shift
}

/// How many characters are decoded at once.
const WIDE: usize = 32;

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::super::parts::{Part, Wanted, parts};
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let wanted = Wanted {
            base64: true,
            digits: false,
        };
        parts(text.as_bytes(), wanted, |part| {
            if let Part::Base64(run) = part {
                found.push(&text[run]);
            }
        });
        found
    }

    #[test]
    fn runs_of_the_alphabet() {
        let check = |text: &str, expected: &[&str]| assert_eq!(found(text), expected, "{text}");
        check("a few words of plain text and no more", &[]);
        check(
            "x aGVsbG8gd29ybGQhIGhlbGxv y",
            &["aGVsbG8gd29ybGQhIGhlbGxv"],
        );
        check("0123456789abcdef-0123456789abcdef", &[]);
        check(
            "\"aGVsbG8gd29ybGQhIGhlbGxv==\"",
            &["aGVsbG8gd29ybGQhIGhlbGxv"],
        );
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            bytes in proptest::collection::vec(any::<u8>(), 17..200), before in "[a-z ]{0,30} ",
        ) {
            for encoded in [STANDARD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
                let text = format!("{before}{encoded} after");
                let run = encoded.trim_end_matches('=');
                let hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
                prop_assert!(found(&text).contains(&run) || run.bytes().all(hex));
                let mut decoded = Vec::new();
                decode(run.as_bytes(), &mut decoded, |byte| byte);
                prop_assert_eq!(&decoded, &bytes);
            }
        }

        #[test]
        fn what_looks_like_text_is_not_passed_over(
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), 0x80_u8..=0xFF, b'\t'..=b'~'], 6,
            ),
        ) {
            let mut word = [0; 8];
            word[..6].copy_from_slice(&bytes);
            prop_assert!(!looks_like_text(&bytes) || may_be_text(u64::from_le_bytes(word)));
        }

        #[test]
        fn no_text_is_passed_over(
            before in proptest::collection::vec(any::<u8>(), 0..40),
            text in "\\PC{16,40}",
            after in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let run = STANDARD.encode([&before, text.as_bytes(), &after].concat());
            prop_assert!(may_have_text(run.trim_end_matches('=').as_bytes()));
        }

        #[test]
        fn encoded_text_begins_like_text(text in "\\PC{8,80}", cut in 0_usize..3) {
            let run = STANDARD.encode(&text.as_bytes()[cut..]);
            prop_assert!(begins_like_text(run.trim_end_matches('=').as_bytes()));
        }
    }
}

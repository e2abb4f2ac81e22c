//! Base64 within a text: finding what looks like it, and decoding it.

use std::ops::Range;

/// The shortest run of the alphabet that is decoded: sixteen bytes.
pub(super) const MIN_RUN: usize = 22;

/// How far apart the places are that are looked at. A run of the shortest
/// length has eight bytes at one of them.
const STRIDE: usize = MIN_RUN - 7;

/// The longest run that is decoded at each of the four places where a group may
/// begin, if it looks like text there. A longer one is taken to begin with one.
pub(super) const MAX_SHIFTED: usize = 4096;

/// The length of the blocks in which a longer run is looked at for text.
const BLOCK: usize = 4096;

/// How far apart the places of a block are that must look like text.
const BLOCK_STEP: usize = 1024;

/// The decoded bytes that must look like text at each of those places.
const PROBE: usize = 24;

/// Calls `visit` with each run of base64 characters, of either alphabet, that is
/// long enough.
pub(super) fn runs(text: &[u8], mut visit: impl FnMut(Range<usize>)) {
    let word_at = |at: usize| text.get(at..).and_then(|rest| rest.first_chunk());
    let may_be_at = |at: usize| word_at(at).is_some_and(|word| may_be_run(*word));
    let mut at = 0;
    while let Some(word) = word_at(at) {
        // Such a run has seven bytes more on one side of it, or on the other.
        if !may_be_run(*word) || !(may_be_at(at + 7) || at.checked_sub(7).is_some_and(may_be_at)) {
            at += STRIDE;
            continue;
        }
        let (start, end) = (start_of_run(text, at), end_of_run(text, at));
        if end >= start + MIN_RUN && !is_hex(text.get(start..end).unwrap_or_default()) {
            visit(start..end);
        }
        // No run begins before the byte that ended this one.
        at = (at + STRIDE).max(end + 1);
    }
}

/// Where the run begins that reaches up to `at`.
fn start_of_run(text: &[u8], at: usize) -> usize {
    let mut rest = text.get(..at).unwrap_or_default();
    while let Some((before, word)) = rest.split_last_chunk() {
        let strangers = strangers(*word);
        if strangers != 0 {
            return rest.len() - strangers.leading_zeros() as usize / 8;
        }
        rest = before;
    }
    let in_run = |byte: &&u8| sextet(**byte) < INVALID;
    rest.len() - rest.iter().rev().take_while(in_run).count()
}

/// Where the run ends that begins at `at` or before.
fn end_of_run(text: &[u8], at: usize) -> usize {
    let rest = |at: usize| text.get(at..).unwrap_or_default();
    let mut end = at;
    while let Some(word) = rest(end).first_chunk() {
        let strangers = strangers(*word);
        if strangers != 0 {
            return end + strangers.trailing_zeros() as usize / 8;
        }
        end += word.len();
        // Most runs are short.
        if end > at + WIDE {
            end += skip_wide(rest(end));
        }
    }
    let in_run = |byte: &&u8| sextet(**byte) < INVALID;
    end + rest(end).iter().take_while(in_run).count()
}

/// Decodes `run` as base64 whose first group begins at its first byte. What is
/// left of an unfinished group is decoded too.
pub(super) fn decode(run: &[u8], out: &mut Vec<u8>) {
    out.resize(run.len() / 4 * 3 + 8, 0);
    let wide = decode_wide(run, out);
    let mut written = wide / 4 * 3;
    let (pairs, rest) = run.get(wide..).unwrap_or_default().as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in pairs {
        let first = bits(*a, 58) | bits(*b, 52) | bits(*c, 46) | bits(*d, 40);
        let second = bits(*e, 34) | bits(*f, 28) | bits(*g, 22) | bits(*h, 16);
        if let Some(place) = out.get_mut(written..written + 8) {
            place.copy_from_slice(&(first | second).to_be_bytes());
        }
        written += 6;
    }
    out.truncate(written);
    for group in rest.chunks(4) {
        let shifts = [58, 52, 46, 40];
        let sextets = group.iter().zip(shifts);
        let group_bits = sextets.fold(0, |sum, (byte, shift)| sum | bits(*byte, shift));
        // A group of n characters holds n - 1 whole bytes.
        let bytes = group_bits.to_be_bytes();
        out.extend_from_slice(bytes.get(..group.len() - 1).unwrap_or_default());
    }
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
pub(super) fn texts(run: &[u8], scratch: &mut Vec<u8>, mut visit: impl FnMut(Range<usize>)) {
    let mut start = None;
    for (place, block) in run.chunks(BLOCK).enumerate() {
        let has_text = block
            .chunks(BLOCK_STEP)
            .any(|part| begins_like_text(part, scratch));
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

/// Whether what the run decodes to begins like text. Other data in base64
/// letters, such as identifiers, hardly ever does.
pub(super) fn begins_like_text(run: &[u8], scratch: &mut Vec<u8>) -> bool {
    // What most other data does not even begin like.
    let [a, b, c, d, e, f, g, h, ..] = *run else {
        return decodes_to_text(run, scratch);
    };
    let first = bits(a, 58) | bits(b, 52) | bits(c, 46) | bits(d, 40);
    let second = bits(e, 34) | bits(f, 28) | bits(g, 22) | bits(h, 16);
    let [first, second, third, fourth, fifth, sixth, ..] = (first | second).to_be_bytes();
    looks_like_text(&[first, second, third, fourth, fifth, sixth])
        && decodes_to_text(run.get(..PROBE / 3 * 4).unwrap_or(run), scratch)
}

fn decodes_to_text(run: &[u8], scratch: &mut Vec<u8>) -> bool {
    decode(run, scratch);
    looks_like_text(scratch)
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

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

/// Whether no byte is below `+`, the first of the alphabet, nor beyond ASCII:
/// most words of a text end sooner than eight bytes.
fn may_be_run(word: [u8; 8]) -> bool {
    let word = u64::from_le_bytes(word);
    (word.wrapping_sub(ONES * b'+' as u64) | word) & HIGH == 0
}

/// The highest bit of each byte that is not in the alphabet.
fn strangers(word: [u8; 8]) -> u64 {
    let word = u64::from_le_bytes(word);
    let low = word & !HIGH;
    let within = |word: u64, first: u8, last: u8| {
        let not_below = word + ONES * u64::from(0x80 - first);
        let beyond = word + ONES * u64::from(0x7F - last);
        not_below & !beyond
    };
    let letters = within(low | ONES << 5, b'a', b'z');
    let digits = within(low, b'/', b'9');
    let signs = within(low, b'+', b'+') | within(low, b'-', b'-') | within(low, b'_', b'_');
    !((letters | digits | signs) & !word) & HIGH
}

/// How many bytes are compared at once.
const WIDE: usize = 32;

/// How much of a run a text begins with, in whole rows of bytes.
fn skip_wide(text: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only thing that is asked of it.
        return unsafe { skip_avx2(text) };
    }
    skip(text)
}

/// [`skip`] for a processor that has more.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn skip_avx2(text: &[u8]) -> usize {
    skip(text)
}

#[inline(always)]
fn skip(text: &[u8]) -> usize {
    let (rows, _) = text.as_chunks();
    let whole = rows.iter().take_while(|row| all_in_alphabet(row));
    whole.count() * WIDE
}

/// Written so that many bytes are compared at once.
#[inline(always)]
fn all_in_alphabet(bytes: &[u8; WIDE]) -> bool {
    let mut any = 0;
    for byte in bytes {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let digit = byte.wrapping_sub(b'/') < 11;
        any |= u8::from(!(letter | digit | (*byte == b'+') | (*byte == b'-') | (*byte == b'_')));
    }
    any == 0
}

fn is_hex(run: &[u8]) -> bool {
    let is_hex = |chunk: &[u8; 16]| {
        let strangers = chunk.iter().map(|byte| {
            let letter = (byte | 0x20).wrapping_sub(b'a') < 6;
            u8::from(!(letter | (byte.wrapping_sub(b'0') < 10) | (*byte == b'-')))
        });
        strangers.fold(0, |any, stranger| any | stranger) == 0
    };
    // Runs are longer than that.
    let (chunks, _) = run.as_chunks();
    chunks.iter().all(is_hex) && run.last_chunk().is_some_and(is_hex)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        runs(text.as_bytes(), |run| found.push(&text[run]));
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

    /// The runs, byte by byte.
    fn found_plainly(text: &str) -> Vec<&str> {
        let runs = text.split(|c: char| u8::try_from(c).map_or(INVALID, sextet) == INVALID);
        let hex = |run: &str| {
            run.bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        };
        runs.filter(|run| run.len() >= MIN_RUN && !hex(run))
            .collect()
    }

    proptest! {
        #[test]
        fn every_run_is_found(
            text in "([a-zA-Z0-9/_+-]{1,30}|[a-f0-9-]{16,40}|[a-zA-Z0-9]{60,90}|[ .\u{e9}:@\\[`{]){0,12}",
        ) {
            prop_assert_eq!(found(&text), found_plainly(&text));
        }

        #[test]
        fn what_was_encoded_is_decoded(
            bytes in proptest::collection::vec(any::<u8>(), 17..200), before in "[a-z ]{0,30} ",
        ) {
            for encoded in [STANDARD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
                let text = format!("{before}{encoded} after");
                let run = encoded.trim_end_matches('=');
                prop_assert!(found(&text).contains(&run) || is_hex(run.as_bytes()));
                let mut decoded = Vec::new();
                decode(run.as_bytes(), &mut decoded);
                prop_assert_eq!(&decoded, &bytes);
            }
        }

        #[test]
        fn encoded_text_begins_like_text(text in "\\PC{8,80}", cut in 0_usize..3) {
            let run = STANDARD.encode(&text.as_bytes()[cut..]);
            prop_assert!(begins_like_text(run.trim_end_matches('=').as_bytes(), &mut Vec::new()));
        }
    }
}

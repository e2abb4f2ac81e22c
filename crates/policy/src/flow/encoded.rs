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
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        if !may_be_run(*word) {
            at += STRIDE;
            continue;
        }
        let (before, after) = text.split_at(at);
        let in_run = |byte: &&u8| sextet(**byte) < INVALID;
        let start = at - before.iter().rev().take_while(in_run).count();
        let end = at + after.iter().take_while(in_run).count();
        if end - start >= MIN_RUN && !is_hex(text.get(start..end).unwrap_or_default()) {
            visit(start..end);
        }
        // No run begins before the byte that ended this one.
        at = (at + STRIDE).max(end + 1);
    }
}

/// Decodes `run` as base64 whose first group begins at its first byte. What is
/// left of an unfinished group is decoded too.
pub(super) fn decode(run: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.resize(run.len() / 4 * 3 + 8, 0);
    let (pairs, rest) = run.as_chunks::<8>();
    let mut written = 0;
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
    let probe = run.get(..PROBE / 3 * 4).unwrap_or(run);
    decode(probe, scratch);
    // A piece may begin in the middle of a character.
    let skip = scratch
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xC0 == 0x80);
    let skip = skip.count();
    let text = scratch.get(skip..).unwrap_or_default();
    let control = |byte: &u8| *byte < b' ' && !byte.is_ascii_whitespace();
    match std::str::from_utf8(text) {
        Ok(_) => !text.iter().any(control),
        // Cut within a character at the end, which is no mistake.
        Err(error) => error.error_len().is_none() && !text.iter().any(control),
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

/// Whether no byte is below `+`, the first of the alphabet: most words of a
/// text end sooner than eight bytes.
fn may_be_run(word: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(word);
    word.wrapping_sub(ONES * b'+' as u64) & !word & (ONES << 7) == 0
}

fn is_hex(run: &[u8]) -> bool {
    run.iter()
        .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
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

    proptest! {
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

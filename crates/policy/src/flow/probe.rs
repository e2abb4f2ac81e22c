//! Many fingerprints of a text at once: which of them are probably known.
//!
//! This is what a look at arguments spends most of its time on. It is done in
//! steps, so that the memory of the filter, which is far away, is asked for many
//! places at the same time; and with one bit for each place, as a branch would be
//! taken the wrong way too often.

use super::grams::{Filter, GRAM, Key};

/// How many places are looked up together.
pub(super) const BLOCK: usize = 256;

/// How many places have their bits in one word.
const ROW: usize = 64;

/// One bit for each place, the lowest for the first.
pub(super) type Places = [u64; BLOCK / ROW];

/// Of the places of a text that are `STRIDE` bytes apart, as many as are looked up
/// together: those whose fingerprints are probably known.
pub(super) fn known<const STRIDE: usize>(key: Key, filter: &Filter, text: &[u8]) -> Places {
    #[cfg(target_arch = "x86_64")]
    if text.len() >= BLOCK * STRIDE + WINDOW && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, the only thing that is asked of it.
        return unsafe { known_avx2::<STRIDE>(key, filter, text) };
    }
    let windows = text.windows(GRAM).step_by(STRIDE).take(BLOCK);
    let windows = windows.filter_map(<[u8]>::first_chunk);
    let mut known = Places::default();
    for (place, window) in windows.enumerate() {
        let gram = key.window(window);
        if let Some(known) = known.get_mut(place / ROW) {
            *known |= u64::from(filter.has(gram)) << (place % ROW);
        }
    }
    known
}

/// What is read for a fingerprint at once, more than there is in it.
const WINDOW: usize = 16;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn known_avx2<const STRIDE: usize>(key: Key, filter: &Filter, text: &[u8]) -> Places {
    use std::arch::x86_64::*;

    use super::grams::{BITS, CASE};

    const FOURS: usize = ROW / 4;
    // Without closures that go through other functions, which would not become one with this.
    let all = |value: u64| _mm256_set1_epi64x(value.cast_signed());
    let split = |grams: __m256i| {
        [
            _mm256_extract_epi64::<0>(grams).cast_unsigned(),
            _mm256_extract_epi64::<1>(grams).cast_unsigned(),
            _mm256_extract_epi64::<2>(grams).cast_unsigned(),
            _mm256_extract_epi64::<3>(grams).cast_unsigned(),
        ]
    };
    let Key([a, b, c]) = key;
    // Nothing above, or the compiler would multiply by that, too.
    let low = |part: u64| all(part & u64::from(u32::MAX));
    let lower = [low(a), low(b), low(c)];
    let upper = [all(a >> 32), all(b >> 32), all(c >> 32)];
    let case = all(u64::from(CASE) << 32 | u64::from(CASE));
    let four_grams = |at: usize| {
        let text = text.get(at..at + 3 * STRIDE + WINDOW).unwrap_or_default();
        let windows = |one: usize, other: usize| {
            _mm256_or_si256(
                _mm256_set_m128i(window(text, other), window(text, one)),
                case,
            )
        };
        let (even, odd) = (windows(0, 2 * STRIDE), windows(STRIDE, 3 * STRIDE));
        let first = _mm256_unpacklo_epi64(even, odd);
        let second = _mm256_srli_epi64::<32>(first);
        let third = _mm256_unpackhi_epi64(even, odd);
        let sum = |key: [__m256i; 3]| {
            let [a, b, c] = key;
            let sum = _mm256_add_epi64(_mm256_mul_epu32(first, a), _mm256_mul_epu32(second, b));
            _mm256_add_epi64(sum, _mm256_mul_epu32(third, c))
        };
        _mm256_add_epi64(sum(lower), _mm256_slli_epi64::<32>(sum(upper)))
    };
    let four_known = |grams: __m256i| {
        let [a, b, c, d] = split(grams);
        let [a, b] = [filter.word(a).cast_signed(), filter.word(b).cast_signed()];
        let [c, d] = [filter.word(c).cast_signed(), filter.word(d).cast_signed()];
        let words = _mm256_setr_epi64x(a, b, c, d);
        // The bit that is asked for becomes the highest one.
        let is_set = |shift: __m256i| _mm256_sllv_epi64(words, _mm256_andnot_si256(shift, all(63)));
        let one = is_set(_mm256_srli_epi64::<{ BITS[0] as i32 }>(grams));
        let other = is_set(_mm256_srli_epi64::<{ BITS[1] as i32 }>(grams));
        let both = _mm256_castsi256_pd(_mm256_and_si256(one, other));
        u64::from(_mm256_movemask_pd(both).cast_unsigned())
    };

    let mut known = Places::default();
    // While the words of one row are on their way, those of the row before are looked at.
    let mut rows = [[_mm256_setzero_si256(); FOURS]; 2];
    for step in 0..=known.len() {
        if step < known.len()
            && let Some(row) = rows.get_mut(step % 2)
        {
            for (nth, grams) in row.iter_mut().enumerate() {
                *grams = four_grams((step * ROW + nth * 4) * STRIDE);
                for gram in split(*grams) {
                    filter.fetch(gram);
                }
            }
        }
        if let Some(before) = step.checked_sub(1)
            && let (Some(row), Some(known)) = (rows.get(before % 2), known.get_mut(before))
        {
            for (nth, grams) in row.iter().enumerate() {
                *known |= four_known(*grams) << (nth * 4);
            }
        }
    }
    known
}

/// The bytes of a text from a place on; nothing beyond its end.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn window(text: &[u8], at: usize) -> std::arch::x86_64::__m128i {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_setzero_si128};

    match text.get(at..).and_then(<[u8]>::first_chunk::<WINDOW>) {
        // SAFETY: as many bytes are read as there are.
        Some(window) => unsafe { _mm_loadu_si128(window.as_ptr().cast()) },
        // SAFETY: all processors of this kind have it.
        None => unsafe { _mm_setzero_si128() },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn this_processor_knows_the_same(
            text in proptest::collection::vec(any::<u8>(), 13 * BLOCK - 40..13 * BLOCK + 40),
            learnt in proptest::collection::vec(0_usize..BLOCK, 0..40),
        ) {
            let key = Key::new();
            let mut filter = Filter::with_room(1_000).expect("memory");
            for place in learnt {
                let Some(gram) = key.gram(&text, 13 * place) else { continue };
                filter.insert(gram);
            }
            let check = |stride: usize, known: Places| {
                for place in 0..BLOCK {
                    let gram = key.gram(&text, stride * place);
                    let expected = gram.is_some_and(|gram| filter.has(gram));
                    let known = known[place / ROW] >> (place % ROW) & 1 != 0;
                    prop_assert_eq!(known, expected, "{} by {}", place, stride);
                }
                Ok(())
            };
            check(13, known::<13>(key, &filter, &text))?;
            check(5, known::<5>(key, &filter, &text))?;
        }
    }
}

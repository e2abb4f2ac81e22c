//! Many fingerprints of a text at once: which of them are probably known.
//!
//! This is what a look at arguments spends most of its time on. It is done in
//! steps, so that the memory of the filter, which is far away, is asked for many
//! places at the same time; and with one bit for each place, as a branch would be
//! taken the wrong way too often.

use super::grams::{Filter, GRAM, Key};

/// How many places are looked up together.
pub(super) const BLOCK: usize = 256;

/// One bit for each place, the lowest for the first.
pub(super) type Places = [u64; BLOCK / 64];

/// Of the places of a text that are `STRIDE` bytes apart, as many as are looked up
/// together: those whose fingerprints are probably known.
pub(super) fn known<const STRIDE: usize>(key: Key, filter: &Filter, text: &[u8]) -> Places {
    #[cfg(target_arch = "x86_64")]
    if STRIDE >= GRAM
        && let Some(windows) = text.as_chunks().0.first_chunk()
        && std::arch::is_x86_feature_detected!("avx2")
    {
        // SAFETY: the processor has AVX2, the only thing that is asked of it.
        return unsafe { known_avx2::<STRIDE>(key, filter, windows) };
    }
    let windows = text.windows(GRAM).step_by(STRIDE).take(BLOCK);
    let windows = windows.filter_map(<[u8]>::first_chunk);
    let mut known = Places::default();
    for (place, window) in windows.enumerate() {
        let gram = key.window(window);
        if let Some(known) = known.get_mut(place / 64) {
            *known |= u64::from(filter.has(gram)) << (place % 64);
        }
    }
    known
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn known_avx2<const STRIDE: usize>(
    key: Key,
    filter: &Filter,
    windows: &[[u8; STRIDE]; BLOCK],
) -> Places {
    use std::arch::x86_64::*;

    use super::grams::{BITS, CASE};

    let all = |value: u64| _mm256_set1_epi64x(value.cast_signed());
    let four = |values: [u64; 4]| {
        let [a, b, c, d] = values.map(u64::cast_signed);
        _mm256_setr_epi64x(a, b, c, d)
    };
    let lower = key.0.map(all);
    let upper = key.0.map(|part| all(part >> 32));
    let case = all(u64::from(CASE) << 32 | u64::from(CASE));

    let mut grams = [0; BLOCK];
    let (fours, _) = windows.as_chunks::<4>();
    for (grams, windows) in grams.as_chunks_mut::<4>().0.iter_mut().zip(fours) {
        let eight = |from: usize| {
            four(windows.each_ref().map(|window| {
                let bytes = window.get(from..).and_then(<[u8]>::first_chunk);
                u64::from_le_bytes(bytes.copied().unwrap_or_default())
            }))
        };
        let first = _mm256_or_si256(eight(0), case);
        let second = _mm256_srli_epi64::<32>(first);
        let third = _mm256_srli_epi64::<32>(_mm256_or_si256(eight(4), case));
        let sum = |key: [__m256i; 3]| {
            let [a, b, c] = key;
            let sum = _mm256_add_epi64(_mm256_mul_epu32(first, a), _mm256_mul_epu32(second, b));
            _mm256_add_epi64(sum, _mm256_mul_epu32(third, c))
        };
        let sums = _mm256_add_epi64(sum(lower), _mm256_slli_epi64::<32>(sum(upper)));
        *grams = [
            _mm256_extract_epi64::<0>(sums),
            _mm256_extract_epi64::<1>(sums),
            _mm256_extract_epi64::<2>(sums),
            _mm256_extract_epi64::<3>(sums),
        ]
        .map(i64::cast_unsigned);
    }

    let mut words = [0; BLOCK];
    for (word, gram) in words.iter_mut().zip(&grams) {
        *word = filter.word(*gram);
    }

    let mut known = Places::default();
    let (grams, words) = (grams.as_chunks::<4>().0, words.as_chunks::<4>().0);
    let fours = grams.iter().zip(words);
    for (place, (grams, words)) in fours.enumerate() {
        let (grams, words) = (four(*grams), four(*words));
        // The bit that is asked for becomes the highest one.
        let is_set = |shift: __m256i| {
            let shift = _mm256_and_si256(shift, all(63));
            _mm256_sllv_epi64(words, _mm256_sub_epi64(all(63), shift))
        };
        let one = is_set(_mm256_srli_epi64::<{ BITS[0] as i32 }>(grams));
        let other = is_set(_mm256_srli_epi64::<{ BITS[1] as i32 }>(grams));
        let both = _mm256_castsi256_pd(_mm256_and_si256(one, other));
        let both = u64::from(_mm256_movemask_pd(both).cast_unsigned());
        if let Some(known) = known.get_mut(place / 16) {
            *known |= both << (place % 16 * 4);
        }
    }
    known
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
            let known = known::<13>(key, &filter, &text);
            for place in 0..BLOCK {
                let gram = key.gram(&text, 13 * place);
                let expected = gram.is_some_and(|gram| filter.has(gram));
                prop_assert_eq!(known[place / 64] >> (place % 64) & 1 != 0, expected, "{}", place);
            }
        }
    }
}

//! Fingerprints of short pieces of text, and two ways to keep them.

use std::collections::TryReserveError;

/// The length of a fingerprinted piece, in bytes.
pub(super) const GRAM: usize = 12;

/// The fingerprint of the piece that begins at `at`, without regard to case.
#[inline]
pub(super) fn gram(text: &[u8], at: usize) -> Option<u64> {
    let window: &[u8; GRAM] = text.get(at..)?.first_chunk()?;
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *window;
    // One bit is the difference between an upper and a lower case letter. That
    // it makes some signs equal, too, does no harm to a fingerprint.
    let head = u64::from_le_bytes([a, b, c, d, e, f, g, h]) | 0x2020_2020_2020_2020;
    let tail = u64::from(u32::from_le_bytes([i, j, k, l]) | 0x2020_2020);
    Some(mix(head, tail))
}

/// The fingerprint of a number.
pub(super) fn number(value: u64) -> u64 {
    mix(value, 0)
}

#[inline]
fn mix(head: u64, tail: u64) -> u64 {
    let mixed = head.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ tail.wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(29);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// Fingerprints without anything beside them: whether one is in it is asked
/// very often and answered fast, with a yes too many for about one in twenty.
#[derive(Debug, Default)]
pub(super) struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// A filter that stays as good as that for this many fingerprints.
    pub(super) fn with_room(grams: usize) -> Result<Self, TryReserveError> {
        let length = (grams / 8).next_power_of_two().max(1024);
        let mut words = Vec::new();
        words.try_reserve_exact(length)?;
        words.resize(length, 0);
        Ok(Self {
            words,
            shift: u64::BITS - length.trailing_zeros(),
        })
    }

    /// How many fingerprints it has room for.
    pub(super) fn room(&self) -> usize {
        self.words.len() * 8
    }

    #[inline]
    pub(super) fn insert(&mut self, gram: u64) {
        if let Some(word) = self.words.get_mut((gram >> self.shift) as usize) {
            *word |= bits(gram);
        }
    }

    /// Whether it is probably in. "No" is certain.
    #[inline]
    pub(super) fn has(&self, gram: u64) -> bool {
        let bits = bits(gram);
        self.words
            .get((gram >> self.shift) as usize)
            .is_some_and(|word| word & bits == bits)
    }
}

#[inline]
fn bits(gram: u64) -> u64 {
    1 << (gram & 63) | 1 << (gram >> 6 & 63)
}

/// Fingerprints and the results that had them, the first of each tool.
#[derive(Debug, Default)]
pub(super) struct Prints {
    /// The upper 48 bits of a fingerprint and the result's number plus one.
    slots: Vec<u64>,
    used: usize,
}

/// The bits of a slot that hold the result's number.
const RESULT: u64 = 0xFFFF;

/// The most slots that are looked at for one fingerprint. Fingerprints made to
/// meet in one place must not make this slow.
const MAX_PROBES: usize = 64;

impl Prints {
    /// Prints with room for this many, and some.
    pub(super) fn with_room(grams: usize) -> Self {
        Self {
            slots: vec![0; (grams + grams / 2).max(64)],
            used: 0,
        }
    }

    /// Adds a fingerprint of `result`, unless a result that is its `same` has
    /// it. `false` if there is no place for it.
    pub(super) fn insert(&mut self, gram: u64, result: u16, same: impl Fn(u16) -> bool) -> bool {
        if self.used * 10 >= self.slots.len() * 7 {
            self.grow();
        }
        let slot = gram & !RESULT | (u64::from(result) + 1);
        for place in self.places(gram) {
            let Some(found) = self.slots.get_mut(place) else {
                return false;
            };
            match decoded(*found) {
                None => {
                    *found = slot;
                    self.used += 1;
                    return true;
                }
                Some(held) if *found & !RESULT == gram & !RESULT && same(held) => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// The results that have this fingerprint, in the order they were added.
    pub(super) fn find(&self, gram: u64) -> impl Iterator<Item = u16> {
        self.places(gram)
            .map_while(|place| self.slots.get(place).filter(|slot| **slot != 0))
            .filter(move |slot| **slot & !RESULT == gram & !RESULT)
            .filter_map(|slot| decoded(*slot))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    fn places(&self, gram: u64) -> impl Iterator<Item = usize> + use<> {
        let length = self.slots.len();
        let first = (u128::from(gram & !RESULT) * length as u128) >> 64;
        let first = usize::try_from(first).unwrap_or(0);
        (first..first + MAX_PROBES.min(length)).map(move |place| {
            if place < length {
                place
            } else {
                place - length
            }
        })
    }

    fn grow(&mut self) {
        let mut grown = Self::with_room(self.slots.len().max(64));
        // From an empty slot on, round the end, those of one fingerprint are met
        // in the order in which they were added.
        let empty = self.slots.iter().position(|slot| *slot == 0);
        let (end, start) = self.slots.split_at(empty.unwrap_or(0));
        for slot in start.iter().chain(end) {
            if let Some(result) = decoded(*slot) {
                grown.insert(*slot & !RESULT, result, |_| false);
            }
        }
        *self = grown;
    }
}

fn decoded(slot: u64) -> Option<u16> {
    u16::try_from((slot & RESULT).checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_forgets_nothing_and_is_wrong_seldom() {
        let mut filter = Filter::with_room(10_000).expect("memory");
        for value in 0..10_000 {
            filter.insert(number(value));
        }
        assert!((0..10_000).all(|value| filter.has(number(value))));
        let wrong = (10_000..110_000).filter(|value| filter.has(number(*value)));
        let wrong = wrong.count();
        assert!(wrong < 8_000, "{wrong} of 100,000");
    }

    #[test]
    fn prints_keep_the_first_of_each_kind_in_order() {
        let mut prints = Prints::default();
        for value in 0..1_000 {
            for result in [3, 5, 7] {
                // Five and seven are of one kind.
                assert!(prints.insert(number(value), result, |held| (held > 3) == (result > 3)));
            }
        }
        for value in 0..1_000 {
            assert_eq!(prints.find(number(value)).collect::<Vec<_>>(), [3, 5]);
        }
        assert_eq!(prints.find(number(1_000)).count(), 0);
    }

    #[test]
    fn fingerprints_that_meet_in_one_place_are_refused_and_not_searched_for_ever() {
        let mut prints = Prints::with_room(1_000);
        let inserted = (0..100).filter(|result| prints.insert(1 << 16, *result, |_| false));
        assert_eq!(inserted.count(), MAX_PROBES);
        assert_eq!(prints.find(1 << 16).count(), MAX_PROBES);
    }

    #[test]
    fn case_does_not_matter() {
        assert_eq!(gram(b"Hello, World", 0), gram(b"hELLO, wORLD", 0));
        assert_ne!(gram(b"hello, world", 0), gram(b"hello, worle", 0));
        assert_eq!(gram(b"hello, worl", 0), None);
    }
}

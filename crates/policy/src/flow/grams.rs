//! Fingerprints of short pieces of text, and two ways to keep them.

use std::collections::TryReserveError;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

/// The length of a fingerprinted piece, in bytes.
pub(super) const GRAM: usize = 12;

/// What fingerprints are made with: a number that each four bytes are multiplied
/// by. Drawn by lot, so that nobody can write texts whose fingerprints meet: of any
/// two different pieces, the upper halves of the sums meet once in 2³² lots.
#[derive(Clone, Copy)]
pub(super) struct Key(pub(super) [u64; GRAM / 4]);

/// The difference between an upper and a lower case letter. That it makes some
/// signs equal, too, does no harm to a fingerprint.
pub(super) const CASE: u32 = 0x2020_2020;

impl Key {
    pub(super) fn new() -> Self {
        let lot = RandomState::new();
        Self([1_u8, 2, 3].map(|nth| lot.hash_one(nth)))
    }

    /// The fingerprint of the piece that begins at `at`, without regard to case.
    #[inline]
    pub(super) fn gram(self, text: &[u8], at: usize) -> Option<u64> {
        Some(self.window(text.get(at..)?.first_chunk()?))
    }

    /// The fingerprint of a piece, without regard to case.
    #[inline]
    pub(super) fn window(self, window: &[u8; GRAM]) -> u64 {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *window;
        let words = [[a, b, c, d], [e, f, g, h], [i, j, k, l]];
        self.sum(words.map(|word| u32::from_le_bytes(word) | CASE))
    }

    /// The fingerprint of a number.
    pub(super) fn number(self, value: u64) -> u64 {
        self.sum([value as u32, (value >> 32) as u32, 0])
    }

    #[inline]
    fn sum(self, words: [u32; GRAM / 4]) -> u64 {
        let ([a, b, c], [x, y, z]) = (self.0, words.map(u64::from));
        let sum = a.wrapping_mul(x).wrapping_add(b.wrapping_mul(y));
        sum.wrapping_add(c.wrapping_mul(z))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// Fingerprints without anything beside them: whether one is in it is asked
/// very often and answered fast, with a yes too many for about one in twenty.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// One with nothing in it and no room.
    pub(super) const fn empty() -> Self {
        Self {
            words: Vec::new(),
            shift: 0,
        }
    }

    /// A filter that stays as good as that for this many fingerprints.
    pub(super) fn with_room(grams: usize) -> Result<Self, TryReserveError> {
        let length = Self::length(grams);
        let mut words = Vec::new();
        words.try_reserve_exact(length)?;
        words.resize(length, 0);
        Ok(Self {
            words,
            shift: u64::BITS - length.trailing_zeros(),
        })
    }

    /// How many words there are for this many fingerprints.
    fn length(grams: usize) -> usize {
        (grams / 8).next_power_of_two().max(1024)
    }

    /// Whether one that is made for this many fingerprints would be no larger.
    pub(super) fn has_room(&self, grams: usize) -> bool {
        Self::length(grams) <= self.words.len()
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
        Self::word_has(self.word(gram), gram)
    }

    /// What there is of all fingerprints that are kept beside this one.
    #[inline]
    pub(super) fn word(&self, gram: u64) -> u64 {
        let word = self.words.get((gram >> self.shift) as usize);
        word.copied().unwrap_or(0)
    }

    /// Has the processor bring what [`Self::word`] is about to be asked for.
    #[inline(always)]
    pub(super) fn fetch(&self, gram: u64) {
        fetch(
            self.words
                .as_ptr()
                .wrapping_add((gram >> self.shift) as usize),
        );
    }

    /// [`Self::has`] by [`Self::word`].
    #[inline]
    pub(super) fn word_has(word: u64, gram: u64) -> bool {
        let [one, other] = BITS.map(|bit| word >> (gram >> bit & 63));
        one & other & 1 != 0
    }
}

/// Where in a fingerprint it says which bits of a word are its own. Above is which
/// word, and below what is less by lot.
pub(super) const BITS: [u32; 2] = [31, 37];

#[inline]
fn bits(gram: u64) -> u64 {
    let [one, other] = BITS.map(|bit| 1 << (gram >> bit & 63));
    one | other
}

/// Has the processor bring what is at a place of its memory, wherever that is.
#[inline(always)]
fn fetch(place: *const u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: all processors of this kind have it, and it does nothing where no memory is.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_way = place;
}

/// Fingerprints and one value for each time one was added.
#[derive(Debug, Clone)]
pub(super) struct Prints {
    /// What says of most others that they are not in it, and is nearer at hand.
    filter: Option<Filter>,
    /// The upper 40 bits of a fingerprint and the value plus one.
    slots: Vec<u64>,
    used: usize,
}

/// The bits of a slot that hold the value.
const VALUE: u64 = (1 << 24) - 1;

/// The most slots that are looked at for one fingerprint. In a table that is
/// half full, no row of taken slots is ever that long; many values with one
/// fingerprint must not make this slow.
const MAX_PROBES: usize = 128;

impl Prints {
    /// Prints with room for this many.
    pub(super) fn with_room(grams: usize) -> Self {
        Self {
            filter: None,
            slots: vec![0; (grams * 2).max(64)],
            used: 0,
        }
    }

    /// The same with a filter beside them, if there is memory for it.
    pub(super) fn with_filter(grams: usize) -> Self {
        Self {
            filter: Filter::with_room(grams).ok(),
            ..Self::with_room(grams)
        }
    }

    /// Adds a fingerprint with a value below 2²⁴ - 1, unless it has one that is
    /// its `same`. `false` if there is no place for it.
    pub(super) fn insert(&mut self, gram: u64, value: u32, same: impl Fn(u32) -> bool) -> bool {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = gram & !VALUE | (u64::from(value) + 1);
        for place in self.places(gram) {
            let Some(found) = self.slots.get_mut(place) else {
                return false;
            };
            match decoded(*found) {
                None => {
                    *found = slot;
                    self.used += 1;
                    if let Some(filter) = &mut self.filter {
                        filter.insert(gram);
                    }
                    return true;
                }
                Some(held) if *found & !VALUE == gram & !VALUE && same(held) => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// The values of this fingerprint, in the order they were added.
    pub(super) fn find(&self, gram: u64) -> impl Iterator<Item = u32> {
        self.places(gram)
            .map_while(|place| self.slots.get(place).filter(|slot| **slot != 0))
            .filter(move |slot| **slot & !VALUE == gram & !VALUE)
            .filter_map(|slot| decoded(*slot))
    }

    /// Whether it probably has a value of this fingerprint. "No" is certain.
    #[inline]
    pub(super) fn may_have(&self, gram: u64) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.has(gram))
    }

    /// Has the processor bring what [`Self::find`] looks at first.
    pub(super) fn fetch(&self, gram: u64) {
        fetch(self.slots.as_ptr().wrapping_add(self.first(gram)));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    fn places(&self, gram: u64) -> impl Iterator<Item = usize> + use<> {
        let length = self.slots.len();
        let first = self.first(gram);
        (first..first + MAX_PROBES.min(length)).map(move |place| {
            if place < length {
                place
            } else {
                place - length
            }
        })
    }

    /// Where the slots begin that may be of this fingerprint.
    fn first(&self, gram: u64) -> usize {
        // Fingerprints of what counts up are in a row as well.
        let scattered = (gram & !VALUE ^ gram >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let scattered = (scattered ^ scattered >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let first = (u128::from(scattered) * self.slots.len() as u128) >> 64;
        usize::try_from(first).unwrap_or(0)
    }

    fn grow(&mut self) {
        // Half as much again.
        let room = (self.slots.len() / 4 * 3).max(64);
        let mut grown = match self.filter {
            Some(_) => Self::with_filter(room),
            None => Self::with_room(room),
        };
        // From an empty slot on, round the end, those of one fingerprint are met
        // in the order in which they were added.
        let empty = self.slots.iter().position(|slot| *slot == 0);
        let (end, start) = self.slots.split_at(empty.unwrap_or(0));
        for slot in start.iter().chain(end) {
            if let Some(value) = decoded(*slot) {
                grown.insert(*slot & !VALUE, value, |_| false);
            }
        }
        *self = grown;
    }
}

fn decoded(slot: u64) -> Option<u32> {
    u32::try_from((slot & VALUE).checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_forgets_nothing_and_is_wrong_seldom() {
        let key = Key::new();
        let mut filter = Filter::with_room(10_000).expect("memory");
        for value in 0..10_000 {
            filter.insert(key.number(value));
        }
        assert!((0..10_000).all(|value| filter.has(key.number(value))));
        let wrong = (10_000..110_000).filter(|value| filter.has(key.number(*value)));
        let wrong = wrong.count();
        assert!(wrong < 8_000, "{wrong} of 100,000");
    }

    #[test]
    fn prints_keep_the_first_of_each_kind_in_order() {
        let key = Key::new();
        let mut prints = Prints::with_room(0);
        for number in 0..1_000 {
            for value in [3, 5, 7] {
                // Five and seven are of one kind.
                let same = |held| (held > 3) == (value > 3);
                assert!(prints.insert(key.number(number), value, same));
            }
        }
        for number in 0..1_000 {
            let found: Vec<u32> = prints.find(key.number(number)).collect();
            assert_eq!(found, [3, 5]);
        }
        assert_eq!(prints.find(key.number(1_000)).count(), 0);
    }

    #[test]
    fn many_different_fingerprints_all_have_a_place() {
        let key = Key::new();
        for room in [0, 100_000, 300_000] {
            let mut prints = Prints::with_room(room);
            assert!((0..300_000).all(|number| prints.insert(key.number(number), 0, |_| false)));
        }
    }

    #[test]
    fn fingerprints_that_meet_in_one_place_are_refused_and_not_searched_for_ever() {
        let mut prints = Prints::with_room(1_000);
        let inserted = (0..200).filter(|value| prints.insert(1 << 24, *value, |_| false));
        assert_eq!(inserted.count(), MAX_PROBES);
        assert_eq!(prints.find(1 << 24).count(), MAX_PROBES);
    }

    #[test]
    fn case_does_not_matter() {
        let key = Key::new();
        assert_eq!(key.gram(b"Hello, World", 0), key.gram(b"hELLO, wORLD", 0));
        assert_ne!(key.gram(b"hello, world", 0), key.gram(b"hello, worle", 0));
        assert_eq!(key.gram(b"hello, worl", 0), None);
    }
}

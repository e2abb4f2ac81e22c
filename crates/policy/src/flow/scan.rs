//! The search of one text for pieces of what others than its target said.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::filters::Place;
use super::finding::Side;
use super::grams::{Filter, GRAM};
use super::index::{Index, MIN_PIECE, SAMPLE};
use super::kinds::bits;
use super::probe::{BLOCK, known};

mod own;
mod pieces;
#[cfg(test)]
mod plain;

use pieces::WIDE;

/// Texts longer than this, in bytes of normal form, are looked at in wider steps.
pub(super) const LONG: usize = 128 << 10;

/// The shortest piece that is surely found in long texts.
pub(super) const MIN_PIECE_IN_LONG: usize = 24;

/// Texts longer than this are looked at in steps that are wider still: a call with as much waits
/// for a look that takes a twentieth of it or less.
pub(super) const VERY_LONG: usize = 512 << 10;

/// The shortest piece that is surely found in those.
pub(super) const MIN_PIECE_IN_VERY_LONG: usize = 32;

/// How far the places are from each other that such texts are looked at by.
const WIDE_STRIDE: usize = MIN_PIECE_IN_LONG - GRAM + 1;
const WIDEST_STRIDE: usize = MIN_PIECE_IN_VERY_LONG - GRAM + 1;

/// How long the sections of a text are, mostly a little less: whole blocks.
fn section(text: &[u8]) -> usize {
    match text.len() {
        0..=VERY_LONG => 20 * BLOCK * WIDE_STRIDE,
        _ => 12 * BLOCK * WIDEST_STRIDE,
    }
}

/// How many places before that are looked at for one where a section may end.
const MOST_FOR_AN_END: usize = 512;

/// How many suspects the filter is asked about together.
const MANY: usize = 16;

/// What one look goes by.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) index: &'a Index,
    /// How many results there were when the arguments were written.
    pub(super) results: usize,
    /// Where the arguments go.
    pub(super) to: &'a Side,
    /// The filter of what others said.
    pub(super) others: Place,
}

impl Terms<'_> {
    pub(super) fn was_there(&self, result: u16) -> bool {
        usize::from(result) < self.results
    }

    pub(super) fn is_target(&self, source: u16) -> bool {
        let source = self.index.sources.get(usize::from(source));
        source.is_none_or(|source| source.server == self.to.server)
    }

    fn filter(&self) -> &Filter {
        self.index.filters.get(self.others)
    }

    /// The places of a long text, in sections that no piece goes beyond: between two there is a
    /// row of fingerprints that nobody else's words have, longer than what a piece passes over.
    pub(super) fn sections(&self, text: &[u8]) -> Vec<Range<usize>> {
        let is_known = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.filter().has(gram))
        };
        let length = section(text);
        let mut sections = Vec::new();
        let mut begin = 0;
        let mut end = length;
        while end + length / 2 < text.len() {
            let mut row = end - MOST_FOR_AN_END..end - MOST_FOR_AN_END + WIDE + 1;
            // From its end on, so that a copy is passed over fast.
            while row.end <= end
                && let Some(known) = row.clone().rev().find(|at| is_known(*at))
            {
                row = known + 1..known + WIDE + 2;
            }
            if row.end <= end {
                sections.push(begin..row.end);
                begin = row.end;
            }
            end = row.end + length;
        }
        sections.push(begin..text.len());
        sections
    }
}

/// A piece of a source that was found in a text.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) source: u16,
    /// Of the call whose result has it.
    pub(super) ordinal: usize,
    pub(super) range: Range<usize>,
}

/// One search.
pub(super) struct Scan<'a> {
    terms: Terms<'a>,
    /// The sources of other servers than the target's.
    others: Vec<u16>,
    /// A filter with all that the target said.
    own: Place,
    /// Where the last piece of each source ends.
    reached: FxHashMap<u16, usize>,
    /// Where in pieces their source goes on elsewhere, so that another's may lie across.
    seams: BTreeSet<usize>,
    /// Before which place there is none left that has to be looked up.
    looked_up: usize,
    /// How many places of results were looked at, and how many may be.
    pub(super) steps: usize,
    most_steps: usize,
    /// In order.
    pub(super) found: Vec<Found>,
}

impl<'a> Scan<'a> {
    /// A search after so many steps, that is given up after `most_steps`.
    pub(super) fn new(terms: Terms<'a>, steps: usize, most_steps: usize) -> Self {
        let Terms { index, to, .. } = terms;
        let sources = index.sources.iter().zip(0..);
        let others = sources.filter(|(source, _)| source.server != to.server);
        Self {
            terms,
            others: others.map(|(_, other)| other).collect(),
            own: index.filters.own(&to.server),
            reached: FxHashMap::default(),
            seams: BTreeSet::new(),
            looked_up: 0,
            steps,
            most_steps,
            found: Vec::new(),
        }
    }

    /// Searches a text that is no longer than [`LONG`].
    pub(super) fn short(&mut self, text: &[u8]) {
        self.pieces_by::<SAMPLE>(text, 0..text.len());
    }

    /// Searches one of the [sections](Terms::sections) of a longer one.
    pub(super) fn section(&mut self, text: &[u8], places: Range<usize>) {
        match text.len() {
            0..=VERY_LONG => self.pieces_by::<WIDE_STRIDE>(text, places),
            _ => self.pieces_by::<WIDEST_STRIDE>(text, places),
        }
    }

    /// Takes every so many places, block by block, and looks around the few whose
    /// fingerprint is known.
    fn pieces_by<const STRIDE: usize>(&mut self, text: &[u8], places: Range<usize>) {
        let mut suspects = [0; BLOCK];
        let mut at = places.start;
        // What is before is in a piece already.
        let mut next = 0;
        let end = places.end.min((text.len() + 1).saturating_sub(GRAM));
        while at < end && self.steps < self.most_steps {
            let known = self.suspects::<STRIDE>(text, at, &mut suspects);
            for suspect in suspects.iter().take(known) {
                let suspect = at + usize::from(*suspect);
                if suspect >= end {
                    break;
                }
                let is_done = suspect < next && !self.is_at_seam(suspect);
                if is_done && !self.is_shared(text, suspect) {
                    continue;
                }
                if self.are_all_reached(suspect + SAMPLE) {
                    continue;
                }
                let Some(near) = self.near::<STRIDE>(text, suspect) else {
                    continue;
                };
                if let Some(end) = self.piece(text, suspect, near) {
                    // The next piece may begin within this one; but what is in it, or the most
                    // of it, is only another's if several have it.
                    next = next.max((end + 1).saturating_sub(MIN_PIECE));
                }
            }
            at += BLOCK * STRIDE;
            if self.terms.index.shared().is_none() {
                at = at.max(self.seam_before(at, next));
            }
        }
    }

    /// The places of a block whose fingerprints are probably known, with company,
    /// and how many those are.
    fn suspects<const STRIDE: usize>(
        &self,
        text: &[u8],
        at: usize,
        suspects: &mut [u16; BLOCK],
    ) -> usize {
        let (key, filter) = (self.terms.index.key, self.terms.filter());
        let rest = text.get(at..).unwrap_or_default();
        let mut count = 0;
        for (nth, mask) in known::<STRIDE>(key, filter, rest).into_iter().enumerate() {
            for bit in bits(mask) {
                if let Some(suspect) = suspects.get_mut(count) {
                    *suspect = ((nth * 64 + bit as usize) * STRIDE) as u16;
                    count += 1;
                }
            }
        }
        // Of the fingerprints so far before the place and behind it, one is known,
        // too, for each place of a piece. Beyond the ends of the text it is that of nothing: a
        // yes to that is one too many, as others are.
        let mut in_company = 0;
        for first in (0..count).step_by(MANY) {
            let some = first..count.min(first + MANY);
            let mut beside = [[0; 2]; MANY];
            for (nth, beside) in some.clone().zip(&mut beside) {
                let here = at + usize::from(suspects.get(nth).copied().unwrap_or(0));
                let around = [here.checked_sub(STRIDE / 2), Some(here + STRIDE / 2)];
                *beside = around.map(|at| at.and_then(|at| key.gram(text, at)).unwrap_or(0));
                for gram in beside {
                    filter.fetch(*gram);
                }
            }
            for (nth, grams) in some.zip(&beside) {
                let place = suspects.get(nth).copied().unwrap_or(0);
                let [before, behind] = grams.map(|gram| filter.has(gram));
                if let Some(suspect) = suspects.get_mut(in_company) {
                    *suspect = place;
                }
                in_company += usize::from(before | behind);
            }
        }
        in_company
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal::END;
    use super::*;

    /// How long the sections are of a text that is not very long.
    const SECTION: usize = 20 * BLOCK * WIDE_STRIDE;

    /// Words that are all different, and in their order only here.
    fn words(first: usize, bytes: usize) -> String {
        let mut text = String::new();
        let mut nth = first;
        while text.len() < bytes {
            text.push_str(&format!("{:x} ", nth.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            nth += 1;
        }
        text
    }

    /// What is told of a text for whose target `said` is another's.
    fn told<T>(said: &str, tell: impl FnOnce(Terms<'_>) -> T) -> T {
        let mut index = Index::new();
        let from = Side::new("a_get", "a", "get");
        index.take(from, 1, &format!("{said:?}"));
        index.catch_up();
        assert_eq!(index.text().last(), Some(&END));
        tell(Terms {
            index: &index,
            results: 1,
            to: &Side::new("b_put", "b", "put"),
            others: index.others("b").expect("one server's filter"),
        })
    }

    fn sections(said: &str, text: &str) -> Vec<Range<usize>> {
        told(said, |terms| terms.sections(text.as_bytes()))
    }

    #[test]
    fn sections_are_about_as_long_as_each_other_and_leave_no_place_out() {
        let text = words(1, 10 * SECTION);
        let sections = sections("something else that was said", &text);
        assert_eq!(sections.len(), 10, "{sections:?}");
        let mut end = 0;
        for section in sections {
            assert_eq!(section.start, end);
            end = section.end;
        }
        assert_eq!(end, text.len());
    }

    #[test]
    fn a_copy_is_in_one_section() {
        let said = words(1, 4 * SECTION);
        assert_eq!(sections(&said, &said), vec![0..said.len()]);
        // Wherever it begins, where a section might end, and wherever it ends.
        let (before, after) = (words(1_000_000, 2 * SECTION), words(2_000_000, 3 * SECTION));
        for shift in (0..40).step_by(3) {
            let before = &before[..SECTION - MOST_FOR_AN_END + shift];
            let length = SECTION + 17 * shift;
            let text = format!("{before}{}{}", &said[..length], after);
            let copy = before.len()..before.len() + length;
            let sections = sections(&said, &text);
            let within =
                |section: &&Range<usize>| section.start > copy.start && section.start < copy.end;
            assert_eq!(sections.iter().find(within), None, "{shift}");
            assert!(sections.len() > 1, "{sections:?}");
        }
    }

    /// Behind a hole a piece goes on, if it is no longer than that.
    #[test]
    fn a_section_ends_in_no_hole_that_a_piece_passes_over() {
        let said = words(1, 4 * SECTION);
        let with_holes = |unknown: usize| {
            let mut text = said.clone().into_bytes();
            for hole in text.chunks_mut(100) {
                let last = (unknown + 1).saturating_sub(GRAM);
                hole.iter_mut().take(last).for_each(|byte| *byte = b'?');
            }
            sections(&said, &String::from_utf8(text).expect("ASCII")).len()
        };
        assert_eq!(with_holes(WIDE), 1);
        assert!(with_holes(WIDE + 1) > 1);
    }

    #[test]
    fn what_is_found_in_sections_is_what_is_found_in_the_whole() {
        let said = words(1, 20_000);
        let mut text = words(1_000_000, SECTION);
        for nth in 0..60 {
            let begin = nth * 307;
            text.push_str(&said[begin..begin + MIN_PIECE_IN_LONG + 5 * nth]);
            text.push_str(&words(2_000_000 + 100_000 * nth, 150 * nth));
        }
        told(&said, |terms| {
            let text = text.as_bytes();
            let found = |sections: Vec<Range<usize>>| {
                let mut found = Vec::new();
                for places in sections {
                    let mut scan = Scan::new(terms, 0, usize::MAX);
                    scan.section(text, places);
                    found.extend(scan.found.into_iter().map(|found| found.range));
                }
                found
            };
            let sections = terms.sections(text);
            assert!(sections.len() > 3, "{sections:?}");
            let whole = found(std::iter::once(0..text.len()).collect());
            assert_eq!(whole.len(), 60);
            assert_eq!(found(sections), whole);
        });
    }
}

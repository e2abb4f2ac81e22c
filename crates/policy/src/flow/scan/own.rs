//! What the target said itself of what a source has: that is nothing of the source's, but
//! what it has besides may begin there.

use std::ops::Range;

use super::super::grams::GRAM;
use super::super::index::{MIN_PIECE, SAMPLE};
use super::Scan;

/// The most steps that [`Scan::beyond_end`] takes at one end.
const MOST_BEYOND: usize = 64;

impl Scan<'_> {
    /// A piece around `at` of the source that has this place, which the target did not say
    /// itself before: `piece`, or one that the source has elsewhere.
    pub(super) fn beyond_own(
        &mut self,
        text: &[u8],
        at: usize,
        piece: Range<usize>,
        place: usize,
    ) -> Option<Range<usize>> {
        if !self.is_own(text, &piece, place) {
            return Some(piece);
        }
        let mut next = Some(place);
        while let Some(place) = next.filter(|_| self.steps < self.most_steps) {
            let stretch = self.stretch(text, at, 0, place);
            self.steps += 1 + stretch.len() / GRAM;
            let is_more = stretch.len() >= MIN_PIECE
                && (stretch.start < piece.start || stretch.end > piece.end);
            let was_there = self.terms.was_there(self.terms.index.result_at(place));
            if is_more && was_there && !self.is_own(text, &stretch, place) {
                return Some(stretch);
            }
            next = self.terms.index.tables().again(place).next();
        }
        None
    }

    /// A piece of the source that has this place which begins in another one of it, that the target said
    /// itself and that ends at `end`, and goes on behind that; and where the source has it. One of its places is
    /// looked up here, where it goes on for a few bytes only, or as any other is. Not
    /// all are looked at where the source says the same very often.
    pub(super) fn beyond_end(
        &mut self,
        text: &[u8],
        end: usize,
        place: usize,
    ) -> Option<(Range<usize>, usize)> {
        let key = self.terms.index.key;
        let source = self.terms.index.origin_at(place).0;
        let beyond = (end + 1).checked_sub(GRAM)?;
        if !self.terms.filter().has(key.gram(text, beyond)?) {
            return None;
        }
        let tables = self.terms.index.tables();
        let most_steps = self.most_steps.min(self.steps + MOST_BEYOND);
        for at in (beyond + 1).saturating_sub(SAMPLE)..beyond + SAMPLE {
            let Some(gram) = key.gram(text, at) else {
                break;
            };
            for place in
                tables.all_places(gram, |place| self.terms.index.origin_at(place).0 == source)
            {
                if self.steps >= most_steps {
                    return None;
                }
                self.steps += 1;
                let here = end - at.min(end);
                // Most are told from it by what stands at its end.
                let behind = text.get(end..=end).unwrap_or_default();
                if self.terms.index.common(place + here, behind) == 0 {
                    continue;
                }
                let stretch = self.stretch(text, at, 0, place);
                self.steps += stretch.len() / GRAM;
                let is_piece = stretch.len() >= MIN_PIECE && stretch.end > end;
                let was_there = self.terms.was_there(self.terms.index.result_at(place));
                if is_piece && was_there && !self.is_own(text, &stretch, place) {
                    return Some((stretch, place));
                }
            }
        }
        None
    }

    /// Whether the target said a piece itself, before the source that has it at this place
    /// did.
    fn is_own(&mut self, text: &[u8], piece: &Range<usize>, place: usize) -> bool {
        let mut steps = self.steps;
        // One place in so many is known.
        let is_own = (piece.start..piece.start + SAMPLE).any(|at| {
            let Some(gram) = self.terms.index.key.gram(text, at) else {
                return false;
            };
            // The filter is nearer at hand, and mostly says no.
            if !self.terms.index.filters.get(self.own).has(gram) {
                return false;
            }
            let before = text.get(piece.start..at).unwrap_or_default();
            let rest = text.get(at..piece.end).unwrap_or_default();
            let tables = self.terms.index.tables();
            let is_target = |place| self.terms.is_target(self.terms.index.origin_at(place).0);
            for own in tables.all_places(gram, is_target) {
                steps += 1;
                if steps >= self.most_steps {
                    return false;
                }
                if own >= place {
                    continue;
                }
                let common = self.terms.index.common(own, rest);
                steps += common / GRAM;
                if common == rest.len()
                    && self.terms.index.common_before(own, before) == before.len()
                {
                    return true;
                }
            }
            false
        });
        self.steps = steps;
        is_own
    }
}

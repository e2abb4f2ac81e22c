//! Pieces of sources: whose they are, and how far they reach.

use std::cell::Cell;
use std::ops::Range;

use super::super::finding::{Encoding, is_data};
use super::super::grams::GRAM;
use super::super::index::{MIN_PIECE, SAMPLE};
use super::Scan;

/// How many places around a known fingerprint are looked at before it is asked
/// whose it is.
pub(super) const NEAR: usize = 4 * SAMPLE;

/// A wide step through a long piece, in which all bytes but a few are looked at.
const WIDE: usize = 4 * SAMPLE;

/// A piece of a source.
pub(super) struct Reached {
    source: u16,
    piece: Range<usize>,
}

impl Scan<'_> {
    /// The places side by side, around `at`, whose fingerprints are known.
    pub(super) fn run(&self, text: &[u8], at: usize) -> Range<usize> {
        let known = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.filter().has(gram))
        };
        let lowest = at.saturating_sub(SAMPLE);
        let mut start = at;
        while start > lowest && known(start - 1) {
            start -= 1;
        }
        let mut end = at + 1;
        while end < start + NEAR && known(end) {
            end += 1;
        }
        start..end
    }

    /// Whether several sources have what is at this place.
    pub(super) fn is_shared(&self, text: &[u8], at: usize) -> bool {
        let gram = || self.index.key.gram(text, at);
        self.index.shares() && gram().is_some_and(|gram| self.index.is_shared(gram))
    }

    /// The pieces around a suspect, which a place of `run` is in, that are not known yet: of
    /// each source where several have the same, else of one; where the last of them ends.
    pub(super) fn piece(
        &mut self,
        text: &[u8],
        suspect: usize,
        run: Range<usize>,
        encoding: Encoding,
    ) -> Option<usize> {
        self.index.ready();
        let all = self.is_shared(text, suspect);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for at in run {
            let gram = self.index.key.gram(text, at)?;
            for place in self.index.places(gram) {
                self.steps += 1;
                if !self.was_there(self.index.result_at(place)) {
                    continue;
                }
                let of_target = self.is_target(self.index.origin_at(place).0);
                let places = if of_target { &mut own } else { &mut others };
                places.push((at, place));
            }
            if !all {
                let last = self.pieces_at(text, &own, &others, encoding);
                if last.is_some() {
                    return last;
                }
                own.clear();
                others.clear();
            }
        }
        self.pieces_at(text, &own, &others, encoding)
    }

    /// The pieces of sources that have what is at a place of the text at a place of theirs.
    fn pieces_at(
        &mut self,
        text: &[u8],
        own: &[(usize, usize)],
        others: &[(usize, usize)],
        encoding: Encoding,
    ) -> Option<usize> {
        let mut last = None;
        // The target's own first: what others said later is among it then.
        for (at, place) in own {
            let reached = self.reach(text, *at, *place);
            last = last.max(reached.map(|piece| piece.end));
        }
        for (at, place) in others {
            let Some(range) = self.reach(text, *at, *place) else {
                continue;
            };
            last = last.max(Some(range.end));
            let piece = text.get(range.clone()).unwrap_or_default();
            if is_data(piece) && !self.is_own(text, &range, *place) && !self.is_known(piece) {
                let (source, ordinal) = self.index.origin_at(*place);
                self.record(source, ordinal, piece, encoding);
            }
        }
        last
    }

    /// How far a piece reaches of the source that has this place. `None` if that is no
    /// piece, or one that was reached before.
    fn reach(&mut self, text: &[u8], at: usize, place: usize) -> Option<Range<usize>> {
        let source = self.index.origin_at(place).0;
        let mut reached = self.reached.iter();
        let before = reached.position(|reached| reached.source == source);
        let end = before
            .and_then(|nth| self.reached.get(nth))
            .map(|reached| reached.piece.end);
        // The next piece of a source may begin within the last one, not be in it.
        let floor = end.map_or(0, |end| (end + 1).saturating_sub(GRAM));
        if at < floor || self.steps >= self.most_steps {
            return None;
        }
        let (piece, steps) = self.extent(text, at, floor, place);
        self.steps += steps;
        if piece.len() < MIN_PIECE {
            return None;
        }
        let now = Reached {
            source,
            piece: piece.clone(),
        };
        match before.and_then(|nth| self.reached.get_mut(nth)) {
            Some(reached) => *reached = now,
            None => self.reached.push(now),
        }
        Some(piece)
    }

    /// Whether the target said a piece itself, before the source that has it at this place
    /// did.
    fn is_own(&self, text: &[u8], piece: &Range<usize>, place: usize) -> bool {
        let covers = |reached: &&Reached| {
            reached.piece.start <= piece.start && piece.end <= reached.piece.end
        };
        let mut own = self.reached.iter().filter(covers);
        own.any(|own| {
            // One place in so many is known.
            let mut places = (piece.start..piece.start + SAMPLE).filter_map(|at| {
                let gram = self.index.key.gram(text, at)?;
                let mut places = self.index.places(gram);
                places.find(|place| self.index.origin_at(*place).0 == own.source)
            });
            self.is_target(own.source) && places.any(|own| own < place)
        })
    }

    /// How far a piece of the source that has this place reaches around `at`, and how many
    /// places were looked at for that.
    fn extent(&self, text: &[u8], at: usize, floor: usize, place: usize) -> (Range<usize>, usize) {
        let source = self.index.origin_at(place).0;
        let is_near = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.filter().has(gram))
        };
        let steps = Cell::new(0);
        let from_source = |at: usize| {
            // The filter is nearer at hand, and mostly says no.
            let gram = self.index.key.gram(text, at).filter(|_| is_near(at))?;
            let places = self.index.places(gram);
            let mut places = places.inspect(|_| steps.set(steps.get() + 1));
            places.find(|place| self.index.origin_at(*place).0 == source)
        };
        // As far as the source goes on the same way. Where it does not, it may
        // have what follows elsewhere: in a wide step, in which whatever lies
        // between is not looked at, or in that of the fingerprints.
        let (mut last, mut last_place) = (at, place);
        let end = loop {
            let rest = text.get(last..).unwrap_or_default();
            let common = self.index.common(last_place, rest);
            let end = last + common;
            let further = common.saturating_sub(GRAM);
            last += further - further % SAMPLE;
            let step = |step| Some((last + step, from_source(last + step)?));
            match step(WIDE).or_else(|| step(SAMPLE)) {
                Some(next) if steps.get() < self.most_steps => (last, last_place) = next,
                _ => break end,
            }
        };
        let (mut first, mut first_place) = (at, place);
        while first >= floor + SAMPLE
            && let Some(place) = from_source(first - SAMPLE)
        {
            (first, first_place) = (first - SAMPLE, place);
        }
        let before = text.get(floor..first).unwrap_or_default();
        let start = first - self.index.common_before(first_place, before);
        if end >= start + MIN_PIECE {
            return (start..end, steps.get());
        }
        // Where the source has the beginning of the piece more than once, only one
        // such place is known. Then place by place.
        let mut near = last + 1;
        while near < last + SAMPLE && is_near(near) {
            near += 1;
        }
        let lowest = floor.max((first + 1).saturating_sub(SAMPLE));
        while first > lowest && is_near(first - 1) {
            first -= 1;
        }
        (first..near - 1 + GRAM, steps.get())
    }
}

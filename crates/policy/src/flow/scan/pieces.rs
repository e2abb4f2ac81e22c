//! Pieces of sources: whose they are, and how far they reach.

use std::cell::Cell;
use std::iter;
use std::ops::Range;

use super::super::finding::is_data;
use super::super::grams::GRAM;
use super::super::index::{MIN_PIECE, SAMPLE};
use super::{Found, Scan};

/// How many places around a known fingerprint are looked at before it is asked
/// whose it is.
pub(super) const NEAR: usize = 4 * SAMPLE;

/// A wide step through a long piece, in which all bytes but a few are looked at.
pub(super) const WIDE: usize = 4 * SAMPLE;

/// A place of a text whose fingerprint a source has at a place of its own.
struct Known {
    source: u16,
    at: usize,
    place: usize,
}

impl Scan<'_> {
    /// The places side by side, around `at`, whose fingerprints are known.
    pub(super) fn run(&self, text: &[u8], at: usize) -> Range<usize> {
        let known = |at: usize| {
            let gram = self.terms.index.key.gram(text, at);
            gram.is_some_and(|gram| self.terms.filter().has(gram))
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
        let gram = || self.terms.index.key.gram(text, at);
        self.terms
            .index
            .shared()
            .is_some_and(|shared| gram().is_some_and(|gram| shared.has(gram)))
    }

    /// The pieces that a place of `run`, which is around `suspect`, is in and that are not known
    /// yet, of each source that has one; where the last of them ends.
    pub(super) fn piece(
        &mut self,
        text: &[u8],
        suspect: usize,
        run: Range<usize>,
    ) -> Option<usize> {
        let tables = self.terms.index.tables();
        let is_shared = self.is_shared(text, suspect);
        let near =
            run.start.max((suspect + 1).saturating_sub(SAMPLE))..run.end.min(suspect + SAMPLE);
        for gram in run
            .clone()
            .filter_map(|at| self.terms.index.key.gram(text, at))
        {
            tables.fetch_places(gram);
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let mut last = None;
        for at in run.clone() {
            if self.only_other.is_some_and(|other| at < self.floor(other)) {
                continue;
            }
            let gram = self.terms.index.key.gram(text, at)?;
            for place in tables.places(gram) {
                self.steps += 1;
                if !self.terms.was_there(self.terms.index.result_at(place)) {
                    continue;
                }
                let source = self.terms.index.origin_at(place).0;
                let of_target = self.terms.is_target(source);
                let places = if of_target { &mut own } else { &mut others };
                places.push(Known { source, at, place });
            }
            if is_shared {
                continue;
            }
            if let Some(piece) = self.pieces_at(text, &own, &mut others) {
                last = last.max(Some(piece.end));
                // What is at the suspect is nobody else's then: what two have of a piece's
                // length is shared, and another piece would be beyond this one.
                let is_all = piece.start <= near.start && piece.end >= near.end - 1 + GRAM;
                if is_all {
                    return last;
                }
            }
            own.clear();
            others.clear();
        }
        let piece = self.pieces_at(text, &own, &mut others);
        last.max(piece.map(|piece| piece.end))
    }

    /// The pieces of sources that have what is at a place of the text at a place of theirs: the
    /// one that ends last.
    fn pieces_at(
        &mut self,
        text: &[u8],
        own: &[Known],
        others: &mut [Known],
    ) -> Option<Range<usize>> {
        let mut pieces: Option<Range<usize>> = None;
        let mut reached = |piece: &Range<usize>| {
            if pieces.as_ref().is_none_or(|last| last.end < piece.end) {
                pieces = Some(piece.clone());
            }
        };
        others.sort_by_key(|known| known.source);
        for Known { source, at, place } in own {
            if let Some(piece) = self.reach(text, *at, *place) {
                self.reached.insert(*source, piece.end);
                reached(&piece);
            }
        }
        for places in others.chunk_by(|one, other| one.source == other.source) {
            let mut longest: Option<(Range<usize>, usize)> = None;
            let mut found = None;
            for Known { at, place, .. } in places {
                let Some(piece) = self.reach(text, *at, *place) else {
                    continue;
                };
                found = self.beyond_own(text, *at, piece.clone(), *place);
                let is_longer = |(longest, _): &(Range<usize>, usize)| longest.len() < piece.len();
                if found.is_some() || longest.as_ref().is_none_or(is_longer) {
                    longest = Some((piece, *place));
                }
                if found.is_some() {
                    break;
                }
            }
            let Some((piece, place)) = longest else {
                continue;
            };
            let (source, ordinal) = self.terms.index.origin_at(place);
            self.reached.insert(source, piece.end);
            reached(&piece);
            if let Some(range) = found
                && text.get(range.clone()).is_some_and(is_data)
            {
                self.found.push(Found {
                    source,
                    ordinal,
                    range,
                });
            }
        }
        pieces
    }

    /// Where the next piece of a source may begin: within the last one, but it may not be in it.
    fn floor(&self, source: u16) -> usize {
        let before = self.reached.get(&source);
        before.map_or(0, |end| (end + 1).saturating_sub(GRAM))
    }

    /// How far a piece reaches of the source that has this place. `None` if that is no
    /// piece, or one that was reached before.
    fn reach(&mut self, text: &[u8], at: usize, place: usize) -> Option<Range<usize>> {
        let source = self.terms.index.origin_at(place).0;
        let floor = self.floor(source);
        if at < floor || self.steps >= self.most_steps {
            return None;
        }
        let (piece, steps) = self.extent(text, at, floor, place);
        self.steps += steps;
        (piece.len() >= MIN_PIECE).then_some(piece)
    }

    /// A piece around `at` of the source that has this place, which the target did not say
    /// itself before: `piece`, or one that the source has elsewhere.
    fn beyond_own(
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
            let is_more = stretch.start < piece.start || stretch.end > piece.end;
            let was_there = self.terms.was_there(self.terms.index.result_at(place));
            if is_more && was_there && !self.is_own(text, &stretch, place) {
                return Some(stretch);
            }
            next = self.terms.index.tables().again(place).next();
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
            let places = self.terms.index.tables().places(gram);
            let own =
                places.filter(|place| self.terms.is_target(self.terms.index.origin_at(*place).0));
            let mut own = own
                .flat_map(|place| iter::once(place).chain(self.terms.index.tables().again(place)));
            own.any(|own| {
                let common = self.terms.index.common(own, rest);
                steps += 1 + common / GRAM;
                own < place
                    && steps < self.most_steps
                    && common == rest.len()
                    && self.terms.index.common_before(own, before) == before.len()
            })
        });
        self.steps = steps;
        is_own
    }

    /// What is the same around `at` and around this place, from `floor` on.
    fn stretch(&self, text: &[u8], at: usize, floor: usize, place: usize) -> Range<usize> {
        let before = text.get(floor..at).unwrap_or_default();
        let rest = text.get(at..).unwrap_or_default();
        at - self.terms.index.common_before(place, before)
            ..at + self.terms.index.common(place, rest)
    }

    /// How far a piece of the source that has this place, or the like, reaches around `at`,
    /// and how many places were looked at for that. Nowhere if that is no piece.
    fn extent(&self, text: &[u8], at: usize, floor: usize, place: usize) -> (Range<usize>, usize) {
        let source = self.terms.index.origin_at(place).0;
        let steps = Cell::new(0);
        let step = || steps.set(steps.get() + 1);
        // The first place of this fingerprint need not be where the piece is from.
        let mut places = iter::once(place).chain(self.terms.index.tables().again(place));
        let stretch = places.find_map(|place| {
            step();
            let stretch = self.stretch(text, at, floor, place);
            let is_piece = stretch.len() >= MIN_PIECE
                && self.terms.was_there(self.terms.index.result_at(place));
            let given_up = steps.get() >= self.most_steps;
            (is_piece || given_up).then_some(stretch)
        });
        let Some(stretch) = stretch.filter(|_| steps.get() < self.most_steps) else {
            return (at..at, steps.get());
        };
        let from_source = |at: usize| {
            let gram = self.terms.index.key.gram(text, at)?;
            if !self.terms.filter().has(gram) {
                return None;
            }
            let mut places = self.terms.index.tables().places(gram).inspect(|_| step());
            places.find(|place| self.terms.index.origin_at(*place).0 == source)
        };
        // As far as the source goes on the same way. Where it does not, it may
        // have what follows elsewhere: in a wide step, in which whatever lies
        // between is not looked at, or in that of the fingerprints.
        let (mut last, mut end) = (at, stretch.end);
        while steps.get() < self.most_steps {
            let further = (end - last).saturating_sub(GRAM);
            last += further - further % SAMPLE;
            let step = |step| Some((last + step, from_source(last + step)?));
            let Some((next, place)) = step(WIDE).or_else(|| step(SAMPLE)) else {
                break;
            };
            last = next;
            end = last
                + self
                    .terms
                    .index
                    .common(place, text.get(last..).unwrap_or_default());
        }
        let further = at - stretch.start;
        let mut first = at - (further - further % SAMPLE);
        let mut start = stretch.start;
        while first >= floor + SAMPLE
            && let Some(place) = from_source(first - SAMPLE)
        {
            first -= SAMPLE;
            let before = text.get(floor..first).unwrap_or_default();
            start = first - self.terms.index.common_before(place, before);
        }
        (start..end, steps.get())
    }
}

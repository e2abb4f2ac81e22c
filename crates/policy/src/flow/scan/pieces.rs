//! Pieces of sources: whose they are, and how far they reach.

use std::cell::Cell;
use std::iter;
use std::ops::Range;

use super::super::finding::is_data;
use super::super::grams::GRAM;
use super::super::index::{MIN_PIECE, SAMPLE};
use super::{Found, Scan};

/// A wide step through a long piece, in which all bytes but a few are looked at.
pub(super) const WIDE: usize = 4 * SAMPLE;

/// How many places in a row are at one seam: those before it with less than a piece on their side,
/// those that a wide step passes over, and those behind it that begin with less than a piece there.
const SEAM: usize = MIN_PIECE + (WIDE - GRAM) + (SAMPLE - 2);

/// A place of a text whose fingerprint a source has at a place of its own.
struct Known {
    source: u16,
    at: usize,
    place: usize,
}

impl Scan<'_> {
    /// The places around a suspect that are to be looked up: of each piece that it is in, the tables
    /// have one of them. `None` if too few fingerprints side by side are known for a piece that
    /// is surely found where every `STRIDE`th place is a suspect. A shorter one is only worth the way to
    /// the tables if it has a word as long as a piece, as a key or an identifier is: what two long
    /// texts have in common of short words is their language.
    pub(super) fn near<const STRIDE: usize>(
        &self,
        text: &[u8],
        suspect: usize,
    ) -> Option<Range<usize>> {
        let known = |at: usize| {
            let gram = self.terms.index.key.gram(text, at);
            gram.is_some_and(|gram| self.terms.filter().has(gram))
        };
        let lowest = (suspect + 1).saturating_sub(STRIDE);
        let mut start = suspect;
        while start > lowest && known(start - 1) {
            start -= 1;
        }
        let mut end = suspect + 1;
        while end < suspect + STRIDE && known(end) {
            end += 1;
        }
        let length = end - start;
        let may_be = length >= STRIDE
            || length >= SAMPLE && has_word(text.get(start..end - 1 + GRAM).unwrap_or_default());
        let around = (suspect + 1).saturating_sub(SAMPLE)..suspect + SAMPLE;
        may_be.then(|| start.max(around.start)..end.min(around.end))
    }

    /// Whether several sources have what is at this place.
    pub(super) fn is_shared(&self, text: &[u8], at: usize) -> bool {
        let gram = || self.terms.index.key.gram(text, at);
        self.terms
            .index
            .shared()
            .is_some_and(|shared| gram().is_some_and(|gram| shared.has(gram)))
    }

    /// Whether a place may be in a piece of another source that lies across a seam, with too little on
    /// each side for [`Self::is_shared`].
    pub(super) fn is_at_seam(&self, at: usize) -> bool {
        let near = (at + MIN_PIECE).saturating_sub(SEAM)..at + MIN_PIECE;
        self.seams.range(near).next().is_some()
    }

    /// The first place from `at` on that may be at a seam, if that is before `next`; or else `next`.
    pub(super) fn seam_before(&self, at: usize, next: usize) -> usize {
        let seam = self.seams.range(at.saturating_sub(SEAM)..).next();
        let first = seam.map_or(next, |seam| (seam + 1).saturating_sub(MIN_PIECE));
        first.min(next)
    }

    /// Finds the pieces of each source that have one of the places `near` a suspect, as far as those were
    /// not looked up before; says where the last of them ends.
    pub(super) fn piece(
        &mut self,
        text: &[u8],
        suspect: usize,
        near: Range<usize>,
    ) -> Option<usize> {
        let tables = self.terms.index.tables();
        let is_shared = self.is_shared(text, suspect);
        let places = near.start.max(self.looked_up)..near.end;
        for gram in places
            .clone()
            .filter_map(|at| self.terms.index.key.gram(text, at))
        {
            tables.fetch_places(gram);
        }
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let mut last = None;
        for at in places {
            self.looked_up = at + 1;
            if self.are_all_reached(at) {
                continue;
            }
            let Some(gram) = self.terms.index.key.gram(text, at) else {
                break;
            };
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
            if let Some(piece) = self.pieces_at(text, suspect, &own, &mut others) {
                last = last.max(Some(piece.end));
                // What is at the suspect is nobody else's then: what two have of a piece's
                // length is shared, and another piece would be beyond this one.
                let is_all = piece.start <= near.start && piece.end >= near.end - 1 + GRAM;
                if is_all && !self.is_at_seam(suspect) {
                    return last;
                }
            }
            own.clear();
            others.clear();
        }
        let piece = self.pieces_at(text, suspect, &own, &mut others);
        last.max(piece.map(|piece| piece.end))
    }

    /// The pieces of sources that have what is at a place of the text at a place of theirs: the
    /// one that ends last.
    fn pieces_at(
        &mut self,
        text: &[u8],
        suspect: usize,
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
                if found.is_some() {
                    longest = Some((piece, *place));
                    break;
                }
                if let Some((further, place)) = self.beyond_end(text, piece.end, *place) {
                    found = Some(further.clone());
                    longest = Some((further, place));
                    break;
                }
                let is_longer = |(longest, _): &(Range<usize>, usize)| longest.len() < piece.len();
                if longest.as_ref().is_none_or(is_longer) {
                    longest = Some((piece, *place));
                }
            }
            let Some((piece, place)) = longest else {
                continue;
            };
            reached(&piece);
            let (source, ordinal) = self.terms.index.origin_at(place);
            // Of one of the target's own, only if another piece around the suspect would have been met.
            let is_around = piece.start <= suspect && suspect + GRAM <= piece.end;
            if found.is_some() || is_around {
                self.reached.insert(source, piece.end);
            }
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

    /// Whether each source but the target's has a piece already that what is at this place is in.
    pub(super) fn are_all_reached(&self, at: usize) -> bool {
        self.others.iter().all(|other| at < self.floor(*other))
    }

    /// How far a piece reaches of the source that has this place. `None` if that is no
    /// piece, or one that was reached before.
    fn reach(&mut self, text: &[u8], at: usize, place: usize) -> Option<Range<usize>> {
        let source = self.terms.index.origin_at(place).0;
        let floor = self.floor(source);
        if at < floor || self.steps >= self.most_steps {
            return None;
        }
        let mut seams = Vec::new();
        let (piece, steps) = self.extent(text, at, floor, place, |end| seams.push(end));
        self.steps = steps;
        if piece.len() < MIN_PIECE {
            return None;
        }
        if self.terms.index.sources.len() > 1 {
            self.seams.extend(seams);
        }
        Some(piece)
    }

    /// What is the same around `at` and around this place, from `floor` on.
    pub(super) fn stretch(
        &self,
        text: &[u8],
        at: usize,
        floor: usize,
        place: usize,
    ) -> Range<usize> {
        let before = text.get(floor..at).unwrap_or_default();
        let rest = text.get(at..).unwrap_or_default();
        at - self.terms.index.common_before(place, before)
            ..at + self.terms.index.common(place, rest)
    }

    /// How far a piece of the source that has this place, or the like, reaches around `at`,
    /// and how many places were looked at by then. Nowhere if that is no piece. `seam` is told where the
    /// source has it at more than one place.
    fn extent(
        &self,
        text: &[u8],
        at: usize,
        floor: usize,
        place: usize,
        mut seam: impl FnMut(usize),
    ) -> (Range<usize>, usize) {
        let source = self.terms.index.origin_at(place).0;
        let steps = Cell::new(self.steps);
        let take = |more: usize| steps.set(steps.get() + more);
        // The first place of this fingerprint need not be where the piece is from.
        let mut places = iter::once(place).chain(self.terms.index.tables().again(place));
        let stretch = places.find_map(|place| {
            take(1);
            let was_there = self.terms.was_there(self.terms.index.result_at(place));
            let stretch = was_there.then(|| self.stretch(text, at, floor, place));
            let stretch = stretch.unwrap_or(at..at);
            let is_piece = stretch.len() >= MIN_PIECE;
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
            let mut places = self.terms.index.tables().places(gram).inspect(|_| take(1));
            places.find(|place| {
                self.terms.index.origin_at(*place).0 == source
                    && self.terms.was_there(self.terms.index.result_at(*place))
            })
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
            seam(end);
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
            && steps.get() < self.most_steps
            && let Some(place) = from_source(first - SAMPLE)
        {
            seam(start);
            first -= SAMPLE;
            let before = text.get(floor..first).unwrap_or_default();
            start = first - self.terms.index.common_before(place, before);
            let further = first - start;
            first -= further - further % SAMPLE;
        }
        (start..end, steps.get())
    }
}

/// Whether a text has a word as long as a piece.
fn has_word(text: &[u8]) -> bool {
    let mut words = text.split(|byte| *byte == b' ');
    words.any(|word| word.len() >= MIN_PIECE)
}

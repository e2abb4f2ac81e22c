//! What several sources said: where arguments have a piece of one of them, a piece of
//! another may lie within it.

use std::collections::{BTreeMap, TryReserveError, VecDeque};
use std::ops::Range;

use super::grams::{Filter, GRAM};
use super::index::{AHEAD, Index, MAX_BYTES, SAMPLE, pieces};
use super::tables::Tables;

/// The fingerprints of all that more than one source has; and of some of what is beside it.
#[derive(Debug, Clone)]
pub(super) struct Shared(Filter);

/// The strings of one result, each of them with its end, and where they come from.
pub(super) struct Span {
    pub(super) source: u16,
    pub(super) range: Range<usize>,
}

impl Default for Shared {
    fn default() -> Self {
        Self(Filter::empty())
    }
}

impl Shared {
    pub(super) fn is_empty(&self) -> bool {
        self.0.room() == 0
    }

    pub(super) fn has(&self, gram: u64) -> bool {
        self.0.has(gram)
    }

    /// Takes in what the spans of the index' text from a place on have in common with each
    /// other and with those before them. The tables have of every piece of a source the
    /// fingerprint of one place in each row of [`SAMPLE`].
    ///
    /// # Errors
    ///
    /// Where there is no memory: then not everything is in.
    pub(super) fn fill(
        &mut self,
        index: &Index,
        tables: &Tables,
        spans: &[Span],
        from: usize,
    ) -> Result<(), TryReserveError> {
        let mut from = from;
        let bytes = index.text().len();
        let mut room = bytes;
        if !self.is_empty() && self.0.room() < bytes {
            // Four times as much, so that this is seldom.
            room = (bytes * 4).min(MAX_BYTES);
            from = 0;
            *self = Self::default();
        }
        let mut sizes: BTreeMap<u16, usize> = BTreeMap::new();
        let mut all = 0;
        for (nth, span) in spans.iter().enumerate() {
            let length = span.range.len();
            let own = sizes.entry(span.source).or_default();
            let others = all - *own;
            *own += length;
            all += length;
            if span.range.start < from || others == 0 {
                continue;
            }
            // Two texts have the same in common whichever of them is gone through.
            if length <= others + nth {
                self.fill_from(index, tables, span, room)?;
                continue;
            }
            let before = spans.iter().take(nth);
            for other in before.filter(|other| other.source != span.source) {
                self.fill_from(index, tables, other, room)?;
            }
        }
        Ok(())
    }

    fn fill_from(
        &mut self,
        index: &Index,
        tables: &Tables,
        span: &Span,
        room: usize,
    ) -> Result<(), TryReserveError> {
        let key = index.key;
        let text = index.text().get(span.range.clone());
        // Each is on its way from memory while those before it are looked up.
        let mut fetched = VecDeque::with_capacity(AHEAD);
        for piece in pieces(text.unwrap_or_default()) {
            let mut done = 0;
            let places = 0..(piece.len() + 1).saturating_sub(GRAM);
            let known = places.filter_map(|at| {
                let gram = key.gram(piece, at).filter(|gram| tables.may_know(*gram))?;
                tables.fetch_places(gram);
                Some((at, gram))
            });
            let mut known = known.fuse();
            loop {
                while fetched.len() < AHEAD
                    && let Some(next) = known.next()
                {
                    fetched.push_back(next);
                }
                let Some((at, gram)) = fetched.pop_front() else {
                    break;
                };
                let mut places = tables.places(gram);
                if !places.any(|place| index.origin_at(place).0 != span.source) {
                    continue;
                }
                if self.is_empty() {
                    self.0 = Filter::with_room(room)?;
                }
                // What lies around it may be the other's as well.
                let around = done.max((at + 1).saturating_sub(SAMPLE))..at + SAMPLE;
                done = around.end;
                for gram in around.filter_map(|at| key.gram(piece, at)) {
                    self.0.insert(gram);
                }
            }
        }
        Ok(())
    }
}

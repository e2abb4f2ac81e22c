//! What several sources said: where arguments have a piece of one of them, a piece of
//! another may lie within it.

use std::collections::{BTreeMap, TryReserveError};
use std::ops::Range;

use super::grams::{Filter, GRAM, Key};
use super::index::{MAX_BYTES, SAMPLE, pieces};

/// The fingerprints of all that more than one source has; and of some of what is beside it.
#[derive(Debug)]
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

    /// Takes in what the spans of `text` from a place on have in common with each other and
    /// with those before them. `is_anothers` tells whether another source than this one has
    /// a fingerprint; it knows of every piece of a source one place in each row of
    /// [`SAMPLE`].
    ///
    /// # Errors
    ///
    /// Where there is no memory: then not everything is in.
    pub(super) fn fill(
        &mut self,
        key: Key,
        text: &[u8],
        spans: &[Span],
        from: usize,
        is_anothers: impl Fn(u16, u64) -> bool,
    ) -> Result<(), TryReserveError> {
        let mut from = from;
        let mut room = text.len();
        if !self.is_empty() && self.0.room() < text.len() {
            // Four times as much, so that this is seldom.
            room = (text.len() * 4).min(MAX_BYTES);
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
                self.fill_from(key, text, span, room, &is_anothers)?;
                continue;
            }
            let before = spans.iter().take(nth);
            for other in before.filter(|other| other.source != span.source) {
                self.fill_from(key, text, other, room, &is_anothers)?;
            }
        }
        Ok(())
    }

    fn fill_from(
        &mut self,
        key: Key,
        text: &[u8],
        span: &Span,
        room: usize,
        is_anothers: &impl Fn(u16, u64) -> bool,
    ) -> Result<(), TryReserveError> {
        for piece in pieces(text.get(span.range.clone()).unwrap_or_default()) {
            let mut done = 0;
            for at in 0..(piece.len() + 1).saturating_sub(GRAM) {
                let anothers = key.gram(piece, at);
                if !anothers.is_some_and(|gram| is_anothers(span.source, gram)) {
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

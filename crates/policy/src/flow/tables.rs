//! Where in the results each fingerprint is, and what several sources have: made when a
//! piece is first found that is probably a copy.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::iter;

use super::grams::{GRAM, Prints};
use super::index::{AHEAD, Index, SAMPLE, pieces, result_at};
use super::shared::{Shared, Span};

/// How many fingerprints there is room for at the least: so many that a few which dozens of
/// sources have, such as those of an error's message, are not in each other's way.
const MIN_GRAMS: usize = 1 << 11;

/// The places of an index' text.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    /// Where in the text each fingerprint is, for one place in so many.
    grams: Prints,
    /// The next place, plus one, with the fingerprint of a place and of the same source:
    /// kept ones are [`SAMPLE`] apart at the least.
    again: Vec<u32>,
    shared: Shared,
    /// Sources whose fingerprints were too much alike.
    crowded: BTreeSet<u16>,
    /// Whether there was no memory for all.
    is_full: bool,
}

impl Tables {
    /// Those of all that an index has.
    pub(super) fn of(index: &Index) -> Self {
        let grams = (index.text().len() / SAMPLE).max(MIN_GRAMS);
        let mut tables = Self {
            grams: Prints::with_filter(grams),
            again: Vec::new(),
            shared: Shared::default(),
            crowded: BTreeSet::new(),
            is_full: false,
        };
        tables.fill(index, 0);
        tables
    }

    /// Takes in what the index learnt since its text was this long.
    pub(super) fn fill(&mut self, index: &Index, from: usize) {
        self.fill_grams(index, from);
        let spans = index.spans().map(|(result, range)| Span {
            source: index.origin(result).0,
            range,
        });
        let spans: Vec<Span> = spans.collect();
        let mut shared = std::mem::take(&mut self.shared);
        self.is_full |= shared.fill(index, self, &spans, from).is_err();
        self.shared = shared;
    }

    /// What several sources have.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Where in the text this fingerprint is, in the order in which results
    /// came: one place for each source.
    pub(super) fn places(&self, gram: u64) -> impl Iterator<Item = usize> {
        self.grams.find(gram).map(|place| place as usize)
    }

    /// Whether [`Self::places`] has probably any of this fingerprint. "No" is certain.
    pub(super) fn may_know(&self, gram: u64) -> bool {
        self.grams.may_have(gram)
    }

    /// Has the processor bring what [`Self::places`] looks at first.
    pub(super) fn fetch_places(&self, gram: u64) {
        self.grams.fetch(gram);
    }

    /// Where else this place's source has its fingerprint, if the place is one of
    /// [`Self::places`].
    pub(super) fn again(&self, place: usize) -> impl Iterator<Item = usize> {
        let next = |place: usize| {
            let next = self.again.get(place / SAMPLE).copied();
            next.filter(|next| *next > 0).map(|next| next as usize - 1)
        };
        std::iter::successors(next(place), move |place| next(*place))
    }

    /// All places of this fingerprint of those sources whose first one is wanted.
    pub(super) fn all_places(
        &self,
        gram: u64,
        is_wanted: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = usize> {
        let first = self.places(gram).filter(move |place| is_wanted(*place));
        first.flat_map(|place| iter::once(place).chain(self.again(place)))
    }

    /// Whether a source's fingerprints were too much alike for all of them to be here.
    pub(super) fn is_crowded(&self, source: u16) -> bool {
        self.crowded.contains(&source)
    }

    /// Whether there was no memory for all.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    fn fill_grams(&mut self, index: &Index, from: usize) {
        let Self {
            grams,
            again,
            crowded,
            ..
        } = self;
        let begins = index.begins();
        again.resize(index.text().len() / SAMPLE + 1, 0);
        for (result, span) in index.spans().filter(|(_, span)| span.start >= from) {
            let had = Cell::new(None);
            let same = |held: u32| {
                let place = held as usize;
                let same =
                    place >= span.start || index.same_source(result, result_at(begins, place));
                had.set(Some(held).filter(|_| same));
                same
            };
            let mut at = span.start;
            for piece in pieces(index.text().get(span.clone()).unwrap_or_default()) {
                let windows = piece.windows(GRAM).enumerate().step_by(SAMPLE);
                for (window, bytes) in windows {
                    let (Some(bytes), Ok(place)) =
                        (bytes.first_chunk(), u32::try_from(at + window))
                    else {
                        continue;
                    };
                    if let Some(next) = index.key.gram(piece, window + AHEAD * SAMPLE) {
                        grams.fetch(next);
                    }
                    had.set(None);
                    let inserted = grams.insert(index.key.window(bytes), place, same);
                    if let Some(had) = had.get() {
                        let [had, here] = [had, place].map(|place| place as usize / SAMPLE);
                        let next = again.get(had).copied().unwrap_or(0);
                        for (at, next) in [(here, next), (had, place + 1)] {
                            if let Some(again) = again.get_mut(at) {
                                *again = next;
                            }
                        }
                    }
                    if !inserted {
                        crowded.insert(index.origin(result).0);
                    }
                }
                at += piece.len() + 1;
            }
        }
    }
}

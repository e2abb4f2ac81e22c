//! What a run's results had in them: fingerprints, and how they come to be.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::filters::{Filters, Place, Said};
use super::finding::Side;
use super::grams::{GRAM, Key, Prints};
use super::normal::{END, append, plus_is_space, strings};
use super::numbers::{MIN_DIGITS, answered};
use super::shared::{Shared, Span};

/// The most bytes of results, as JSON, that one run's index takes.
pub(super) const MAX_BYTES: usize = 10 << 20;

/// The shortest piece that counts as copied, in bytes of normal form.
pub(super) const MIN_PIECE: usize = 16;

/// Every piece of the shortest length has a fingerprint at one of so many
/// places side by side.
pub(super) const SAMPLE: usize = MIN_PIECE - GRAM + 1;

/// How many fingerprints there is room for at the least: so many that a few which dozens of
/// sources have, such as those of an error's message, are not in each other's way.
const MIN_GRAMS: usize = 1 << 11;

/// The most numbers that one run's index takes.
pub(super) const MAX_NUMBERS: usize = 1 << 18;

/// How many fingerprints ahead their places are fetched: nearly all of them lie in memory that
/// the processor has not near.
pub(super) const AHEAD: usize = 16;

/// The results of one run.
#[derive(Debug)]
pub(super) struct Index {
    /// The tools that results came from.
    pub(super) sources: Vec<Arc<Side>>,
    /// Each result's source and its call's ordinal.
    results: Vec<(u16, usize)>,
    /// Results that nobody needed to look at yet.
    waiting: Vec<(u16, Box<str>)>,
    /// Bytes taken so far, waiting or not.
    bytes: usize,
    /// The strings of the results, in normal form, and where each result's
    /// begin.
    text: Vec<u8>,
    begins: Vec<(usize, u16)>,
    pub(super) key: Key,
    pub(super) filters: Filters,
    /// Where in the text each fingerprint is, for one place in so many. Made when
    /// a piece is first found that is probably a copy.
    grams: Option<Prints>,
    /// The next place, plus one, with the fingerprint of a place and of the same source:
    /// kept ones are [`SAMPLE`] apart at the least.
    again: Vec<u32>,
    /// What several sources have, as far as `grams` is made.
    shared: Shared,
    /// Which results have a number.
    numbers: Prints,
    /// Why results of a source are not all in here.
    gaps: BTreeMap<u16, Gap>,
}

/// Why a copy from a source could go unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// There was more of it than an index takes.
    Full,
    /// Its fingerprints were too much alike.
    Crowded,
}

impl Index {
    pub(super) fn new() -> Self {
        Self {
            sources: Vec::new(),
            results: Vec::new(),
            waiting: Vec::new(),
            bytes: 0,
            text: Vec::new(),
            begins: Vec::new(),
            key: Key::new(),
            filters: Filters::default(),
            grams: None,
            again: Vec::new(),
            shared: Shared::default(),
            numbers: Prints::with_room(0),
            gaps: BTreeMap::new(),
        }
    }

    /// Takes a result, to be looked at when it is needed.
    pub(super) fn take(&mut self, side: Side, ordinal: usize, json: &str) {
        let source = match self.sources.iter().position(|known| **known == side) {
            Some(known) => known,
            None => {
                self.sources.push(Arc::new(side));
                self.sources.len() - 1
            }
        };
        let source = u16::try_from(source).unwrap_or(u16::MAX);
        let result = u16::try_from(self.results.len()).ok();
        match result.filter(|result| *result < u16::MAX - 1) {
            Some(result) if self.bytes + json.len() <= MAX_BYTES => {
                self.bytes += json.len();
                self.results.push((source, ordinal));
                self.waiting.push((result, json.into()));
            }
            _ => {
                self.gaps.insert(source, Gap::Full);
            }
        }
    }

    /// How many results it has taken.
    pub(super) fn results(&self) -> usize {
        self.results.len()
    }

    /// How many bytes of results wait.
    pub(super) fn backlog(&self) -> usize {
        self.waiting.iter().map(|(_, json)| json.len()).sum()
    }

    /// Looks at the results that wait.
    pub(super) fn catch_up(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let from = self.text.len();
        for (result, json) in std::mem::take(&mut self.waiting) {
            self.learn(result, json.as_bytes());
        }
        self.fill_filters(from);
        if self.grams.is_some() {
            self.fill_grams(from);
            self.fill_shared(from);
        }
    }

    /// Makes the fingerprints ready by which results are known, if they are not.
    pub(super) fn ready(&mut self) {
        if self.grams.is_none() {
            let grams = (self.text.len() / SAMPLE).max(MIN_GRAMS);
            self.grams = Some(Prints::with_filter(grams));
            self.fill_grams(0);
            self.fill_shared(0);
        }
    }

    /// Whether several sources have anything in common.
    pub(super) fn shares(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Whether this fingerprint is probably of a text that several sources have.
    pub(super) fn is_shared(&self, gram: u64) -> bool {
        self.shared.has(gram)
    }

    /// Where in the text this fingerprint is, in the order in which results
    /// came: one place for each source. None before [`Self::ready`].
    pub(super) fn places(&self, gram: u64) -> impl Iterator<Item = usize> {
        let places = self.grams.iter().flat_map(move |grams| grams.find(gram));
        places.map(|place| place as usize)
    }

    /// Whether [`Self::places`] has probably any of this fingerprint. "No" is certain.
    pub(super) fn may_know(&self, gram: u64) -> bool {
        self.grams
            .as_ref()
            .is_some_and(|grams| grams.may_have(gram))
    }

    /// Whether another source than this one has a fingerprint.
    pub(super) fn is_anothers(&self, source: u16, gram: u64) -> bool {
        let mut places = self.places(gram);
        places.any(|place| self.origin_at(place).0 != source)
    }

    /// The strings of all results, in normal form, each of them with its end.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Has the processor bring what [`Self::places`] looks at first.
    pub(super) fn fetch_places(&self, gram: u64) {
        if let Some(grams) = &self.grams {
            grams.fetch(gram);
        }
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

    /// How many bytes of `text` are the same, but for case, as those at this
    /// place.
    pub(super) fn common(&self, place: usize, text: &[u8]) -> usize {
        same_bytes(self.text.get(place..).unwrap_or_default(), text)
    }

    /// How many bytes at the end of `text` are the same, but for case, as those
    /// before this place.
    pub(super) fn common_before(&self, place: usize, text: &[u8]) -> usize {
        let before = self.text.get(..place).unwrap_or_default();
        let bytes = before.iter().rev().zip(text.iter().rev());
        bytes.take_while(|(a, b)| is_same(**a, **b)).count()
    }

    /// The results with this number, in the order they came.
    pub(super) fn results_with_number(&self, value: u64) -> impl Iterator<Item = u16> {
        let results = self.numbers.find(self.key.number(value));
        results.filter_map(|result| u16::try_from(result).ok())
    }

    /// Whether there is any number in it.
    pub(super) fn has_numbers(&self) -> bool {
        self.numbers.len() > 0
    }

    /// The source of a result, by its place among the sources, and the ordinal
    /// of its call.
    pub(super) fn origin(&self, result: u16) -> (u16, usize) {
        let origin = self.results.get(usize::from(result)).copied();
        origin.unwrap_or_default()
    }

    /// The same of the result that has this place of the text.
    pub(super) fn origin_at(&self, place: usize) -> (u16, usize) {
        self.origin(self.result_at(place))
    }

    /// The result that has this place of the text.
    pub(super) fn result_at(&self, place: usize) -> u16 {
        result_at(&self.begins, place)
    }

    /// The sources that are not all in the index, and why.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (&Arc<Side>, Gap)> {
        self.gaps
            .iter()
            .filter_map(|(source, gap)| Some((self.sources.get(usize::from(*source))?, *gap)))
    }

    /// The filter of what others than this server said.
    pub(super) fn others(&mut self, server: &str) -> Place {
        let said = || said(&self.begins, &self.text, &self.results, &self.sources);
        match self.filters.others(server, self.key, said) {
            Ok(others) => others,
            Err(_) => {
                self.all_full();
                Place::NOTHING
            }
        }
    }

    /// Puts what was learnt since the text was this long into the filters.
    fn fill_filters(&mut self, from: usize) {
        let known = self.begins.partition_point(|(begin, _)| *begin < from);
        let said = said(&self.begins, &self.text, &self.results, &self.sources);
        if self.filters.fill(self.key, &said, known).is_err() {
            self.all_full();
        }
    }

    /// Without memory nothing can be compared.
    fn all_full(&mut self) {
        for source in 0..self.sources.len() {
            let source = u16::try_from(source).unwrap_or(u16::MAX);
            self.gaps.insert(source, Gap::Full);
        }
    }

    fn fill_grams(&mut self, from: usize) {
        let Some(prints) = &mut self.grams else {
            return;
        };
        let (results, begins) = (&self.results, &self.begins);
        let again = &mut self.again;
        again.resize(self.text.len() / SAMPLE + 1, 0);
        let first = begins.partition_point(|(begin, _)| *begin < from);
        for (place, (begin, result)) in begins.iter().enumerate().skip(first) {
            let end = begins.get(place + 1).map_or(self.text.len(), |next| next.0);
            let had = Cell::new(None);
            let same = |held: u32| {
                let place = held as usize;
                let same =
                    place >= *begin || same_source(results, *result, result_at(begins, place));
                had.set(Some(held).filter(|_| same));
                same
            };
            let mut at = *begin;
            for piece in pieces(self.text.get(*begin..end).unwrap_or_default()) {
                let windows = piece.windows(GRAM).enumerate().step_by(SAMPLE);
                for (window, bytes) in windows {
                    let (Some(bytes), Ok(place)) =
                        (bytes.first_chunk(), u32::try_from(at + window))
                    else {
                        continue;
                    };
                    if let Some(next) = self.key.gram(piece, window + AHEAD * SAMPLE) {
                        prints.fetch(next);
                    }
                    had.set(None);
                    let inserted = prints.insert(self.key.window(bytes), place, same);
                    if let Some(had) = had.get() {
                        let [had, here] = [had, place].map(|place| place as usize / SAMPLE);
                        let next = again.get(had).copied().unwrap_or(0);
                        for (at, next) in [(here, next), (had, place + 1)] {
                            if let Some(again) = again.get_mut(at) {
                                *again = next;
                            }
                        }
                    }
                    if !inserted && let Some((source, _)) = results.get(usize::from(*result)) {
                        self.gaps.insert(*source, Gap::Crowded);
                    }
                }
                at += piece.len() + 1;
            }
        }
    }

    fn fill_shared(&mut self, from: usize) {
        let ends = self.begins.iter().skip(1).map(|(begin, _)| *begin);
        let spans = self.begins.iter().zip(ends.chain([self.text.len()]));
        let spans = spans.map(|((begin, result), end)| Span {
            source: self.origin(*result).0,
            range: *begin..end,
        });
        let spans: Vec<Span> = spans.collect();
        let mut shared = std::mem::take(&mut self.shared);
        let filled = shared.fill(self, &spans, from);
        self.shared = shared;
        if filled.is_err() {
            self.all_full();
        }
    }

    fn learn(&mut self, result: u16, json: &[u8]) {
        let begin = self.text.len();
        self.begins.push((begin, result));
        // What only numbers are looked for in.
        let mut rest = Vec::new();
        let text = &mut self.text;
        text.reserve(json.len());
        strings(json, |part, is_string| {
            if part.len() < MIN_DIGITS as usize {
                return;
            }
            let to = if is_string && part.len() >= MIN_PIECE {
                &mut *text
            } else {
                &mut rest
            };
            if is_string {
                append(part, to);
            } else {
                to.extend_from_slice(part);
            }
            to.push(END);
        });
        let mut found = Vec::new();
        // As long as exponents have their sign.
        answered(text.get(begin..).unwrap_or_default(), |value| {
            found.push(value);
        });
        answered(&rest, |value| found.push(value));
        plus_is_space(text, begin);
        self.learn_numbers(result, found);
    }

    fn learn_numbers(&mut self, result: u16, found: Vec<u64>) {
        let results = &self.results;
        let same = |held| u16::try_from(held).is_ok_and(|held| same_source(results, result, held));
        for value in found {
            let number = self.key.number(value);
            let taken = self.numbers.len() < MAX_NUMBERS
                && self.numbers.insert(number, u32::from(result), same);
            if !taken && let Some((source, _)) = results.get(usize::from(result)) {
                self.gaps.insert(*source, Gap::Full);
            }
        }
    }
}

/// The strings of all results, and who said them.
fn said<'a>(
    begins: &'a [(usize, u16)],
    text: &'a [u8],
    results: &[(u16, usize)],
    sources: &'a [Arc<Side>],
) -> Vec<Said<'a>> {
    let ends = begins.iter().skip(1).map(|(begin, _)| *begin);
    let ends = ends.chain([text.len()]);
    let said = begins.iter().zip(ends).map(|((begin, result), end)| {
        let source = results.get(usize::from(*result));
        let source = source.and_then(|(source, _)| sources.get(usize::from(*source)));
        let server = source.map_or("", |source| source.server.as_str());
        (server, text.get(*begin..end).unwrap_or_default())
    });
    said.collect()
}

/// Whether two results are of the same source.
fn same_source(results: &[(u16, usize)], one: u16, other: u16) -> bool {
    let source = |result: u16| results.get(usize::from(result)).map(|origin| origin.0);
    source(one) == source(other)
}

/// The result that has this place of the text.
fn result_at(begins: &[(usize, u16)], place: usize) -> u16 {
    let after = begins.partition_point(|(begin, _)| *begin <= place);
    let begin = begins.get(after.wrapping_sub(1));
    begin.map_or(u16::MAX, |(_, result)| *result)
}

/// How many bytes at the beginning are the same, but for case as a fingerprint
/// sees it.
fn same_bytes(one: &[u8], other: &[u8]) -> usize {
    const CASE: u64 = 0x2020_2020_2020_2020;
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let mut same = 0;
    for (one, other) in words {
        let different = (u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other)) & !CASE;
        if different != 0 {
            return same + different.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    let (one, other) = (one.iter().skip(same), other.iter().skip(same));
    let bytes = one.zip(other);
    same + bytes.take_while(|(a, b)| is_same(**a, **b)).count()
}

fn is_same(one: u8, other: u8) -> bool {
    (one ^ other) & 0xDF == 0
}

/// The strings of a stretch of the text.
pub(super) fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(END, rest)?;
        let (piece, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        Some(piece)
    })
}

//! What a run's results had in them: fingerprints, and how they come to be.

use std::collections::BTreeMap;

use super::finding::Side;
use super::grams::{Filter, GRAM, Prints, gram, number};
use super::normal::{Normaliser, plus_is_space, strings};
use super::numbers::numbers;

/// The most bytes of results, as JSON, that one run's index takes.
pub(super) const MAX_BYTES: usize = 10 << 20;

/// The shortest piece that counts as copied, in bytes of normal form.
pub(super) const MIN_PIECE: usize = 16;

/// Every piece of the shortest length has a fingerprint at one of so many
/// places side by side.
pub(super) const SAMPLE: usize = MIN_PIECE - GRAM + 1;

/// The most numbers that one run's index takes.
const MAX_NUMBERS: usize = 1 << 18;

/// Between two strings of the index. No text has it.
const END: u8 = 0xFF;

/// The results of one run.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) normaliser: Normaliser,
    /// The tools that results came from.
    pub(super) sources: Vec<Side>,
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
    pub(super) filter: Filter,
    /// Made when a piece is first found that is probably a copy.
    grams: Option<Prints>,
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
            normaliser: Normaliser::new(),
            sources: Vec::new(),
            results: Vec::new(),
            waiting: Vec::new(),
            bytes: 0,
            text: Vec::new(),
            begins: Vec::new(),
            filter: Filter::default(),
            grams: None,
            numbers: Prints::default(),
            gaps: BTreeMap::new(),
        }
    }

    /// Takes a result, to be looked at when it is needed.
    pub(super) fn take(&mut self, side: Side, ordinal: usize, json: &str) {
        let source = match self.sources.iter().position(|known| *known == side) {
            Some(known) => known,
            None => {
                self.sources.push(side);
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

    /// Looks at the results that wait.
    pub(super) fn catch_up(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let from = self.text.len();
        let mut scratch = Vec::new();
        for (result, json) in std::mem::take(&mut self.waiting) {
            self.begins.push((self.text.len(), result));
            strings(json.as_bytes(), |part, is_string| {
                if is_string {
                    scratch.clear();
                    self.normaliser.append(part, &mut scratch);
                    plus_is_space(&mut scratch);
                    if scratch.len() >= MIN_PIECE {
                        self.text.extend_from_slice(&scratch);
                        self.text.push(END);
                    }
                }
                let part = if is_string { &scratch } else { part };
                numbers(part, |value, _| {
                    let taken = self.numbers.len() < MAX_NUMBERS && {
                        let same = same_source(&self.results, result);
                        self.numbers.insert(number(value), result, same)
                    };
                    if !taken && let Some((source, _)) = self.results.get(usize::from(result)) {
                        self.gaps.insert(*source, Gap::Full);
                    }
                });
            });
        }
        self.fill_filter(from);
        if self.grams.is_some() {
            self.fill_grams(from);
        }
    }

    /// Makes the fingerprints ready by which results are known, if they are not.
    pub(super) fn ready(&mut self) {
        if self.grams.is_none() {
            self.grams = Some(Prints::with_room(self.text.len() / SAMPLE));
            self.fill_grams(0);
        }
    }

    /// The results with this fingerprint, in the order they came. None before
    /// [`Self::ready`].
    pub(super) fn results_with(&self, gram: u64) -> impl Iterator<Item = u16> {
        self.grams.iter().flat_map(move |grams| grams.find(gram))
    }

    /// The results with this number, in the order they came.
    pub(super) fn results_with_number(&self, value: u64) -> impl Iterator<Item = u16> {
        self.numbers.find(number(value))
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

    /// The sources that are not all in the index, and why.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (&Side, Gap)> {
        self.gaps
            .iter()
            .filter_map(|(source, gap)| Some((self.sources.get(usize::from(*source))?, *gap)))
    }

    fn fill_filter(&mut self, from: usize) {
        let mut from = from;
        if self.filter.room() < self.text.len() {
            // Once for what there is, and four times as much when that is not
            // enough: making it anew costs a third more than having known.
            let grown = (self.filter.room() * 4).min(MAX_BYTES);
            let room = self.text.len().max(grown);
            match Filter::with_room(room) {
                Ok(filter) => {
                    self.filter = filter;
                    from = 0;
                }
                Err(_) => self.all_full(),
            }
        }
        let text = self.text.get(from..).unwrap_or_default();
        for piece in pieces(text) {
            for window in 0..(piece.len() + 1).saturating_sub(GRAM) {
                if let Some(gram) = gram(piece, window) {
                    self.filter.insert(gram);
                }
            }
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
        let first = self.begins.partition_point(|(begin, _)| *begin < from);
        let begins = self.begins.get(first..).unwrap_or_default();
        for (place, (begin, result)) in begins.iter().enumerate() {
            let end = begins.get(place + 1).map_or(self.text.len(), |next| next.0);
            for piece in pieces(self.text.get(*begin..end).unwrap_or_default()) {
                for window in (0..(piece.len() + 1).saturating_sub(GRAM)).step_by(SAMPLE) {
                    let Some(gram) = gram(piece, window) else {
                        continue;
                    };
                    let same = same_source(&self.results, *result);
                    if !prints.insert(gram, *result, same)
                        && let Some((source, _)) = self.results.get(usize::from(*result))
                    {
                        self.gaps.insert(*source, Gap::Crowded);
                    }
                }
            }
        }
    }
}

/// Whether another result is of the same source.
fn same_source(results: &[(u16, usize)], result: u16) -> impl Fn(u16) -> bool {
    let source = |result: u16| results.get(usize::from(result)).map(|origin| origin.0);
    let ours = source(result);
    move |other| source(other) == ours
}

fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(END, rest)?;
        let (piece, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        Some(piece)
    })
}

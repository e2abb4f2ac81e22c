//! What a run's results had in them: fingerprints, and how they come to be.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::filters::{Filters, Place, Said};
use super::finding::Side;
use super::grams::{GRAM, Key, Prints};
use super::normal::{END, append, plus_is_space, strings};
use super::numbers::{MIN_DIGITS, answered};
use super::shared::Shared;
use super::tables::Tables;

/// The most bytes of results, as JSON, that one run's index takes.
pub(super) const MAX_BYTES: usize = 10 << 20;

/// The shortest piece that counts as copied, in bytes of normal form.
pub(super) const MIN_PIECE: usize = 16;

/// Every piece of the shortest length has a fingerprint at one of so many
/// places side by side.
pub(super) const SAMPLE: usize = MIN_PIECE - GRAM + 1;

/// The most numbers that one run's index takes.
pub(super) const MAX_NUMBERS: usize = 1 << 18;

/// How many fingerprints ahead their places are fetched: nearly all of them lie in memory that
/// the processor has not near.
pub(super) const AHEAD: usize = 16;

/// The results of one run.
#[derive(Debug, Clone)]
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
    tables: OnceLock<Tables>,
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
            tables: OnceLock::new(),
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

    /// How many bytes of results have to be gone through for filters and tables that are not
    /// there, or have to be larger, if a look at what goes to this server needs them.
    pub(super) fn to_be_made(&self, server: &str) -> usize {
        let all = self.text.len() + self.backlog();
        let waiting = self.waiting.iter().filter_map(|(result, json)| {
            let source = self.sources.get(usize::from(self.origin(*result).0));
            source.map(|source| (source.server.as_str(), json.len()))
        });
        let has_room = || self.filters.have_room(&waiting.collect::<Vec<_>>());
        let filters = match self.filters.others(server) {
            Some(_) if has_room() => 0,
            _ => all,
        };
        let tables = match self.tables.get() {
            None => all,
            Some(_) => 0,
        };
        filters + tables
    }

    /// Whether there are none.
    pub(super) fn is_caught_up(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Looks at the results that wait.
    pub(super) fn catch_up(&mut self) {
        let from = self.text.len();
        let tables = self.tables.take();
        for (result, json) in std::mem::take(&mut self.waiting) {
            self.learn(result, json.as_bytes());
        }
        self.fill_filters(from);
        if let Some(mut tables) = tables {
            tables.fill(self, from);
            self.tables = OnceLock::from(tables);
        }
    }

    /// Where in the text fingerprints are. Made when it is first needed.
    pub(super) fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Tables::of(self))
    }

    /// What several sources have, if they have anything in common. Nothing before the first
    /// [`Self::tables`].
    pub(super) fn shared(&self) -> Option<&Shared> {
        let shared = self.tables.get().map(Tables::shared);
        shared.filter(|shared| !shared.is_empty())
    }

    /// The strings of all results, in normal form, each of them with its end.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Each result and where its strings are in the text.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u16, Range<usize>)> {
        let ends = self.begins.iter().skip(1).map(|(begin, _)| *begin);
        let ends = ends.chain([self.text.len()]);
        let spans = self.begins.iter().zip(ends);
        spans.map(|((begin, result), end)| (*result, *begin..end))
    }

    /// Where each result's strings begin.
    pub(super) fn begins(&self) -> &[(usize, u16)] {
        &self.begins
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

    /// Whether two results are of the same source.
    pub(super) fn same_source(&self, one: u16, other: u16) -> bool {
        same_source(&self.results, one, other)
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
        let tables = self.tables.get();
        let gap = move |source: u16| {
            let full = || tables.is_some_and(Tables::is_full).then_some(Gap::Full);
            let crowded = || tables.is_some_and(|tables| tables.is_crowded(source));
            let known = self.gaps.get(&source).copied();
            known
                .or_else(full)
                .or_else(|| crowded().then_some(Gap::Crowded))
        };
        let sources = self.sources.iter().zip(0..);
        sources.filter_map(move |(side, source)| Some((side, gap(source)?)))
    }

    /// The filter of what others than this server said; `None` before it is [made](Self::join).
    pub(super) fn others(&self, server: &str) -> Option<Place> {
        self.filters.others(server)
    }

    /// Makes one filter of everybody's words.
    pub(super) fn join(&mut self) -> Place {
        let said = said(&self.begins, &self.text, &self.results, &self.sources);
        match self.filters.join(self.key, &said) {
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
pub(super) fn result_at(begins: &[(usize, u16)], place: usize) -> u16 {
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

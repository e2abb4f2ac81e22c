//! Finding tools by what they do: an index over what servers say of them.
//!
//! Nothing here does IO or reads a clock. Definitions and queries are hostile
//! input: what is read of each is bounded, and how often a word is repeated soon
//! stops to count.

mod document;
mod fuse;
mod names;
mod pattern;
mod query;
mod text;

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use fuse::fuse;
pub use pattern::{Matched, PatternFault};

use crate::ToolDefinition;
use document::Document;
use names::{Names, Spelling};
use query::{Group, Vocabulary};
use text::Term;

/// What the likeness of a name counts, from the least that counts to equal.
const NAME_BONUS: f32 = 6.0;
/// How much it counts that a tool has all the words of a query: 0 for not at all.
const COVERAGE: f32 = 0.5;

/// A tool as it is put into an index.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The name of its function in a script.
    pub function: &'a str,
    /// The tool as its server lists it.
    pub definition: &'a Arc<ToolDefinition>,
    /// Words it is to be found by besides its own.
    pub keywords: Vec<&'a str>,
    /// What its server is for.
    pub about: Option<&'a str>,
}

/// A tool in a ranking, which is a list of these with the best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked<'a> {
    /// The name of its function in a script.
    pub function: &'a str,
    /// The server as it is configured.
    pub server: &'a str,
    /// How well it fits: more is better. It compares within one ranking only.
    pub score: f64,
}

/// Tools, to be found by what is said of them. It does not change once built.
#[derive(Debug, Default)]
pub struct SearchIndex {
    documents: Vec<Arc<Document>>,
    /// Of each document, its place in `servers`.
    server_of: Vec<u32>,
    servers: Vec<Box<str>>,
    /// Where the tools with a term are in `postings`.
    terms: FxHashMap<Term, Postings>,
    /// Documents and what the term counts in them, term by term.
    postings: Vec<(u32, f32)>,
    names: Names,
    spelling: Spelling,
}

#[derive(Debug, Clone, Copy, Default)]
struct Postings {
    begin: u32,
    length: u32,
}

impl SearchIndex {
    /// The index of these tools: some 20 µs for each.
    pub fn build<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        Self::build_after(&Self::default(), entries)
    }

    /// As [`SearchIndex::build`], without reading again those tools that are as
    /// they were `before`: the same definition, not an equal one.
    pub fn build_after<'a>(before: &Self, entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let known = before.documents.iter();
        let known: FxHashMap<_, _> = known
            .map(|document| (Arc::as_ptr(&document.definition), document))
            .collect();
        let read = |entry: Entry<'a>| match known.get(&Arc::as_ptr(entry.definition)) {
            Some(document) if document.is_of(&entry) => Arc::clone(document),
            _ => Arc::new(Document::read(&entry)),
        };
        let documents: Vec<Arc<Document>> = entries.into_iter().map(read).collect();
        let (terms, postings) = posted(&documents);
        let (servers, server_of) = servers(&documents);
        let names = documents.iter();
        let names = names.map(|document| (&*document.function, &*document.definition.name));
        let spelled = documents.iter().flat_map(|document| &document.spelled);
        Self {
            names: Names::of(names),
            spelling: Spelling::of(spelled.map(|word| &**word)),
            terms,
            postings,
            servers,
            server_of,
            documents,
        }
    }

    /// How many tools there are of the servers that `accepts` takes.
    pub fn count(&self, accepts: impl Fn(&str) -> bool) -> usize {
        let accepted = self.accepted(accepts);
        let servers = self.server_of.iter();
        servers
            .filter(|server| accepted.get(**server as usize) == Some(&true))
            .count()
    }

    /// The tools that fit the words of a query best, of the servers that
    /// `accepts` takes; at most `limit`. Of equals, the first by name comes first.
    pub fn by_words(
        &self,
        query: &str,
        accepts: impl Fn(&str) -> bool,
        limit: usize,
    ) -> Vec<Ranked<'_>> {
        let groups = query::groups(query, self);
        let mut scores = Scores::of(self.documents.len());
        for group in &groups {
            self.add(group, &mut scores);
        }
        let words = groups.iter().filter(|group| group.is_word).count();
        scores.prefer_covered(words);
        self.add_named(query, &mut scores);
        let accepted = self.accepted(accepts);
        let found = scores.total.into_iter().enumerate();
        let found = found.filter(|(index, score)| {
            let server = self.server_of.get(*index);
            let accepted = server.and_then(|server| accepted.get(*server as usize));
            *score > 0.0 && accepted == Some(&true)
        });
        let found = found.map(|(index, score)| (index, f64::from(score)));
        self.best(found.collect(), limit)
    }

    /// Bytes that it takes, besides the definitions, which the catalog has anyway.
    pub fn bytes(&self) -> usize {
        let documents: usize = self.documents.iter().map(|document| document.bytes()).sum();
        documents
            + size_of_val(&*self.documents)
            + size_of_val(&*self.server_of)
            // The table has a byte of its own for each place, and is filled to 7/8.
            + self.terms.capacity() * 8 / 7 * (size_of::<(Term, Postings)>() + 1)
            + size_of_val(&*self.postings)
            + self.names.bytes()
            + self.spelling.bytes()
    }

    /// Adds to each tool what the best of the group's terms counts in it.
    fn add(&self, group: &Group, scores: &mut Scores) {
        for (term, weight) in &group.terms {
            let postings = self.postings_of(*term);
            let rarity = self.rarity(postings.len()) * weight;
            for (document, counts) in postings {
                scores.raise(*document as usize, rarity * counts);
            }
        }
        scores.end_group(group.is_word);
    }

    /// Adds what it counts that a name is like the whole query.
    fn add_named(&self, query: &str, scores: &mut Scores) {
        let is_name = !query.trim().contains(char::is_whitespace);
        for (index, likeness) in self.names.like(query) {
            // A few words may be like a name by chance, unless they are the name.
            if is_name || likeness >= 1.0 {
                scores.add(index, NAME_BONUS * likeness as f32);
            }
        }
    }

    /// What a term counts that this many tools have.
    fn rarity(&self, holders: usize) -> f32 {
        let (all, holders) = (self.documents.len() as f32, holders as f32);
        (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
    }

    fn postings_of(&self, term: Term) -> &[(u32, f32)] {
        let Postings { begin, length } = self.terms.get(&term).copied().unwrap_or_default();
        let (begin, end) = (begin as usize, begin as usize + length as usize);
        self.postings.get(begin..end).unwrap_or_default()
    }

    /// Of each server, whether it is accepted.
    fn accepted(&self, accepts: impl Fn(&str) -> bool) -> Vec<bool> {
        self.servers.iter().map(|server| accepts(server)).collect()
    }

    /// The best of what was found, in order.
    fn best(&self, mut found: Vec<(usize, f64)>, limit: usize) -> Vec<Ranked<'_>> {
        let function = |index: usize| self.documents.get(index).map(|found| &*found.function);
        let order = |(a, score_a): &(usize, f64), (b, score_b): &(usize, f64)| {
            let by_name = || function(*a).cmp(&function(*b));
            score_b.total_cmp(score_a).then_with(by_name)
        };
        let limit = limit.min(found.len());
        if limit == 0 {
            return Vec::new();
        }
        found.select_nth_unstable_by(limit - 1, order);
        found.truncate(limit);
        found.sort_unstable_by(order);
        let found = found.into_iter();
        found
            .filter_map(|(index, score)| Some(self.documents.get(index)?.ranked(score)))
            .collect()
    }
}

impl Vocabulary for SearchIndex {
    fn has(&self, term: Term) -> bool {
        self.terms.contains_key(&term)
    }

    fn near(&self, word: &str) -> Vec<&str> {
        self.spelling.near(word)
    }
}

impl Document {
    fn ranked(&self, score: f64) -> Ranked<'_> {
        Ranked {
            function: &self.function,
            server: &self.definition.server,
            score,
        }
    }
}

impl Ranked<'_> {
    /// The better one first; of equals, the first by name.
    fn order(&self, other: &Self) -> Ordering {
        let by_name = || self.function.cmp(other.function);
        other.score.total_cmp(&self.score).then_with(by_name)
    }
}

/// The scores of all tools while a query is answered.
struct Scores {
    total: Vec<f32>,
    /// What the group at hand has added so far.
    of_group: Vec<f32>,
    /// How many words of the query a tool has.
    covered: Vec<u8>,
    touched: Vec<usize>,
}

impl Scores {
    fn of(documents: usize) -> Self {
        Self {
            total: vec![0.0; documents],
            of_group: vec![0.0; documents],
            covered: vec![0; documents],
            touched: Vec::new(),
        }
    }

    /// Has the group add this much at least.
    fn raise(&mut self, index: usize, score: f32) {
        let Some(of_group) = self.of_group.get_mut(index) else {
            return;
        };
        if *of_group == 0.0 {
            self.touched.push(index);
        }
        *of_group = of_group.max(score);
    }

    fn end_group(&mut self, is_word: bool) {
        for index in std::mem::take(&mut self.touched) {
            if let Some(of_group) = self.of_group.get_mut(index) {
                let score = std::mem::take(of_group);
                self.add(index, score);
            }
            if let Some(covered) = self.covered.get_mut(index) {
                // Who has two words as one has both.
                *covered = if is_word {
                    *covered + 1
                } else {
                    (*covered).max(2)
                };
            }
        }
    }

    fn prefer_covered(&mut self, words: usize) {
        let words = words.max(1) as f32;
        for (total, covered) in self.total.iter_mut().zip(&self.covered) {
            if *total > 0.0 {
                *total *= (f32::from(*covered) / words).powf(COVERAGE);
            }
        }
    }

    fn add(&mut self, index: usize, score: f32) {
        if let Some(total) = self.total.get_mut(index) {
            *total += score;
        }
    }
}

/// The terms of all documents, and which documents have each.
fn posted(documents: &[Arc<Document>]) -> (FxHashMap<Term, Postings>, Vec<(u32, f32)>) {
    let mut terms: FxHashMap<Term, Postings> = FxHashMap::default();
    let mut all = 0_usize;
    for document in documents {
        all += document.terms.len();
        for (term, _) in &document.terms {
            terms.entry(*term).or_default().length += 1;
        }
    }
    let mut sum = 0;
    for postings in terms.values_mut() {
        postings.begin = sum;
        sum += std::mem::take(&mut postings.length);
    }
    let mut posted = vec![(0, 0.0); all];
    for (index, document) in documents.iter().enumerate() {
        for (term, counts) in &document.terms {
            if let Some(postings) = terms.get_mut(term)
                && let Some(place) = posted.get_mut((postings.begin + postings.length) as usize)
            {
                *place = (index as u32, *counts);
                postings.length += 1;
            }
        }
    }
    (terms, posted)
}

/// The servers, and of each document which one it is.
fn servers(documents: &[Arc<Document>]) -> (Vec<Box<str>>, Vec<u32>) {
    let mut servers: Vec<Box<str>> = Vec::new();
    let mut places: FxHashMap<&str, u32> = FxHashMap::default();
    let server_of = documents.iter().map(|document| {
        let server = document.definition.server.as_str();
        *places.entry(server).or_insert_with(|| {
            servers.push(server.into());
            servers.len() as u32 - 1
        })
    });
    let server_of = server_of.collect();
    (servers, server_of)
}

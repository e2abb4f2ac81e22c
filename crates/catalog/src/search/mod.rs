//! Searches tools by words (BM25F over the parts of a definition), by name, and by expression.
//!
//! Definitions and queries are hostile input: the bytes that are read of each are bounded, and a
//! repeated word soon adds nothing.

mod document;
mod fuse;
mod query;
mod regex;
mod terms;
mod typos;
mod unknown;

use rustc_hash::FxHashMap;

pub use document::{Entry, Ranked};
pub use fuse::fuse;
pub use regex::PatternFault;
pub use unknown::UnknownWords;

use document::Document;
use query::Group;
use terms::Term;
pub(crate) use typos::{Asked, MAX_ASKED, plain};
use typos::{Names, Spelling};

/// The weight of a name's likeness, from the least that counts to equal.
const NAME_BONUS: f32 = 6.0;
/// The weight of having all the words of a query: 0 for not at all.
const COVERAGE: f32 = 0.5;
/// The part of a query that a tool must have to fit well.
const FITTING: f32 = 0.5;
/// The weight of a tool that its server calls deprecated, unless it is asked for by its name.
pub const DEPRECATED: f32 = 0.5;

/// An index of tools by the words of their definitions. It does not change once built.
#[derive(Debug, Default)]
pub struct SearchIndex {
    documents: Vec<Document>,
    /// The documents with a term, each with the term's weight in it.
    postings: FxHashMap<Term, Vec<(usize, f32)>>,
    names: Names,
    spelling: Spelling,
}

/// The tools that a query or an expression fits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matched<'a> {
    /// The tools, the best first. By an expression: those with it in their name, then in their
    /// title, then in their description; each of these by name.
    pub ranked: Vec<Ranked<'a>>,
    /// The number of tools beyond the limit.
    pub more: usize,
    /// True if one of them has most of the query, counted by how rare its words are.
    pub fits: bool,
    /// True if all tools were looked at.
    pub is_complete: bool,
}

impl SearchIndex {
    /// The index of these tools: some 20 µs for each.
    pub fn build<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let documents = entries.into_iter().map(|entry| Document::read(&entry));
        let documents: Vec<Document> = documents.collect();
        let mut postings: FxHashMap<Term, Vec<(usize, f32)>> = FxHashMap::default();
        for (index, document) in documents.iter().enumerate() {
            for (term, weight) in &document.terms {
                postings.entry(*term).or_default().push((index, *weight));
            }
        }
        let names = documents.iter();
        let names = names.map(|document| (&*document.function, &*document.definition.name));
        let words = documents.iter().flat_map(|document| &document.spelled);
        Self {
            names: Names::new(names),
            spelling: Spelling::new(words.map(|word| &**word)),
            postings,
            documents,
        }
    }

    /// The number of tools of the servers that `accepts` takes.
    pub fn count(&self, accepts: impl Fn(&str) -> bool) -> usize {
        let servers = self.documents.iter().map(Document::server);
        servers.filter(|server| accepts(server)).count()
    }

    /// The tools that fit the words of a query best, of the servers that
    /// `accepts` takes; at most `limit`. Of equals, the first by name comes first.
    pub fn by_words(
        &self,
        query: &str,
        accepts: impl Fn(&str) -> bool,
        limit: usize,
    ) -> Matched<'_> {
        let groups = query::groups(query, self);
        let mut scores = Scores::of(self.documents.len());
        let mut whole = 0.0;
        for group in &groups {
            whole += self.add(group, &mut scores);
        }
        let words = groups.iter().filter(|group| group.is_word).count();
        scores.prefer_covered(words);
        for (document, total) in self.documents.iter().zip(&mut scores.total) {
            if document.is_deprecated {
                *total *= DEPRECATED;
            }
        }
        self.add_named(query, &mut scores);
        let mut fits = false;
        let found = scores.total.into_iter().zip(scores.share).enumerate();
        let found = found.filter_map(|(index, (score, share))| {
            let document = self.documents.get(index)?;
            let is_found = score > 0.0 && accepts(document.server());
            fits |= is_found && share > whole * FITTING;
            is_found.then_some((index, f64::from(score)))
        });
        let found = found.collect();
        Matched {
            fits,
            is_complete: true,
            ..self.best(found, limit)
        }
    }

    /// The tools whose function, name, title or description an expression fits,
    /// whatever the case, of the servers that `accepts` takes; at most `limit`.
    ///
    /// The time is linear in the texts and in the expression, which may be too
    /// long all the same: `go_on` is asked before each tool.
    /// The error: [`PatternFault`] for an expression that does not parse or is too large.
    pub fn by_pattern(
        &self,
        pattern: &str,
        accepts: impl Fn(&str) -> bool,
        limit: usize,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Matched<'_>, PatternFault> {
        let regex = regex::compile(pattern)?;
        let mut found = Vec::new();
        let mut is_complete = true;
        for (index, document) in self.documents.iter().enumerate() {
            if !accepts(document.server()) {
                continue;
            }
            if !go_on() {
                is_complete = false;
                break;
            }
            found.extend(regex::score(&regex, document).map(|score| (index, score)));
        }
        Ok(Matched {
            fits: true,
            is_complete,
            ..self.best(found, limit)
        })
    }

    /// Adds to each tool the score of the group's best term. Returns the rarity of the group: that of
    /// its first term that a tool has, and 0 if the group is not a word.
    fn add(&self, group: &Group, scores: &mut Scores) -> f32 {
        for (term, counts) in &group.terms {
            let postings = self.postings_of(*term);
            let rarity = self.rarity(postings.len()) * counts;
            for (document, weight) in postings {
                scores.raise(*document, rarity * weight, *counts);
            }
        }
        let holders = group.terms.iter().map(|(term, _)| self.postings_of(*term));
        let holders = holders.map(<[_]>::len).find(|holders| *holders > 0);
        let rarity = self.rarity(holders.unwrap_or_default()) * f32::from(u8::from(group.is_word));
        scores.end_group(group.is_word, rarity);
        rarity
    }

    /// Adds the score of names that are like the whole query.
    fn add_named(&self, query: &str, scores: &mut Scores) {
        let is_name = !query.trim().contains(char::is_whitespace);
        for (index, likeness) in self.names.like(query) {
            // A few words may be like a name by chance, unless they are the name.
            let is_old = |document: &Document| document.is_deprecated;
            let is_old = self.documents.get(index).is_some_and(is_old);
            if is_name || likeness >= 1.0 && !is_old {
                scores.add(index, NAME_BONUS * likeness as f32, f32::INFINITY);
            }
        }
    }

    /// The weight of a term that this many tools have.
    fn rarity(&self, holders: usize) -> f32 {
        let (all, holders) = (self.documents.len() as f32, holders as f32);
        (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
    }

    /// True if some tool has this term.
    fn has(&self, term: Term) -> bool {
        self.postings.contains_key(&term)
    }

    fn postings_of(&self, term: Term) -> &[(usize, f32)] {
        self.postings
            .get(&term)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The best of what was found, in order.
    fn best(&self, found: Vec<(usize, f64)>, limit: usize) -> Matched<'_> {
        let ranked = |(index, score): (usize, f64)| {
            let document = self.documents.get(index)?;
            Some((document.ranked(score), document.is_deprecated))
        };
        let mut ranked: Vec<_> = found.into_iter().filter_map(ranked).collect();
        ranked.sort_unstable_by(|(a, a_is_old), (b, b_is_old)| {
            let by_score = b.score.total_cmp(&a.score);
            by_score
                .then(a_is_old.cmp(b_is_old))
                .then_with(|| a.order(b))
        });
        let more = ranked.len().saturating_sub(limit);
        ranked.truncate(limit);
        Matched {
            ranked: ranked.into_iter().map(|(ranked, _)| ranked).collect(),
            more,
            ..Matched::default()
        }
    }
}

/// The scores of all tools while a query is answered.
struct Scores {
    total: Vec<f32>,
    /// The sum of the rarities of those words of the query that a tool has.
    share: Vec<f32>,
    /// The score that the current group has added so far, and the weight of its term.
    of_group: Vec<(f32, f32)>,
    /// The number of words of the query that a tool has.
    covered: Vec<u8>,
    touched: Vec<usize>,
}

impl Scores {
    fn of(documents: usize) -> Self {
        Self {
            total: vec![0.0; documents],
            share: vec![0.0; documents],
            of_group: vec![(0.0, 0.0); documents],
            covered: vec![0; documents],
            touched: Vec::new(),
        }
    }

    /// Has the group add this much at least.
    fn raise(&mut self, index: usize, score: f32, counts: f32) {
        let Some((of_group, max)) = self.of_group.get_mut(index) else {
            return;
        };
        if *of_group == 0.0 {
            self.touched.push(index);
        }
        *of_group = of_group.max(score);
        *max = max.max(counts);
    }

    fn end_group(&mut self, is_word: bool, rarity: f32) {
        for index in std::mem::take(&mut self.touched) {
            if let Some(of_group) = self.of_group.get_mut(index) {
                let (score, counts) = std::mem::take(of_group);
                self.add(index, score, rarity * counts);
            }
            if let Some(covered) = self.covered.get_mut(index) {
                *covered += u8::from(is_word);
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

    fn add(&mut self, index: usize, score: f32, share: f32) {
        if let (Some(total), Some(shared)) = (self.total.get_mut(index), self.share.get_mut(index))
        {
            *total += score;
            *shared += share;
        }
    }
}

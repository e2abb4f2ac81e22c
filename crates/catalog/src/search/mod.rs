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
        let mut scores = vec![Score::default(); self.documents.len()];
        let mut whole = 0.0;
        for group in &groups {
            whole += self.add(group, &mut scores);
        }
        let words = groups.iter().filter(|group| group.is_word).count().max(1) as f32;
        for (document, score) in self.documents.iter().zip(&mut scores) {
            if score.total > 0.0 {
                score.total *= (f32::from(score.covered) / words).powf(COVERAGE);
            }
            if document.is_deprecated {
                score.total *= DEPRECATED;
            }
        }
        self.add_named(query, &mut scores);
        let mut fits = false;
        let found = scores.iter().enumerate().filter_map(|(index, score)| {
            let document = self.documents.get(index)?;
            let is_found = score.total > 0.0 && accepts(document.server());
            fits |= is_found && score.share > whole * FITTING;
            is_found.then_some((index, f64::from(score.total)))
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
    fn add(&self, group: &Group, scores: &mut [Score]) -> f32 {
        for (term, counts) in &group.terms {
            let postings = self.postings_of(*term);
            let rarity = self.rarity(postings.len()) * counts;
            for (document, weight) in postings {
                if let Some(score) = scores.get_mut(*document) {
                    let (added, max) = &mut score.of_group;
                    *added = added.max(rarity * weight);
                    *max = max.max(*counts);
                }
            }
        }
        let holders = group.terms.iter().map(|(term, _)| self.postings_of(*term));
        let holders = holders.map(<[_]>::len).find(|holders| *holders > 0);
        let rarity = self.rarity(holders.unwrap_or_default()) * f32::from(u8::from(group.is_word));
        for score in scores.iter_mut().filter(|score| score.of_group.0 > 0.0) {
            let (added, counts) = std::mem::take(&mut score.of_group);
            score.total += added;
            score.share += rarity * counts;
            score.covered += u8::from(group.is_word);
        }
        rarity
    }

    /// Adds the score of names that are like the whole query.
    fn add_named(&self, query: &str, scores: &mut [Score]) {
        let is_name = !query.trim().contains(char::is_whitespace);
        for (index, likeness) in self.names.like(query) {
            // A few words may be like a name by chance, unless they are the name.
            let is_old = |document: &Document| document.is_deprecated;
            let is_old = self.documents.get(index).is_some_and(is_old);
            if (is_name || likeness >= 1.0 && !is_old)
                && let Some(score) = scores.get_mut(index)
            {
                score.total += NAME_BONUS * likeness as f32;
                score.share = f32::INFINITY;
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

/// The score of a tool while a query is answered.
#[derive(Clone, Copy, Default)]
struct Score {
    total: f32,
    /// The sum of the rarities of those words of the query that the tool has.
    share: f32,
    /// The score that the current group adds, and the weight of its term.
    of_group: (f32, f32),
    /// The number of words of the query that the tool has.
    covered: u8,
}

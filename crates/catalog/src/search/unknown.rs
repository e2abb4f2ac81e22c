//! The words of a query that no tool has.

use super::SearchIndex;
use super::document::{Document, start_of};
use super::query::{MAX_QUERY, MAX_WORDS, group_of, is_filler};
use super::terms::words;

/// Verbs of any request, which do not say what it is about.
const VERBS: &[&str] = &[
    "add", "change", "check", "create", "delete", "fetch", "find", "get", "give", "list", "look",
    "make", "new", "open", "query", "read", "remove", "retrieve", "run", "save", "search", "send",
    "set", "show", "store", "tell", "update", "use", "view", "write",
];

/// The words of a query that no tool has in any form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownWords {
    /// These words, in lower case and in the order of the query.
    pub words: Vec<String>,
    /// True if they are all that the query is about: the others are verbs of any request.
    pub is_topic: bool,
}

impl SearchIndex {
    /// The words of a query that no tool has, of the servers that `accepts` takes. Words that say
    /// nothing about a tool, such as `the`, are left out.
    pub fn unknown_words(&self, query: &str, accepts: impl Fn(&str) -> bool) -> UnknownWords {
        let is_accepted = |(index, _): &(usize, f32)| {
            let document = self.documents.get(*index).map(Document::server);
            document.is_some_and(&accepts)
        };
        let is_known = |word: &String| {
            let group = group_of(word, self);
            let mut terms = group.terms.iter();
            terms.any(|(term, _)| self.postings_of(*term).iter().any(is_accepted))
        };
        let all = words(start_of(query, MAX_QUERY), MAX_WORDS * 2);
        let telling = all.into_iter().filter(|word| !is_filler(word));
        let (known, words): (Vec<String>, Vec<String>) = telling.partition(is_known);
        let is_verb = |word: &String| VERBS.contains(&word.as_str());
        UnknownWords {
            is_topic: known.iter().all(is_verb) && !words.iter().all(is_verb),
            words,
        }
    }
}

//! A query as groups of terms; one term of each group suffices.

use super::SearchIndex;
use super::document::{joined, start_of};
use super::terms::{Term, words};

/// Bytes of a query that are read.
pub(super) const MAX_QUERY: usize = 2_000;
/// Words of a query that are looked for.
pub(super) const MAX_WORDS: usize = 32;

/// The weight of a synonym, where the word itself has 1.
const SYNONYM: f32 = 0.6;
/// The weight of a word that may have been meant by one that no tool has.
const MEANT: f32 = 0.8;

/// Alternative terms for one word.
#[derive(Debug)]
pub(super) struct Group {
    /// Each with its weight.
    pub(super) terms: Vec<(Term, f32)>,
    /// False for the name of a server, which has a group as a word besides.
    pub(super) is_word: bool,
}

/// The groups of a query, none twice.
pub(super) fn groups(query: &str, index: &SearchIndex) -> Vec<Group> {
    let all = words(start_of(query, MAX_QUERY), MAX_WORDS * 2);
    let telling: Vec<String> = all
        .iter()
        .filter(|word| !is_filler(word))
        .cloned()
        .collect();
    // A query that is "it" alone means the word.
    let mut words = if telling.is_empty() { all } else { telling };
    words.truncate(MAX_WORDS);
    let mut groups: Vec<Group> = Vec::new();
    for word in &words {
        let group = group_of(word, index);
        if groups.iter().all(|other| other.terms != group.terms) {
            groups.push(group);
        }
    }
    let pairs = joined(&words);
    for (pair, joined) in words.windows(2).zip(&pairs) {
        let joined = (Term::of(joined), 1.0);
        if !index.has(joined.0) {
            continue;
        }
        // A tool that has two words as one word has both.
        for word in pair {
            let own = Some((Term::of(word), 1.0));
            let mut of_word = groups.iter_mut();
            let of_word = of_word.find(|group| group.terms.first().copied() == own);
            if let Some(group) = of_word.filter(|group| !group.terms.contains(&joined)) {
                group.terms.push(joined);
            }
        }
    }
    for name in words.iter().chain(&pairs) {
        let terms = vec![(Term::of_server(name), 1.0)];
        let is_new = groups.iter().all(|group| group.terms != terms);
        if is_new && index.has(Term::of_server(name)) {
            groups.push(Group {
                terms,
                is_word: false,
            });
        }
    }
    groups
}

/// The terms for one word.
pub(super) fn group_of(word: &str, index: &SearchIndex) -> Group {
    let own = Term::of(word);
    let mut terms = vec![(own, 1.0)];
    for synonym in SYNONYMS
        .iter()
        .filter(|same| same.split(' ').any(|other| Term::of(other) == own))
    {
        let others = synonym.split(' ').map(Term::of).filter(|term| *term != own);
        terms.extend(others.map(|term| (term, SYNONYM)));
    }
    if !index.has(own) && terms.len() == 1 {
        let near = index.spelling.near(word);
        terms.extend(near.into_iter().map(|word| (Term::of(word), MEANT)));
    }
    Group {
        terms,
        is_word: true,
    }
}

/// True for words that say nothing about a tool.
pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.binary_search(&word).is_ok()
}

/// In alphabetical order.
const FILLERS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could",
    "do", "does", "every", "for", "from", "has", "have", "how", "i", "in", "into", "is", "it",
    "its", "let", "me", "my", "need", "of", "on", "one", "or", "our", "out", "please", "so",
    "some", "that", "the", "their", "them", "there", "these", "they", "this", "those", "to", "up",
    "want", "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would",
    "you", "your",
];

/// Words that mean the same in names of tools. None of the lines makes the queries worse that
/// ranking is tuned on, and most make them better; see `docs/search.md`.
const SYNONYMS: &[&str] = &[
    "get list read fetch show retrieve view",
    "create add new make insert",
    "create write open",
    "delete remove drop erase",
    "search find query look",
    "save write store",
    "remember store save add",
    "remember memory",
    "fact observation",
    "stop cancel abort end",
    "copy duplicate fork clone",
    "comment note remark",
    "ticket issue bug",
    "mr merge",
    "directory folder",
    "picture image photo screenshot",
    "popup dialog alert",
    "internet web online",
    "web website url",
    "open navigate visit",
    "run execute evaluate",
    "big large size",
    "article page",
    "sprint iteration",
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Entry;
    use super::*;
    use crate::ToolDefinition;

    /// An index of the tools `label`, `pullrequest`, `issue` and `map` of the server `maps`.
    fn known() -> SearchIndex {
        let tools = ["label", "pullrequest", "issue", "map"];
        let tools = tools.map(|tool| Arc::new(ToolDefinition::new("maps", tool)));
        SearchIndex::build(tools.iter().map(|definition| Entry {
            function: &definition.name,
            definition,
            keywords: Vec::new(),
            about: None,
        }))
    }

    #[test]
    fn fillers_are_in_order() {
        assert!(FILLERS.is_sorted());
    }

    #[test]
    fn a_query_is_read_into_groups() {
        let known = known();
        let check = |query: &str, expected: &[usize]| {
            let groups = groups(query, &known);
            let sizes: Vec<usize> = groups.iter().map(|group| group.terms.len()).collect();
            assert_eq!(sizes, expected, "{query}");
        };
        check("the label", &[1]);
        check("label labels LABEL", &[1]);
        check("lable", &[2]);
        // With the words that mean the same.
        check("issue", &[3]);
        check("request pull request", &[2, 2]);
        // Names of servers are groups of their own.
        check("the maps", &[1, 1]);
        check("the map", &[1]);
        check("what is it", &[1, 1, 1]);
        check("", &[]);
        check("!?", &[]);
        assert!(groups(&"word1 ".repeat(10_000), &known).len() <= 2);
        let many: String = (0..10_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(groups(&many, &known).len(), MAX_WORDS);
    }
}

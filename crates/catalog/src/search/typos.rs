//! Finds the name or word that was meant by one that is misspelt.

/// Bytes of what was asked for that is compared with names.
const MAX_ASKED: usize = 300;
/// Names that are compared letter by letter for one query, at most.
const MAX_COMPARED: usize = 48;
/// The part of the trigrams asked for that a name must have.
const SHARED: f32 = 0.5;
/// Least similarity of a name: 1 is equal, 0 has nothing in common.
const MIN_LIKENESS: f64 = 0.75;

/// The least and most letters of a word that is looked for with a typo.
const TYPO_LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Words that typos are looked for among, at most; those that come first.
const MAX_WORDS: usize = 20_000;

/// The names of tools, to find the one that was meant by a name.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Name>);

#[derive(Debug)]
struct Name {
    /// The function, in its plain form.
    function: String,
    /// Bytes of its end that are the tool's own name, without the server; 0 if none are.
    own: usize,
    trigrams: Vec<[u8; 3]>,
}

impl Names {
    /// The names in pairs of a function and the tool's own name.
    pub(super) fn new<'a>(names: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let name = |(function, own)| {
            let (function, own) = (plain(function), plain(own));
            Name {
                own: if function.ends_with(&own) {
                    own.len()
                } else {
                    0
                },
                trigrams: trigrams(&function),
                function,
            }
        };
        Self(names.map(name).collect())
    }

    /// The names like the one asked for, with or without their server, and how alike they are.
    pub(super) fn like(&self, asked: &str) -> Vec<(usize, f64)> {
        let asked = plain(asked.get(..MAX_ASKED.min(asked.len())).unwrap_or_default());
        let asked_trigrams = trigrams(&asked);
        if asked_trigrams.is_empty() {
            return Vec::new();
        }
        let least = (asked_trigrams.len() as f32 * SHARED).ceil().max(1.0) as usize;
        let mut candidates: Vec<(usize, usize, usize)> = Vec::new();
        for (index, name) in self.0.iter().enumerate() {
            let has = |trigram: &&[u8; 3]| name.trigrams.binary_search(trigram).is_ok();
            let shared = asked_trigrams.iter().filter(has).count();
            if shared >= least {
                candidates.push((shared, name.function.len(), index));
            }
        }
        // Of names that share as much, the shorter has less that was not asked for.
        candidates.sort_unstable_by_key(|(count, length, index)| {
            (std::cmp::Reverse(*count), *length, *index)
        });
        let compared = candidates.into_iter().take(MAX_COMPARED);
        compared
            .filter_map(|(_, _, index)| {
                let likeness = self.likeness(index, &asked)?;
                (likeness >= MIN_LIKENESS).then_some((index, likeness))
            })
            .collect()
    }

    fn likeness(&self, index: usize, asked: &str) -> Option<f64> {
        let Name { function, own, .. } = self.0.get(index)?;
        let whole = strsim::normalized_damerau_levenshtein(asked, function);
        let own = function.get(function.len() - own..).unwrap_or_default();
        if own.is_empty() {
            return Some(whole);
        }
        Some(whole.max(strsim::normalized_damerau_levenshtein(asked, own)))
    }
}

/// A name without what is easily mistaken: case and separators.
fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The trigrams of a plain name, in order, each once.
fn trigrams(plain: &str) -> Vec<[u8; 3]> {
    let mut trigrams: Vec<[u8; 3]> = plain.as_bytes().array_windows().copied().collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

/// The words of names, titles and keywords, to find the one that was meant by a
/// word with one letter wrong, missing, too many or swapped.
#[derive(Debug, Default)]
pub(super) struct Spelling(Vec<String>);

impl Spelling {
    /// The first [`MAX_WORDS`] of these words.
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut known: Vec<String> = words
            .filter(|word| can_have_typo(word))
            .take(MAX_WORDS)
            .map(str::to_owned)
            .collect();
        known.sort_unstable();
        known.dedup();
        Self(known)
    }

    /// The words that are one letter away, in alphabetical order.
    pub(super) fn near(&self, word: &str) -> Vec<&str> {
        if !can_have_typo(word) {
            return Vec::new();
        }
        let near = |known: &&String| {
            known.len().abs_diff(word.len()) <= 1 && strsim::osa_distance(word, known) == 1
        };
        self.0.iter().filter(near).map(String::as_str).collect()
    }
}

fn can_have_typo(word: &str) -> bool {
    TYPO_LETTERS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_what_is_like_it() {
        let names = [
            ("github_create_issue", "create_issue"),
            ("github_list_issues", "list_issues"),
            ("git_log", "git_log"),
            ("fs_read", "read"),
        ];
        let index = Names::new(names.into_iter());
        let check = |asked: &str, expected: &[&str]| {
            let mut found = index.like(asked);
            found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let found: Vec<&str> = found.iter().map(|(at, _)| names[*at].0).collect();
            assert_eq!(found, expected, "{asked}");
        };
        check("github_create_issue", &["github_create_issue"]);
        check("GitHub.createIssue", &["github_create_issue"]);
        check("create-isue", &["github_create_issue"]);
        check("gitlog", &["git_log"]);
        check("FS read", &["fs_read"]);
        check("weather", &[]);
        check("", &[]);
        check("é", &[]);
        check(&"a".repeat(100_000), &[]);
    }

    #[test]
    fn a_word_is_found_with_one_letter_wrong() {
        let spelling = Spelling::new(["issue", "tissue", "fork", "log", "create"].into_iter());
        let check = |word: &str, expected: &[&str]| {
            assert_eq!(spelling.near(word), expected, "{word}");
        };
        check("isue", &["issue"]);
        check("issue", &["tissue"]);
        check("issuee", &["issue"]);
        check("frok", &["fork"]);
        check("craete", &["create"]);
        check("lgo", &[]);
        check("frökk", &[]);
        check(&"x".repeat(1000), &[]);
    }
}

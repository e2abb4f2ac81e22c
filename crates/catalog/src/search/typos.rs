//! Finds the name or word that was meant by one that is misspelt.

/// Bytes of a name that is looked for.
pub(crate) const MAX_ASKED: usize = 300;
/// The likeness from which on a name is found: 1 is equal, 0 is nothing alike.
pub(crate) const MIN_LIKENESS: f64 = 0.75;

/// The least and most letters of a word that is looked for with a typo.
const TYPO_LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Words that typos are looked for among, at most; those that come first.
const MAX_WORDS: usize = 20_000;

/// The plain names of tools, to find the one that was meant by a name: of a function, and the end of
/// it that is the tool's own name, without the server.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    /// The names in pairs of a function and the tool's own name.
    pub(super) fn new<'a>(names: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let name = |(function, own)| {
            let (function, mut own) = (plain(function), plain(own));
            if !function.ends_with(&own) {
                own.clear();
            }
            (function, own)
        };
        Self(names.map(name).collect())
    }

    /// The names like the one asked for, with or without their server, and how alike they are.
    pub(super) fn like(&self, asked: &str) -> Vec<(usize, f64)> {
        let asked = plain(asked.get(..MAX_ASKED.min(asked.len())).unwrap_or_default());
        let names = self.0.iter().map(|(function, own)| {
            let whole = likeness(&asked, function);
            whole.max(likeness(&asked, own))
        });
        let names = names.enumerate();
        names.filter(|(_, like)| *like >= MIN_LIKENESS).collect()
    }
}

/// Similarity of two plain names, from 0 to 1. It is 0 if a name is empty, or if the lengths alone
/// rule out [`MIN_LIKENESS`]: the comparison takes time in the product of both lengths.
pub(crate) fn likeness(a: &str, b: &str) -> f64 {
    let (shorter, longer) = (a.len().min(b.len()), a.len().max(b.len()));
    if shorter == 0 || (shorter as f64) < MIN_LIKENESS * longer as f64 {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(a, b)
}

/// A name without what is easily mistaken: case and separators.
pub(crate) fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
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

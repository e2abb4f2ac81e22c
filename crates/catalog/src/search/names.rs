//! What was meant by a name or a word that is not quite one.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher as _;

/// Bytes of what was asked for that is compared with names.
const MAX_ASKED: usize = 300;
/// Names that are compared letter by letter for one query, at most.
const MAX_COMPARED: usize = 48;
/// The part of the trigrams asked for that a name must have.
const SHARED: f32 = 0.5;
/// How alike a name must be: 1 is equal, 0 is nothing alike.
const MIN_LIKENESS: f64 = 0.75;

/// The least and most letters of a word that is looked for with a typo.
const TYPO_LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// Words that typos are looked for among, at most; those that come first.
const MAX_WORDS: usize = 50_000;

/// The digits and letters of which [`plain`] names are made.
const LETTERS: usize = 36;

/// Names, by the trigrams of their plain form.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Of each name: what is compared. The first is the function, the second the
    /// tool's own name, without the server.
    plain: Vec<(Box<str>, u32)>,
    /// Where in `holders` the names with a trigram begin; one more than there
    /// are trigrams.
    begins: Vec<u32>,
    holders: Vec<u32>,
}

impl Names {
    /// Of pairs of a function and the tool's own name.
    pub(super) fn of<'a>(names: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let plain: Vec<(Box<str>, u32)> = names
            .map(|(function, own)| {
                let function = plain(function);
                let own = plain(own);
                let bare = if function.ends_with(&own) {
                    own.len()
                } else {
                    0
                };
                (function.into_boxed_str(), bare as u32)
            })
            .collect();
        let mut begins = vec![0_u32; LETTERS.pow(3) + 1];
        for (name, _) in &plain {
            for trigram in trigrams(name) {
                if let Some(count) = begins.get_mut(trigram + 1) {
                    *count += 1;
                }
            }
        }
        let mut sum = 0;
        for begin in &mut begins {
            sum += *begin;
            *begin = sum;
        }
        let mut next = begins.clone();
        let mut holders = vec![0; sum as usize];
        for (index, (name, _)) in plain.iter().enumerate() {
            for trigram in trigrams(name) {
                if let Some(at) = next.get_mut(trigram)
                    && let Some(holder) = holders.get_mut(*at as usize)
                {
                    *holder = index as u32;
                    *at += 1;
                }
            }
        }
        Self {
            plain,
            begins,
            holders,
        }
    }

    /// The names like the one asked for, with or without their server, and how
    /// alike they are.
    pub(super) fn like(&self, asked: &str) -> Vec<(usize, f64)> {
        let asked = plain(asked.get(..MAX_ASKED.min(asked.len())).unwrap_or_default());
        let asked_trigrams = trigrams(&asked);
        if asked_trigrams.is_empty() {
            return Vec::new();
        }
        let mut shared = vec![0_u16; self.plain.len()];
        for trigram in &asked_trigrams {
            for holder in self.holders(*trigram) {
                if let Some(count) = shared.get_mut(*holder as usize) {
                    *count += 1;
                }
            }
        }
        let least = (asked_trigrams.len() as f32 * SHARED).ceil() as u16;
        let mut candidates: Vec<(u16, usize, usize)> = Vec::new();
        for (index, count) in shared.into_iter().enumerate() {
            if count >= least.max(1)
                && let Some((name, _)) = self.plain.get(index)
            {
                candidates.push((count, name.len(), index));
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
        let (name, bare) = self.plain.get(index)?;
        let own = name.get(name.len() - *bare as usize..).unwrap_or_default();
        let whole = strsim::normalized_damerau_levenshtein(asked, name);
        if own.is_empty() {
            return Some(whole);
        }
        Some(whole.max(strsim::normalized_damerau_levenshtein(asked, own)))
    }

    fn holders(&self, trigram: usize) -> &[u32] {
        let begin = self.begins.get(trigram).copied().unwrap_or_default();
        let end = self.begins.get(trigram + 1).copied().unwrap_or_default();
        self.holders
            .get(begin as usize..end as usize)
            .unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.plain.iter().map(|(name, _)| name.len()).sum();
        size_of_val(&*self.plain) + names + size_of_val(&*self.begins) + size_of_val(&*self.holders)
    }
}

/// A name without what is easily mistaken: case and separators.
fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// The numbers of the trigrams of a plain name, each once.
fn trigrams(plain: &str) -> Vec<usize> {
    let number = |byte: &u8| match byte {
        b'0'..=b'9' => usize::from(byte - b'0'),
        _ => usize::from(byte.wrapping_sub(b'a') % 26) + 10,
    };
    let mut numbers: Vec<usize> = plain
        .as_bytes()
        .windows(3)
        .map(|three| {
            three
                .iter()
                .fold(0, |sum, byte| sum * LETTERS + number(byte))
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The words that names, titles and keywords are made of, to find the one that
/// was meant by a word with one letter wrong, missing, too many or swapped.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    words: Vec<Box<str>>,
    /// Every word with each of its letters left out in turn, and whole, by hash.
    shortened: Vec<(u64, u32)>,
}

impl Spelling {
    pub(super) fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut known: FxHashMap<&str, ()> = FxHashMap::default();
        let mut spelling = Self::default();
        for word in words {
            if spelling.words.len() == MAX_WORDS {
                break;
            }
            if is_looked_for(word) && known.insert(word, ()).is_none() {
                spelling.words.push(word.into());
            }
        }
        for (index, word) in spelling.words.iter().enumerate() {
            let hashes = shortenings(word).map(|hash| (hash, index as u32));
            spelling.shortened.extend(hashes);
        }
        spelling.shortened.sort_unstable();
        spelling
    }

    /// The words that are one letter away, in alphabetical order.
    pub(super) fn near(&self, word: &str) -> Vec<&str> {
        if !is_looked_for(word) {
            return Vec::new();
        }
        let mut near = Vec::new();
        for hash in shortenings(word) {
            let begin = self.shortened.partition_point(|(other, _)| *other < hash);
            let same = self.shortened.iter().skip(begin);
            let same = same.take_while(|(other, _)| *other == hash);
            near.extend(same.filter_map(|(_, index)| self.words.get(*index as usize)));
        }
        let mut near: Vec<&str> = near.into_iter().map(|word| &**word).collect();
        near.sort_unstable();
        near.dedup();
        near.retain(|other| strsim::osa_distance(word, other) == 1);
        near
    }

    pub(super) fn bytes(&self) -> usize {
        let words: usize = self.words.iter().map(|word| word.len()).sum();
        size_of_val(&*self.words) + words + size_of_val(&*self.shortened)
    }
}

fn is_looked_for(word: &str) -> bool {
    TYPO_LETTERS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Hashes of an ASCII word, whole and with each letter left out.
fn shortenings(word: &str) -> impl Iterator<Item = u64> + '_ {
    (0..=word.len()).map(|skipped| {
        let mut hasher = FxHasher::default();
        for (_, byte) in word.bytes().enumerate().filter(|(at, _)| *at != skipped) {
            hasher.write_u8(byte);
        }
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_what_is_like_it() {
        let names = [
            ("github_create_issue", "create_issue"),
            ("github_list_issues", "list_issues"),
            ("git_git_log", "git_log"),
            ("fs_read", "read"),
        ];
        let index = Names::of(names.into_iter());
        let check = |asked: &str, expected: &[&str]| {
            let mut found = index.like(asked);
            found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let found: Vec<&str> = found.iter().map(|(at, _)| names[*at].0).collect();
            assert_eq!(found, expected, "{asked}");
        };
        check("github_create_issue", &["github_create_issue"]);
        check("GitHub.createIssue", &["github_create_issue"]);
        check("create-isue", &["github_create_issue"]);
        check("gitlog", &["git_git_log"]);
        check("FS read", &["fs_read"]);
        check("weather", &[]);
        check("", &[]);
        check("é", &[]);
        check(&"a".repeat(100_000), &[]);
    }

    #[test]
    fn a_word_is_found_with_one_letter_wrong() {
        let spelling = Spelling::of(["issue", "tissue", "fork", "log", "create"].into_iter());
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

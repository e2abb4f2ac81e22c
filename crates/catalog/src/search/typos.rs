//! Finds the name or word that was meant by one that is misspelt.

/// Bytes of a name that is looked for.
pub(crate) const MAX_ASKED: usize = 300;
/// The likeness from which on a name is found: 1 is equal, 0 is nothing alike.
const MIN_LIKENESS: f64 = 0.75;

/// The pairs of letters that one search compares: the names are of servers.
const MAX_COMPARED: usize = 1 << 24;

/// The lengths of words that are searched with a typo.
const TYPO_LETTERS: std::ops::RangeInclusive<usize> = 4..=24;
/// The number of words, from the first on, that are compared with a misspelt one.
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
        let mut asked = Asked::new(asked.get(..MAX_ASKED.min(asked.len())).unwrap_or_default());
        let names = self.0.iter().map(|(function, own)| {
            let whole = asked.likeness(function);
            whole.max(asked.likeness(own))
        });
        let names = names.enumerate();
        names.filter(|(_, like)| *like >= MIN_LIKENESS).collect()
    }
}

/// A name to compare with others.
pub(crate) struct Asked {
    /// The [`plain`] name.
    pub(crate) name: String,
    /// The pairs of letters that may still be compared.
    left: usize,
}

impl Asked {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: plain(name),
            left: MAX_COMPARED,
        }
    }

    /// Similarity to a plain name, from 0 to 1. It is 0 if a name is empty, if the lengths alone
    /// rule out [`MIN_LIKENESS`], or if [`MAX_COMPARED`] is reached: a comparison takes time in
    /// the product of both lengths.
    pub(crate) fn likeness(&mut self, other: &str) -> f64 {
        let (a, b) = (self.name.len(), other.len());
        let (shorter, longer) = (a.min(b), a.max(b));
        if shorter == 0 || (shorter as f64) < MIN_LIKENESS * longer as f64 {
            return 0.0;
        }
        match self.left.checked_sub(a * b) {
            Some(left) => self.left = left,
            None => return f64::from(u8::from(self.name == other)),
        }
        strsim::normalized_damerau_levenshtein(&self.name, other)
    }
}

/// A name without case and separators.
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
        let near = |known: &&String| is_one_edit(word.as_bytes(), known.as_bytes());
        self.0.iter().filter(near).map(String::as_str).collect()
    }
}

/// Tells whether two words differ by one letter or by two that are swapped, in linear time.
fn is_one_edit(a: &[u8], b: &[u8]) -> bool {
    let same = |(a, b): &(&u8, &u8)| a == b;
    let begin = a.iter().zip(b).take_while(same).count();
    let (a, b) = (&a[begin..], &b[begin..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(same).count();
    match (&a[..a.len() - end], &b[..b.len() - end]) {
        ([_], [_]) | ([_], []) | ([], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

fn can_have_typo(word: &str) -> bool {
    TYPO_LETTERS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_is_a_distance_of_one() {
        let words: Vec<String> = (0..4_u32.pow(4))
            .map(|n| (0..4).map(move |at| char::from(b"ab-c"[(n as usize >> (2 * at)) & 3])))
            .map(|letters| letters.filter(|letter| *letter != '-').collect())
            .collect();
        for (a, b) in words.iter().flat_map(|a| words.iter().map(move |b| (a, b))) {
            let expected = strsim::osa_distance(a, b) == 1;
            assert_eq!(is_one_edit(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }

    #[test]
    fn comparisons_of_one_search_are_bounded() {
        let mut asked = Asked::new(&"ab".repeat(128));
        let other = "ba".repeat(128);
        let compared = (0..1_000).take_while(|_| asked.likeness(&other) > 0.9);
        assert_eq!(compared.count(), MAX_COMPARED / (256 * 256));
        assert_eq!(asked.likeness(&"ab".repeat(128)), 1.0);
    }
}

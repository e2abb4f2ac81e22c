//! Literal texts that a text must have somewhere to match a glob or a regular
//! expression, and one search for all of them.
//!
//! One expression at a time costs a search through the text each. Most of them
//! are out of the question because of a word that the text does not have.

use regex::{RegexSet, RegexSetBuilder, SetMatches};
use rustc_hash::FxHashMap;

use crate::text::after_folders;

/// The fewest characters of a literal that says something.
const LEAST: usize = 2;
/// The most bytes that a search for all literals may compile to.
const MAX_COMPILED_BYTES: usize = 16 << 20;

/// Literals without doubles; each has a number.
#[derive(Debug, Default)]
pub(crate) struct Literals {
    numbers: FxHashMap<String, usize>,
}

impl Literals {
    /// The numbers of these literals, without those that say nothing.
    pub(crate) fn numbers(&mut self, literals: Vec<String>) -> Box<[usize]> {
        let telling = literals
            .into_iter()
            .filter(|literal| literal.chars().count() >= LEAST);
        let numbers = telling.map(|literal| {
            let next = self.numbers.len();
            *self.numbers.entry(literal).or_insert(next)
        });
        numbers.collect()
    }

    /// One search for all of them. `None` if it would be too large.
    ///
    /// Literals make an automaton that is no larger than they are, whatever is
    /// searched: no text makes the search slow.
    pub(crate) fn search(&self) -> Option<Search> {
        let mut all = vec![""; self.numbers.len()];
        for (literal, number) in &self.numbers {
            *all.get_mut(*number)? = literal;
        }
        let set = RegexSetBuilder::new(all.into_iter().map(regex::escape))
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build();
        Some(Search(set.ok()?))
    }
}

/// A search for literals, by their numbers.
#[derive(Debug)]
pub(crate) struct Search(RegexSet);

impl Search {
    /// Those that the text has.
    pub(crate) fn find(&self, text: &str) -> SetMatches {
        self.0.matches(text)
    }
}

/// The literals of a glob.
pub(crate) fn of_glob(glob: &str) -> Vec<String> {
    let mut literals = vec![String::new()];
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        let mut after = rest.get(c.len_utf8()..).unwrap_or_default();
        if let Some(after_folders) = after_folders(glob, glob.len() - rest.len()) {
            // With no folder there is no slash of it, either.
            after = after_folders;
            literals.push(String::new());
        } else if matches!(c, '*' | '?') {
            literals.push(String::new());
        } else if let Some(literal) = literals.last_mut() {
            literal.push(c);
        }
        rest = after;
    }
    literals
}

/// Literals that every match of a regular expression has. None, which is always
/// right, for expressions in which it takes more than a look to tell.
pub(crate) fn of_regex(regex: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut literal = String::new();
    let mut rest = regex.chars();
    while let Some(c) = rest.next() {
        match c {
            // Alternatives and groups, which may set flags, too.
            '|' | '(' | ')' => return Vec::new(),
            '\\' => match rest.next() {
                Some(escaped) if is_meta(escaped) => literal.push(escaped),
                // A class or a place, without an argument that follows.
                Some('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'A' | 'z') => {
                    literals.push(std::mem::take(&mut literal));
                }
                _ => return Vec::new(),
            },
            '[' => {
                if !skip_class(&mut rest) {
                    return Vec::new();
                }
                literals.push(std::mem::take(&mut literal));
            }
            '.' | '^' | '$' => literals.push(std::mem::take(&mut literal)),
            '*' | '?' | '+' | '{' => {
                // What is repeated may be there no time.
                literal.pop();
                literals.push(std::mem::take(&mut literal));
                if c == '{' && !rest.any(|c| c == '}') {
                    return Vec::new();
                }
            }
            plain => literal.push(plain),
        }
    }
    literals.push(literal);
    literals
}

/// Whether a character stands for itself behind a backslash. Others that are no letters may
/// be a place, as `\<` is.
fn is_meta(escaped: char) -> bool {
    r"\.+*?()|[]{}^$#&-~/".contains(escaped)
}

/// Passes over a class of plain characters; false for any other.
fn skip_class(rest: &mut std::str::Chars<'_>) -> bool {
    let class = rest.as_str();
    let class = class.strip_prefix('^').unwrap_or(class);
    let Some(end) = class.find(']').filter(|end| *end > 0) else {
        return false;
    };
    let (inside, behind) = (class.get(..end), class.get(end + 1..));
    let (Some(inside), Some(behind)) = (inside, behind) else {
        return false;
    };
    *rest = behind.chars();
    !inside.contains(['[', '\\', '&', '~'])
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::text::{Glob, WholeRegex};

    #[test]
    fn literals_that_a_match_must_have() {
        let check = |regex: &str, literals: Expect| {
            literals.assert_eq(&format!("{:?}", of_regex(regex)));
        };
        check(
            "/data/[a-z]+/7/.*",
            expect![[r#"["/data/", "", "/7/", "", ""]"#]],
        );
        check(
            r"https://a\.example/v\d+",
            expect![[r#"["https://a.example/v", "", ""]"#]],
        );
        check("abc*", expect![[r#"["ab", ""]"#]]);
        check("abc+?d", expect![[r#"["ab", "", "d"]"#]]);
        check("ab{0,2}cd", expect![[r#"["a", "cd"]"#]]);
        check("(?i)abc", expect!["[]"]);
        check("abc|d", expect!["[]"]);
        check(r"a[\]b]c", expect!["[]"]);
        check("a[]b]c", expect!["[]"]);
        check("a[^]b]c", expect!["[]"]);
        check("a[b[cd]]e", expect!["[]"]);
        check(r"\x41bc", expect!["[]"]);
        check(r"a\.b\/c\-d", expect![[r#"["a.b/c-d"]"#]]);
        // Where a word begins and ends.
        check(r".*\<rm\>.*", expect!["[]"]);
        check(r"a\bc", expect!["[]"]);
    }

    #[test]
    fn literals_of_globs() {
        let check = |glob: &str, literals: Expect| {
            literals.assert_eq(&format!("{:?}", of_glob(glob)));
        };
        check("**/.env", expect![[r#"["", ".env"]"#]]);
        check("/a/**/b/*.md", expect![[r#"["/a/", "b/", ".md"]"#]]);
        check("a**/b", expect![[r#"["a", "", "/b"]"#]]);
    }

    fn has_all(text: &str, literals: Vec<String>) -> bool {
        let mut known = Literals::default();
        let needed = known.numbers(literals);
        let found = known.search().expect("it is small").find(text);
        needed.iter().all(|number| found.matched(*number))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn what_matches_has_all_literals(
            pattern in r"([ab./]|ab|[ab][*+?]|\[\^?[ab\]-]{1,2}\]|a\{0,2\}|\\[ -~]|[(|)^$]){1,8}",
            text in "[ab1./<>]{0,10}",
        ) {
            if let Ok(regex) = WholeRegex::new(&pattern) && regex.matches(&text) {
                prop_assert!(has_all(&text, of_regex(&pattern)));
            }
        }

        #[test]
        fn what_a_glob_matches_has_all_literals(
            glob in r"(\*\*/|/\*\*/|\*|\?|[ab/]|ab){1,6}",
            text in "[ab/]{0,8}",
        ) {
            let glob = Glob::new(&glob).expect("a glob");
            if glob.matches(&text) {
                prop_assert!(has_all(&text, of_glob(glob.as_str())));
            }
        }

        #[test]
        fn what_is_made_to_match_has_all_literals(pattern in r"([ab./]|ab|[ab][*+?]|a\{0,2\}){1,8}") {
            // The pattern's own characters often are a match of it.
            let text: String = pattern.chars().filter(|c| "ab/.".contains(*c)).collect();
            if let Ok(regex) = WholeRegex::new(&pattern) && regex.matches(&text) {
                prop_assert!(has_all(&text, of_regex(&pattern)));
            }
            if let Ok(glob) = Glob::new(&pattern.replace(['{', '}'], "")) && glob.matches(&text) {
                prop_assert!(has_all(&text, of_glob(glob.as_str())));
            }
        }
    }
}

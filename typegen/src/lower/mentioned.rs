//! Finds constraints that a description mentions in its own words, so that they are not noted a
//! second time. Only plain ways to say it count: a number by itself could mean anything.

/// Words that stand before a lower bound.
const LEAST: &[&str] = &[
    "min",
    "minimum",
    "least",
    "from",
    "between",
    "minimum of",
    "min of",
    ">=",
    "≥",
];
/// Words that stand before an upper bound.
const MOST: &[&str] = &[
    "max",
    "maximum",
    "most",
    "up to",
    "maximum of",
    "max of",
    "<=",
    "≤",
];
/// Words that stand before a default.
const DEFAULT: &[&str] = &[
    "default",
    "defaults to",
    "default is",
    "default value is",
    "default value",
    "defaults",
    "default of",
];

/// True if the description says that values are at least, or at most, `bound`.
pub(super) fn mentions_bound(described: &str, bound: &str, least: bool) -> bool {
    if described.is_empty() {
        return false;
    }
    let words = if least { LEAST } else { MOST };
    let text = plain(described);
    occurrences(&text, bound).any(|(before, after)| {
        words.iter().any(|word| ends_with_word(before, word)) || in_range(before, after, least)
    })
}

/// True if the description says that the default is `value`, written as in a script.
pub(super) fn mentions_default(described: &str, value: &str) -> bool {
    if described.is_empty() {
        return false;
    }
    let text = plain(described);
    let value = plain(value);
    occurrences(&text, value.trim()).any(|(before, after)| {
        DEFAULT.iter().any(|word| ends_with_word(before, word))
            || after.trim_start().starts_with("by default")
            || after.trim_start().starts_with("default")
    })
}

pub(super) fn mentions_word(described: &str, word: &str) -> bool {
    occurrences(&described.to_lowercase(), &word.to_lowercase())
        .next()
        .is_some()
}

/// Lower case, and without the marks that are put around values.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '"' | '\'' | '`' | '*' | ':' | '(' | ')'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// What stands before and after each place where `word` stands by itself.
fn occurrences<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(at, found)| {
        let (before, rest) = text.split_at_checked(at)?;
        let after = rest.get(found.len()..)?;
        let apart = !before.ends_with(part_of_word) && !after.starts_with(part_of_word);
        // `1.5` is not `1`.
        let mut next = after.chars();
        let fraction =
            next.next() == Some('.') && next.next().is_some_and(|digit| digit.is_ascii_digit());
        (!found.is_empty() && apart && !fraction).then_some((before, after))
    })
}

fn ends_with_word(text: &str, word: &str) -> bool {
    let text = text.trim_end_matches([' ', '=']);
    text.strip_suffix(word)
        .is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
}

/// True if the number between `before` and `after` is an end of a range such as
/// `1-100`, `1 to 100` or `between 1 and 100`.
fn in_range(before: &str, after: &str, least: bool) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    let dashes = ["-", "–", "—", "to", "and"];
    if least {
        let after = after.trim_start();
        dashes.iter().any(|dash| {
            after
                .strip_prefix(dash)
                .is_some_and(|rest| rest.trim_start().starts_with(digit))
        })
    } else {
        let before = before.trim_end();
        dashes.iter().any(|dash| {
            before
                .strip_suffix(dash)
                .is_some_and(|rest| rest.trim_end().ends_with(digit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{mentions_bound, mentions_default, mentions_word};

    #[test]
    fn bounds_count_only_where_they_are_called_so() {
        let check = |described: &str, bound: &str, least: bool, expected: bool| {
            assert_eq!(
                mentions_bound(described, bound, least),
                expected,
                "{described}"
            );
        };
        check("Results per page (min 1, max 100)", "1", true, true);
        check("Results per page (min 1, max 100)", "100", false, true);
        check("Results per page (min 1, max 100)", "10", true, false);
        check("Page size, 1-100", "1", true, true);
        check("Page size, 1 to 100", "100", false, true);
        check("between 1 and 100", "1", true, true);
        check("At least 2 of them", "2", true, true);
        check("maximum: 0.5", "0.5", false, true);
        check("max 1.5", "1", false, false);
        check("the first 1 of 100", "1", true, false);
        check("the first 1 of 100", "100", false, false);
        check("max 1000", "100", false, false);
        check("", "1", true, false);
    }

    #[test]
    fn defaults_count_only_where_they_are_called_so() {
        let check = |described: &str, value: &str, expected: bool| {
            assert_eq!(mentions_default(described, value), expected, "{described}");
        };
        check("Number of results (default: 30, max: 100)", "30", true);
        check("Defaults to `main`.", "\"main\"", true);
        check("Default is false", "false", true);
        check("asc by default", "\"asc\"", true);
        check("\"asc\" (default) or \"desc\"", "\"asc\"", true);
        check("Number of results, at most 30", "30", false);
        check("The default branch is not main", "\"main\"", false);
    }

    #[test]
    fn words_stand_by_themselves() {
        assert!(mentions_word("A positive Integer.", "integer"));
        assert!(!mentions_word("integers", "integer"));
        assert!(!mentions_word("", "integer"));
    }
}

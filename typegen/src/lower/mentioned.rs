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

/// The bytes of a default or a choice from a description.
const MAX_WORD: usize = 24;
/// The number of choices from a description.
const MAX_CHOICES: usize = 8;

/// True if the description says that values are at least, or at most, `bound`.
pub(super) fn mentions_bound(described: &str, bound: &str, min: bool) -> bool {
    if described.is_empty() {
        return false;
    }
    let words = if min { LEAST } else { MOST };
    let text = plain(described);
    occurrences(&text, bound).any(|(before, after)| {
        words.iter().any(|word| ends_with_word(before, word)) || in_range(before, after, min)
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

/// The default in a description: a number, a truth value, a quoted text, or the one word
/// after `default:` or `defaults to`.
pub(super) fn described_default(described: &str) -> Option<String> {
    let lower = described.to_ascii_lowercase();
    lower.match_indices("default").find_map(|(at, word)| {
        let (before, rest) = described.split_at_checked(at)?;
        let mut rest = rest.get(word.len()..)?;
        let mut names_value = false;
        for part in ["s", " value", " is", " of", " to", ":", "="] {
            if let Some(after) = rest.strip_prefix(part) {
                rest = after;
                names_value = matches!(part, " to" | ":" | "=");
            }
        }
        let rest = rest.trim_start();
        if let Some(text) = quoted(rest) {
            return Some(format!("\"{text}\""));
        }
        let end = rest.find(|c: char| !is_choice(c)).unwrap_or(rest.len());
        let (value, after) = rest.split_at_checked(end)?;
        let value = value.trim_end_matches(['.', ':']);
        let ends = value.len() < end || after.is_empty() || after.starts_with([')', ',', ';']);
        let is_value = value.parse::<f64>().is_ok_and(f64::is_finite)
            || matches!(value, "true" | "false")
            || names_value && ends && (1..=MAX_WORD).contains(&value.len());
        (is_value && !before.ends_with(char::is_alphanumeric)).then(|| value.to_owned())
    })
}

/// The choices that a description lists, as a union: words after "one of" and the like, quoted
/// words at its start or after a colon or a bracket, or quoted words that stand in brackets each.
pub(super) fn described_choices(described: &str) -> Option<String> {
    const OF_WORDS: [&str; 5] = ["one of", "either", "values", "options", "choices"];
    const OF_QUOTED: [&str; 6] = [":", "(", "=", " be", " are", " is"];
    let lower = described.to_ascii_lowercase();
    if ["e.g", "example", "such as"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return None;
    }
    let after = |lead: &&str| {
        let at = lower.find(*lead)? + lead.len();
        described.get(at..)
    };
    let words = OF_WORDS.iter().filter_map(after);
    let words = words.map(|text| list(text.trim_start_matches([':', ' ', '(']), true));
    let rest = OF_QUOTED.iter().filter_map(after).chain([described]);
    let rest = rest.map(|text| list(text.trim_start(), false));
    let bracketed = described.match_indices('(').filter_map(|(at, _)| {
        let inside = described.get(at + 1..)?;
        let word = quoted(inside)?;
        inside
            .get(word.len() + 2..)?
            .starts_with(')')
            .then_some(word)
    });
    let mut found = words.chain(rest).chain([bracketed.collect()]);
    let choices = found.find(|choices| (2..=MAX_CHOICES).contains(&choices.len()))?;
    let quoted: Vec<String> = choices.iter().map(|word| format!("\"{word}\"")).collect();
    Some(quoted.join(" | "))
}

/// The words of the list that a text begins with, all quoted or all bare. A list of bare words
/// ends with its sentence.
fn list(text: &str, allows_bare: bool) -> Vec<&str> {
    let is_bare = allows_bare && quoted(text).is_none();
    let (mut words, mut rest) = (Vec::new(), text);
    loop {
        let bare = || {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            rest.get(..end.unwrap_or(rest.len()))
                .filter(|word| (1..=MAX_WORD).contains(&word.len()))
        };
        let Some(word) = (if is_bare { bare() } else { quoted(rest) }) else {
            return Vec::new();
        };
        words.push(word);
        rest = rest
            .get(word.len() + if is_bare { 0 } else { 2 }..)
            .unwrap_or_default();
        match after_separator(rest) {
            Some(next) if is_bare || quoted(next).is_some() => rest = next,
            _ if !is_bare || rest.is_empty() || rest.starts_with(['.', ')', ';', '\n']) => {
                return words;
            }
            _ => return Vec::new(),
        }
    }
}

/// The text after the comma, bar, slash, "or" or "and" that it begins with.
fn after_separator(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let mark = text.strip_prefix([',', '|', '/']).map(str::trim_start);
    let rest = mark.unwrap_or(text);
    let word = ["or ", "and "]
        .iter()
        .find_map(|word| rest.strip_prefix(word));
    word.or(mark)
}

/// The short text without spaces in the quotes that the text begins with.
fn quoted(text: &str) -> Option<&str> {
    let mark = text
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let (inside, _) = text.get(1..)?.split_once(mark)?;
    let fits = (1..=MAX_WORD).contains(&inside.len()) && inside.chars().all(is_choice);
    fits.then_some(inside)
}

fn is_choice(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-+.:/".contains(character)
}

/// Lower case, and without the marks that are put around values.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '"' | '\'' | '`' | '*' | ':' | '(' | ')'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// The text before and the text after each occurrence of `word` as a whole word.
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
fn in_range(before: &str, after: &str, min: bool) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    let dashes = ["-", "–", "—", "to", "and"];
    dashes.iter().any(|dash| {
        if min {
            let rest = after.trim_start().strip_prefix(dash);
            rest.is_some_and(|rest| rest.trim_start().starts_with(digit))
        } else {
            let rest = before.trim_end().strip_suffix(dash);
            rest.is_some_and(|rest| rest.trim_end().ends_with(digit))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{mentions_bound, mentions_default, mentions_word};

    #[test]
    fn bounds_count_only_where_they_are_called_so() {
        let check = |described: &str, bound: &str, min: bool, expected: bool| {
            assert_eq!(
                mentions_bound(described, bound, min),
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
    fn only_whole_words_count_as_mentioned() {
        assert!(mentions_word("A positive Integer.", "integer"));
        assert!(!mentions_word("integers", "integer"));
        assert!(!mentions_word("", "integer"));
    }
}

//! Tools and properties that their authors call deprecated.

/// The text of a description after the word "deprecated", if it calls its subject so: a sentence
/// begins with the word, has it in capitals or brackets, or says that "this" is deprecated. The
/// text may be empty.
pub fn deprecation(description: &str) -> Option<&str> {
    const WORD: &str = "deprecated";
    // ASCII letters alone change, so every place is the same in both texts.
    let lower = description.to_ascii_lowercase();
    let (at, _) = lower.match_indices(WORD).find(|(at, _)| {
        let (before, rest) = (&lower[..*at], &lower[at + WORD.len()..]);
        if before.ends_with(char::is_alphanumeric) || rest.starts_with(char::is_alphanumeric) {
            return false;
        }
        let mark = before.chars().next_back();
        let is_marked = matches!(mark, Some('[' | '(' | '@' | '*' | '⚠'))
            || description.get(*at..at + WORD.len()) == Some("DEPRECATED");
        let begins = before
            .rfind(['.', '!', '\n', ':', ';'])
            .map_or(0, |end| end + 1);
        let sentence = before.get(begins..).unwrap_or_default();
        let sentence = sentence.trim_matches(|c: char| !c.is_alphanumeric());
        is_marked || sentence.is_empty() || sentence.starts_with("this ")
    })?;
    let rest = description.get(at + WORD.len()..)?;
    let rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`');
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
    let line = rest.get(..end)?;
    let sentence = line.find(". ").map_or(line, |end| line.split_at(end).0);
    Some(sentence.trim_end_matches(['.', ' ', ')', ']', '*']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deprecation_notices_are_recognized() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(deprecation(text), expected, "{text}");
        };
        check(
            "Read a file as text. DEPRECATED: Use read_text_file instead.",
            Some("Use read_text_file instead"),
        );
        check("Deprecated.", Some(""));
        check("Read File (Deprecated)", Some(""));
        check("[deprecated] Use `b`. It is better.", Some("Use `b`"));
        check("**Deprecated** since v2\nMore.", Some("since v2"));
        check("Gets it.\n@deprecated use get_all", Some("use get_all"));
        check("This tool is deprecated, use b", Some("use b"));
        for text in [
            "List deprecated packages.",
            "Checks whether a package is deprecated.",
            "Undeprecated. Not deprecated-ish? Finds deprecatedness.",
            "",
        ] {
            check(text, None);
        }
    }
}

//! Strings of a schema's author inside TypeScript text: they can say anything,
//! but not end the comment or the literal they stand in, and not carry
//! characters that a reader does not see.

/// A doc comment, each line indented by `indent` spaces and ended; nothing when
/// the text says nothing. Longer than `limit` bytes is cut.
pub(crate) fn doc_comment(text: &str, indent: usize, limit: usize) -> String {
    let lines = doc_lines(text, limit);
    let pad = " ".repeat(indent);
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{pad}/** {line} */\n"),
        lines => {
            let mut comment = format!("{pad}/**\n");
            for line in lines {
                comment.push_str(&pad);
                comment.push_str(" *");
                if !line.is_empty() {
                    comment.push(' ');
                    comment.push_str(line);
                }
                comment.push('\n');
            }
            comment.push_str(&pad);
            comment.push_str(" */\n");
            comment
        }
    }
}

/// A property name: as it is where it is an identifier, else quoted.
pub(crate) fn property_key(name: &str) -> String {
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '$'));
    if starts && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$')) {
        name.to_owned()
    } else {
        string_literal(name)
    }
}

/// A string literal in double quotes.
pub(crate) fn string_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            c if c.is_control() || is_line_separator(c) || is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    literal.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// Words joined with each one's first letter raised: `log-entry` becomes
/// `LogEntry`. Everything but ASCII letters and digits parts words.
pub(crate) fn pascal_case(text: &str) -> String {
    let mut name = String::new();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        let mut characters = word.chars();
        name.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(characters.as_str());
    }
    name
}

/// The longest prefix of at most `limit` bytes that ends between characters.
pub(crate) fn prefix(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The lines of a doc comment, blank ones at the ends dropped and others
/// joined, so that nothing is spent on layout.
fn doc_lines(text: &str, limit: usize) -> Vec<String> {
    let cut = prefix(text, limit);
    let mut clean = String::with_capacity(cut.len());
    for character in cut.chars() {
        match character {
            '\t' => clean.push(' '),
            '\n' => clean.push('\n'),
            c if is_line_separator(c) => clean.push('\n'),
            c if c.is_control() || is_invisible(c) => {}
            c => clean.push(c),
        }
    }
    // The sequence can only appear once everything between its two characters
    // is gone, so this comes last.
    let clean = clean.replace("*/", "*\\/");

    let mut lines: Vec<String> = Vec::new();
    for line in clean.lines() {
        let line = line.trim_end();
        if line.is_empty() && lines.last().is_none_or(String::is_empty) {
            continue;
        }
        lines.push(line.to_owned());
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    if let [only] = lines.as_mut_slice() {
        *only = only.trim_start().to_owned();
    }
    if cut.len() < text.len()
        && let Some(last) = lines.last_mut()
    {
        last.push('…');
    }
    // A line that ends in `*` would end the comment with the slash after it.
    if let [only] = lines.as_mut_slice()
        && only.ends_with('*')
    {
        only.push(' ');
    }
    lines
}

/// Ends a line in JavaScript, though not to every reader.
fn is_line_separator(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Changes what a reader sees, or is read by a model and not by a person:
/// direction controls, zero-width marks (the joiners that scripts and emoji
/// need are kept), tag characters.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::{doc_comment, pascal_case, prefix, property_key, string_literal};

    #[test]
    fn doc_comments_cannot_be_ended_from_inside() {
        let check = |text: &str, expected: &str| {
            assert_eq!(doc_comment(text, 2, 40), expected, "{text:?}");
        };
        check("", "");
        check(" \n\n ", "");
        check("One line.", "  /** One line. */\n");
        check("a */ b", "  /** a *\\/ b */\n");
        check("a *\u{200b}/ b", "  /** a *\\/ b */\n");
        check("ends in *", "  /** ends in *  */\n");
        check(
            "\nTwo\r\n\n\n  lines\u{2028}/\n\n",
            "  /**\n   * Two\n   *\n   *   lines\n   * /\n   */\n",
        );
        check("é".repeat(40).as_str(), "  /** éééééééééééééééééééé… */\n");
    }

    #[test]
    fn keys_are_quoted_unless_identifiers() {
        let check = |name: &str, expected: &str| assert_eq!(property_key(name), expected);
        check("since", "since");
        check("$ref", "$ref");
        check("delete", "delete");
        check("x-y", "\"x-y\"");
        check("3d", "\"3d\"");
        check("", "\"\"");
        check("日本", "\"日本\"");
    }

    #[test]
    fn literals_escape_what_cannot_stand() {
        assert_eq!(
            string_literal("a\"b\\c\nd\u{2028}\u{202e}\u{e0041}"),
            r#""a\"b\\c\nd\u2028\u202e\udb40\udc41""#
        );
    }

    #[test]
    fn words_become_pascal_case() {
        assert_eq!(pascal_case("log-entry of 3D_things"), "LogEntryOf3DThings");
        assert_eq!(pascal_case("日本"), "");
        assert_eq!(prefix("aé", 2), "a");
    }
}

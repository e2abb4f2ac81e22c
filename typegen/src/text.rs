//! Strings of a schema's author inside TypeScript text: they can say anything, but not end the
//! comment or the literal they stand in, and not carry characters that a reader does not see.

use std::fmt::Write as _;

use callgate_text::is_invisible;

/// The text of a comment between `/**` and `*/`: no layout but single line breaks and indentation,
/// no invisible characters, at most `limit` bytes. The flag is true if the text was cut.
pub(crate) fn comment_text(text: &str, limit: usize) -> (String, bool) {
    let plain = |byte: u8| (b' '..0x7f).contains(&byte);
    let mut clean = String::with_capacity(text.len().min(limit) + 4);
    let mut blank_lines = 0;
    for line in text.split(ends_line) {
        let start = clean.len();
        if !clean.is_empty() {
            // One blank line parts paragraphs as well as several.
            clean.push_str(if blank_lines > 0 { "\n\n" } else { "\n" });
        }
        let content = clean.len();
        if line.bytes().all(plain) {
            clean.push_str(prefix(line, limit.saturating_mul(2)));
        } else {
            for character in line.chars() {
                match character {
                    '\t' => clean.push(' '),
                    c if c.is_control() || is_invisible(c) => {}
                    c => clean.push(c),
                }
                if clean.len() > limit.saturating_mul(2) {
                    break;
                }
            }
        }
        clean.truncate(content + clean.get(content..).unwrap_or_default().trim_end().len());
        let row = clean.get(content..).unwrap_or_default().trim_start();
        // At a terminal, such a row would look like one of a question.
        if content > 0 && row.starts_with(is_frame) {
            clean.insert_str(content, "* ");
        }
        if clean.len() == content {
            clean.truncate(start);
            blank_lines += 1;
        } else {
            blank_lines = 0;
        }
        if clean.len() > limit {
            break;
        }
    }
    if !clean.contains('\n') {
        clean.drain(..clean.len() - clean.trim_start().len());
    }
    let cut = clean.len() > limit;
    if cut {
        clean.truncate(prefix(&clean, limit).trim_end().len());
        clean.push('…');
    }
    (inert(clean), cut)
}

/// A text that cannot end the comment around it, or be a directive to the compiler.
fn inert(mut text: String) -> String {
    if text.contains("*/") {
        text = text.replace("*/", "*\\/");
    }
    if text.contains("@ts-") {
        text = text.replace("@ts-", "@\\ts-");
    }
    text
}

/// Writes a property name, quoted unless it is an identifier.
pub(crate) fn push_property_key(name: &str, text: &mut String) {
    let mut bytes = name.bytes();
    let starts = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$'));
    if starts && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')) {
        text.push_str(name);
    } else {
        push_string_literal(name, text);
    }
}

/// Writes a string literal in double quotes.
pub(crate) fn push_string_literal(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() || is_line_separator(c) || is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            c => text.push(c),
        }
    }
    text.push('"');
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

/// Characters that draw frames: lines and blocks.
fn is_frame(character: char) -> bool {
    matches!(character, '\u{2500}'..='\u{259f}')
}

fn ends_line(character: char) -> bool {
    character == '\n' || is_line_separator(character)
}

/// Ends a line in JavaScript, though not to every reader.
fn is_line_separator(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::{comment_text, pascal_case, prefix, push_string_literal};

    #[test]
    fn comments_cannot_be_ended_from_inside() {
        let check = |text: &str, expected: &str| {
            assert_eq!(comment_text(text, 40).0, expected, "{text:?}");
        };
        check("", "");
        check(" \n\n ", "");
        check("One line.", "One line.");
        check("  One line.  ", "One line.");
        check("a */ b", "a *\\/ b");
        check("a *\u{200b}/ b", "a *\\/ b");
        check("/* /** a */", "/* /** a *\\/");
        check("*/*/", "*\\/*\\/");
        check("@ts-expect-error", "@\\ts-expect-error");
        check("@\u{200b}ts-ignore", "@\\ts-ignore");
        check("\nTwo\r\n\n\n  lines\u{2028}/\n\n", "Two\n\n  lines\n/");
        check("One\n┃ two\n\u{200b} ├ three", "One\n* ┃ two\n*  ├ three");
    }

    #[test]
    fn long_comments_are_cut_between_characters() {
        let cut = |text: &str| comment_text(text, 9);
        assert_eq!(cut("123456789"), ("123456789".to_owned(), false));
        assert_eq!(cut("12345678 0"), ("12345678…".to_owned(), true));
        assert_eq!(cut("ééééé"), ("éééé…".to_owned(), true));
        assert_eq!(cut(&"\u{200b}\n".repeat(99)), (String::new(), false));
        assert_eq!(
            cut(&"x\n".repeat(1_000)),
            ("x\nx\nx\nx\nx…".to_owned(), true)
        );
    }

    #[test]
    fn string_literals_escape_special_characters() {
        let mut text = String::new();
        push_string_literal("a\"b\\c\nd\u{2028}\u{202e}\u{e0041}", &mut text);
        assert_eq!(text, r#""a\"b\\c\nd\u2028\u202e\udb40\udc41""#);
    }

    #[test]
    fn invisible_characters_are_removed_or_escaped() {
        let unseen = [
            '\u{34f}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{2065}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0e}',
            '\u{ffa0}',
            '\u{fff0}',
            '\u{1d173}',
            '\u{e0100}',
            '\u{e01ef}',
            '\u{e0fff}',
        ];
        for character in unseen {
            let text = format!("a{character}b");
            assert_eq!(comment_text(&text, 40).0, "ab", "{character:?}");
            let mut literal = String::new();
            push_string_literal(&text, &mut literal);
            assert!(literal.is_ascii(), "{character:?}");
        }
        let seen = "\u{2764}\u{fe0f}\u{200d}\u{1f525} \u{645}\u{200c}\u{646}";
        assert_eq!(comment_text(seen, 40).0, seen);
    }

    #[test]
    fn words_become_pascal_case() {
        assert_eq!(pascal_case("log-entry of 3D_things"), "LogEntryOf3DThings");
        assert_eq!(pascal_case("日本"), "");
        assert_eq!(prefix("aé", 2), "a");
    }
}

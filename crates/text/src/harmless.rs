//! Foreign text, made fit to be read by a person.

use crate::invisible::is_invisible;

/// The text with every control character but line ends and tabs spelled out, in the way that is
/// right in JSON, too: an escape sequence in a tool's result must not move the cursor, set the
/// clipboard or hide a line.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            c if c.is_control() || hides(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out += &format!("\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// True if a character that is no control character reorders or hides text, or leaves a gap
/// that is no space; also for joiners, selectors and separators, which declarations keep.
fn hides(character: char) -> bool {
    let kept = matches!(
        character,
        '\u{200c}'..='\u{200d}' | '\u{2028}'..='\u{2029}' | '\u{fe0f}'
    );
    kept || is_invisible(character)
}

/// The text [`harmless`], in one line, and cut to `max` characters: it cannot
/// pass for lines of ours.
pub fn one_line(text: &str, max: usize) -> String {
    let mut characters = text.trim().chars();
    let shown: String = characters.by_ref().take(max).collect();
    let more = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    let shown = harmless(&shown).replace('\n', "\\n").replace('\t', " ");
    format!("{shown}{more}")
}

/// The text with every line but the first indented: what a server wrote there cannot pass
/// for lines of ours.
pub fn indented(text: &str) -> String {
    text.replace("\r\n", "\n").replace(['\n', '\r'], "\n    ")
}

#[cfg(test)]
mod tests {
    use super::{harmless, indented};

    #[test]
    fn further_lines_are_indented_after_any_line_end() {
        assert_eq!(indented("one"), "one");
        assert_eq!(indented("a\nb\r\nc\rd\n"), "a\n    b\n    c\n    d\n    ");
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(harmless(text), expected);
    }

    #[test]
    fn control_characters_are_spelled_out() {
        check("plain\n\ttext ü 日本", "plain\n\ttext ü 日本");
        check("\x1b]0;title\x07", "\\u001b]0;title\\u0007");
        check("a\rb\u{9b}31m", "a\\u000db\\u009b31m");
        check("pay \u{202e}0001", "pay \\u202e0001");
        check("tag \u{e0041}", "tag \\udb40\\udc41");
    }

    #[test]
    fn ignorable_code_points_are_escaped() {
        let ignorable = regex::Regex::new(r"\p{Default_Ignorable_Code_Point}").expect("a pattern");
        let mut count = 0;
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            if ignorable.is_match(&text) {
                count += 1;
                assert_ne!(harmless(&text), text, "{:x}", u32::from(character));
            }
        }
        assert!(count > 4_000, "{count}");
    }

    #[test]
    fn blank_characters_are_escaped_but_spaces_are_kept() {
        check(
            "a\u{2800}b\u{ffa0}c\u{1d159}",
            "a\\u2800b\\uffa0c\\ud834\\udd59",
        );
        check("\u{13430}\u{16fe4}", "\\ud80d\\udc30\\ud81b\\udfe4");
        check("a\u{a0}b\u{3000}c", "a\u{a0}b\u{3000}c");
    }

    #[test]
    fn one_line_escapes_line_ends() {
        assert_eq!(super::one_line(" a\n\tb\r\nc ", 9), "a\\n b\\u000d\\nc");
        assert_eq!(super::one_line("aaaa", 3), "aaa…");
    }
}

//! Text that strangers wrote, made fit to be read by a person.

/// The text with every control character but line ends and tabs spelled out,
/// in the way that is right in JSON, too:
/// an escape sequence in a tool's result must not move the cursor, set the
/// clipboard or hide a line.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            c if c.is_control() || is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out += &format!("\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// Characters that reorder or hide text without being control characters.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text [`harmless`], in one line, and cut to `most` characters: it cannot
/// pass for lines of ours.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut characters = text.trim().chars();
    let shown: String = characters.by_ref().take(most).collect();
    let more = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    let shown = harmless(&shown).replace('\n', "\\n").replace('\t', " ");
    format!("{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::harmless;

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
    fn one_line_is_one_line() {
        assert_eq!(super::one_line(" a\n\tb\r\nc ", 9), "a\\n b\\u000d\\nc");
        assert_eq!(super::one_line("aaaa", 3), "aaa…");
    }
}

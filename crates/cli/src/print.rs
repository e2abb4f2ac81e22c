//! Printing: a closed pipe is no error, and what scripts and servers say
//! cannot steer the terminal.

use std::io::{self, IsTerminal as _, Write as _};

/// Writes to standard output. A reader that has gone away, such as `head`,
/// has what it wanted, so that is no error.
pub fn out(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = if stdout.is_terminal() {
        stdout.write_all(harmless(text).as_bytes())
    } else {
        stdout.write_all(text.as_bytes())
    };
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("could not write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes to standard error, where nothing can be done about a failure.
pub fn err(text: &str) {
    let mut stderr = io::stderr().lock();
    let text = if stderr.is_terminal() {
        harmless(text)
    } else {
        text.to_owned()
    };
    drop(stderr.write_all(text.as_bytes()));
}

/// Writes an error of the command itself.
pub fn error(message: &str) {
    err(&format!("callgate: {message}\n"));
}

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
}

//! Paths with segments of dots, which lead to a different place than their text says.

use std::borrow::Cow;

use callgate_text::is_invisible;

/// True if a text has a segment `.` or `..`, as in a path or a URL: between `/`, `\`, `?`, `#` or an
/// end, or before the `;` of a path parameter. Percent-encoding is undone once, and characters that
/// some reader [drops](is_dropped) do not count. Such a text leads to a different place than its
/// prefix says.
pub(crate) fn has_dot_segment(text: &str) -> bool {
    let text = decoded(text);
    // The character before a dot shows that most dots do not begin a segment.
    let mut dots = memchr::memchr_iter(b'.', text.as_bytes());
    dots.any(|at| {
        let Some((before, after)) = text.split_at_checked(at) else {
            return false;
        };
        begins_segment(before) && is_all_dots(after)
    })
}

fn begins_segment(before: &str) -> bool {
    let mut before = before.chars().rev();
    before.find(|char| !is_dropped(*char)).is_none_or(ends)
}

/// True if a segment that begins with a dot is one or two of them.
fn is_all_dots(segment: &str) -> bool {
    let mut dots = 0;
    let mut other = segment.chars().skip_while(|char| {
        dots += usize::from(*char == '.');
        dots <= 2 && (*char == '.' || is_dropped(*char))
    });
    other.next().is_none_or(|char| char == ';' || ends(char))
}

/// True if a segment ends before it.
fn ends(char: char) -> bool {
    matches!(char, '/' | '\\' | '?' | '#')
}

/// True for white space, control and invisible characters, and invalid UTF-8. They are ignored when
/// a segment is compared with `..`, because URL parsers, file systems and programs drop some of them.
fn is_dropped(char: char) -> bool {
    // `is_invisible` keeps the joiners and the selector that a reader of text needs.
    let is_kept = matches!(char, '\u{200c}'..='\u{200d}' | '\u{fe0f}');
    let is_shown = !is_kept && !is_invisible(char) && char != char::REPLACEMENT_CHARACTER;
    char.is_whitespace() || char.is_control() || !is_shown
}

/// The text with its percent-encoding undone once. URL parsers drop characters before they look
/// for escapes, so an escape may have dropped characters in it.
fn decoded(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'%', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().filter(|char| !is_dropped(*char)).collect();
    let bytes = kept.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%').then(|| escaped(bytes, at)).flatten();
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// The byte that an escape at a place stands for, if it is one.
fn escaped(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| {
        let digit = char::from(*bytes.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    Some(digit(at + 1)? << 4 | digit(at + 2)?)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn finds_segments_of_dots() {
        let check = |text: &str, found: bool| assert_eq!(has_dot_segment(text), found, "{text:?}");
        check("/data/../etc/passwd", true);
        check("../x", true);
        check("x/..", true);
        check("x/.", true);
        check("./x", true);
        check("..", true);
        check(".", true);
        check(r"C:\data\..\x", true);
        check("https://h/v1/%2e%2E/admin", true);
        check("https://h/v1/..%2fadmin", true);
        check("https://h/v1/.%5c.", true);
        check("https://h/v1/..?q", true);
        check("https://h/v1/..#f", true);
        check("https://h/v1/.\t./x", true);
        check("https://h/v1/%2\te%2\te/admin", true);
        check("https://h/v1/.%2\ne", true);
        check("https://h/v1/%\r\n2e.", true);
        check("https://h/v1/x%2\tf..", true);
        check("https://h/v1/..;/admin", true);
        check("https://h/v1/%2e%2e%3bx=y/admin", true);
        check("https://h/v1/;a=b/..", true);
        check("https://h/v1/x;.", false);
        check("https://h/v1/...;/admin", false);
        check("https://h/v1/.. ", true);
        check("https://h/v1/..\0", true);
        check("https://h/v1/..%01", true);
        check(" ../x", true);
        check("\u{1}../x", true);
        check("/data/ .. /x", true);
        for dropped in [
            "\u{7f}",
            "\u{85}",
            "\u{a0}",
            "\u{ad}",
            "\u{200b}",
            "\u{200f}",
            "\u{2003}",
            "\u{2028}",
            "\u{202e}",
            "\u{2060}",
            "\u{3000}",
            "\u{fe0f}",
            "\u{feff}",
            "\u{e0001}",
            "%7f",
            "%C2%85",
            "%c2%A0",
            "%E2%80%83",
            "%EF%BB%BF",
            "%A0",
            "%FF",
            "\u{a0}\u{feff}%20 ",
        ] {
            check(&format!("/w/out/..{dropped}"), true);
            check(&format!("/w/out/{dropped}.."), true);
            check(&format!("/w/out/.{dropped}.{dropped}/x"), true);
            check(&format!("{dropped}%2e"), true);
            check(&format!("/w/out/...{dropped}"), false);
            check(&format!("/w/out/..x{dropped}"), false);
            check(&format!("/w/out/x{dropped}.."), false);
            check(&format!("/w/{dropped}/out"), false);
        }
        check("/w/größe/..é", false);
        check("/w/é../ö", false);
        check("", false);
        check("/data/a..b/c", false);
        check("/data/.hidden", false);
        check("/data/...", false);
        check("/data/x.csv", false);
        check("it ends here.", false);
        check("It ends here. And there. ", false);
        check("see /data/x . not /data/y", false);
        check("50% of it / all", false);
        check("100%", false);
        check("%2", false);
        check("%.", false);
        check("%", false);
    }
}

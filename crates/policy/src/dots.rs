//! Texts that may name another place than they seem to: paths with dots.

/// Whether a text has a segment `.` or `..`, as a path or a URL would have it:
/// between `/`, `\`, `?`, `#` or an end, also percent-encoded once. Whoever
/// resolves such a text arrives elsewhere than its beginning says.
pub(crate) fn has_dot_segment(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Most texts have nothing that hides a dot, and no dot that begins a
    // segment.
    let hides = memchr::memchr3(b'%', b'\t', b'\n', bytes).is_some()
        || memchr::memchr(b'\r', bytes).is_some();
    if !hides && !memchr::memchr_iter(b'.', bytes).any(|at| begins_segment(bytes, at)) {
        return false;
    }
    let mut dots = 0;
    let mut only_dots = true;
    let mut at = 0;
    let dotted = |dots: u8, only_dots: bool| only_dots && (1..=2).contains(&dots);
    while let Some((byte, length)) = decoded(bytes, at) {
        at += length;
        match byte {
            b'/' | b'\\' | b'?' | b'#' => {
                if dotted(dots, only_dots) {
                    return true;
                }
                dots = 0;
                only_dots = true;
            }
            b'.' => dots = dots.saturating_add(1),
            // URL parsers drop these wherever they stand.
            b'\t' | b'\n' | b'\r' => {}
            _ => only_dots = false,
        }
    }
    dotted(dots, only_dots)
}

fn begins_segment(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_none_or(|before| matches!(before, b'/' | b'\\' | b'?' | b'#'))
}

/// The byte at a place and how many it is written with.
fn decoded(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let byte = *bytes.get(at)?;
    let digit = |at: usize| {
        let digit = char::from(*bytes.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let hex = (byte == b'%').then(|| Some(digit(at + 1)? << 4 | digit(at + 2)?));
    match hex.flatten() {
        Some(byte) => Some((byte, 3)),
        None => Some((byte, 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        check("", false);
        check("/data/a..b/c", false);
        check("/data/.hidden", false);
        check("/data/...", false);
        check("/data/x.csv", false);
        check("it ends here.", false);
        check("50% of it / all", false);
        check("100%", false);
        check("%2", false);
    }

    proptest! {
        #[test]
        fn takes_any_text(text in any::<String>()) {
            has_dot_segment(&text);
        }
    }
}

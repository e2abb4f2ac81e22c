//! Texts that may name another place than they seem to: paths with dots.

/// Whether a text has a segment `.` or `..`, as a path or a URL would have it:
/// between `/`, `\`, `?`, `#` or an end, also percent-encoded once, and whatever
/// white space and control characters are in it: URL parsers drop some of them
/// wherever they stand and all at the ends, and some file systems those at a
/// segment's end. Whoever resolves such a text arrives elsewhere than its
/// beginning says.
pub(crate) fn has_dot_segment(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Most texts have nothing that hides a dot, and no dot that begins a
    // segment.
    let hides = memchr::memchr(b'%', bytes).is_some();
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
            0..=b' ' => {}
            _ => only_dots = false,
        }
    }
    dotted(dots, only_dots)
}

fn begins_segment(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_none_or(|before| matches!(before, 0..=b' ' | b'/' | b'\\' | b'?' | b'#'))
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
        check("https://h/v1/.. ", true);
        check("https://h/v1/..\0", true);
        check("https://h/v1/..%01", true);
        check(" ../x", true);
        check("\u{1}../x", true);
        check("/data/ .. /x", true);
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
    }

    proptest! {
        #[test]
        fn takes_any_text(text in any::<String>()) {
            has_dot_segment(&text);
        }
    }
}

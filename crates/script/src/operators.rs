//! The places of operators in code that was printed anew.
//!
//! A source map tells where names and literals are, and V8 also points to operators: where `a + b`
//! throws, to the `+`. Between two places that are known, an operator is looked for in both texts.

use std::ops::Range;

/// A line and a column, both from 0, as source maps count.
type Place = (u32, u32);

/// Adds the places of operators to places in a code, which are in order, and in
/// the text that it was printed from.
pub(crate) fn add(places: &mut Vec<(Place, Place)>, code: &str, text: &str) {
    let (code, text) = (split(code), split(text));
    let mut found = Vec::new();
    for ((code_start, text_start), (code_end, text_end)) in places.iter().zip(places.iter().skip(1))
    {
        let (Some(between), Some(range)) = (
            slice(&code, *code_start, *code_end),
            slice(&text, *text_start, *text_end),
        ) else {
            continue;
        };
        let Some(operator) = operator(between) else {
            continue;
        };
        let Some(at) = between.get(operator.clone()).and_then(|o| range.rfind(o)) else {
            continue;
        };
        found.push((
            (code_start.0, code_start.1 + width(between, operator.start)),
            (text_start.0, text_start.1 + width(range, at)),
        ));
    }
    places.append(&mut found);
    places.sort_by_key(|(code, _)| *code);
    places.dedup_by_key(|(code, _)| *code);
}

/// The operator in a piece of code between two places: it stands before what the
/// second place is of. The parenthesis of a call is one where there is no other.
fn operator(between: &str) -> Option<Range<usize>> {
    let sign = |c: char| "+-*/%<>=!&|^?".contains(c);
    let until = between.trim_end_matches([' ', '(']);
    let before = until.trim_end_matches(sign);
    let start = if before.len() < until.len() {
        before.len()
    } else if let Some(word) = [" instanceof", " in"].iter().find(|w| until.ends_with(*w)) {
        until.len() - word.len() + 1
    } else {
        let call = between.find(")(")? + 1;
        return Some(call..call + 1);
    };
    // What begins where the piece does has a place already.
    (start > 0).then_some(start..until.len())
}

/// A line and whether it is ASCII.
type Line<'a> = (&'a str, bool);

/// Lines as source maps count them.
fn split(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['\n', '\r']);
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        lines.push((line, line.is_ascii()));
        let Some(end) = end else {
            return lines;
        };
        let after = rest.get(end..).unwrap_or_default();
        rest = after
            .strip_prefix("\r\n")
            .or_else(|| after.get(1..))
            .unwrap_or_default();
    }
}

/// The longest line with other characters than ASCII that is looked at, in
/// bytes: each look into one goes through all of it.
const LONGEST_WIDE: usize = 2_000;

/// What stands between two places, as far as it is on one line.
fn slice<'a>(lines: &[Line<'a>], start: Place, end: Place) -> Option<&'a str> {
    let (line, is_ascii) = *lines.get(start.0 as usize)?;
    if start > end || (!is_ascii && line.len() > LONGEST_WIDE) {
        return None;
    }
    let byte = |column: u32| {
        if is_ascii {
            return Some(column as usize);
        }
        let mut units = 0;
        let mut ends = line.char_indices().chain([(line.len(), '\0')]);
        let at = ends.find(|(_, c)| {
            let here = units >= column as usize;
            units += c.len_utf16();
            here
        });
        at.map(|(at, _)| at)
    };
    let end = match start.0 == end.0 {
        true => byte(end.1)?,
        false => line.len(),
    };
    line.get(byte(start.1)?..end)
}

/// The UTF-16 units before a byte of a text.
fn width(text: &str, byte: usize) -> u32 {
    let before = text.get(..byte).unwrap_or_default();
    u32::try_from(before.encode_utf16().count()).unwrap_or(u32::MAX)
}

//! Counting tokens as a model's tokenizer does.
//!
//! The vocabulary takes 46 MB and most of a second to load, so it is loaded for
//! the first text whose length does not already say enough, and kept.

use std::sync::OnceLock;

use tiktoken_rs::CoreBPE;

/// The vocabulary of the counts. Other models count somewhat differently.
pub(crate) const VOCABULARY: &str = "o200k_base";

/// Bytes that are counted at a time. What the tokenizer does grows faster than a
/// word's length, and it gives up on a long one; cut, a text has at most a token
/// more for each piece.
const PIECE: usize = 4096;

/// Bytes for which a token is not enough in any text worth counting: a text with
/// more of them for each token there may be is too long.
const SPARSE: usize = 8;

/// How long a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// No longer than asked, which its bytes say: a token has one or more.
    Short,
    /// So many tokens, no more than asked.
    Counted(usize),
    /// Longer than asked.
    Long,
}

impl Size {
    pub(crate) fn fits(self) -> bool {
        self != Self::Long
    }
}

/// Whether a text has at most so many tokens. It may load the vocabulary and
/// count, so it is for threads that may be busy for a while.
pub(crate) fn size(text: &str, most: usize) -> Size {
    if text.len() <= most {
        return Size::Short;
    }
    if text.len() > most.saturating_mul(SPARSE) {
        return Size::Long;
    }
    match count(text, most) {
        Some(count) => Size::Counted(count),
        None => Size::Long,
    }
}

/// The tokens of a text; `None` if they are more, or cannot be counted.
fn count(text: &str, most: usize) -> Option<usize> {
    static LOADED: OnceLock<Option<CoreBPE>> = OnceLock::new();
    let vocabulary = LOADED.get_or_init(|| {
        tiktoken_rs::o200k_base()
            .inspect_err(|error| tracing::warn!(%error, "tokens cannot be counted"))
            .ok()
    });
    let vocabulary = vocabulary.as_ref()?;
    let mut count = 0_usize;
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece(rest));
        count = count.saturating_add(vocabulary.encode_ordinary(piece).len());
        if count > most {
            return None;
        }
        rest = after;
    }
    Some(count)
}

/// Where the first piece of a text ends: after a line if there is one.
fn piece(text: &str) -> usize {
    let end = text.floor_char_boundary(PIECE);
    let head = text.get(..end).unwrap_or(text);
    match head.rfind('\n') {
        Some(line_feed) if end < text.len() => line_feed + 1,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_where_they_can() {
        assert_eq!(size("", 0), Size::Short);
        assert_eq!(size(&"x".repeat(100), 100), Size::Short);
        assert_eq!(size(&"x".repeat(801), 100), Size::Long);
    }

    #[test]
    fn tokens_decide_otherwise() {
        assert_eq!(size("hello world, hello world", 10), Size::Counted(5));
        assert_eq!(size("hello world, hello world", 4), Size::Long);
    }

    /// The tokenizer gives up on such texts when it has them whole.
    #[test]
    fn texts_that_are_made_to_be_hard_are_counted() {
        for text in [
            " ".repeat(1_000_000),
            "\n".repeat(300_000),
            "a".repeat(100_000),
            "日".repeat(30_000),
            "\u{301}".repeat(30_000),
        ] {
            let bytes = text.len();
            assert_ne!(size(&text, bytes - 1), Size::Long, "{bytes} bytes");
        }
    }

    #[test]
    fn pieces_are_whole() {
        let text = format!("{}\n{}", "é".repeat(1000), "é".repeat(3000));
        let mut rest = text.as_str();
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            let (head, after) = rest.split_at(piece(rest));
            lengths.push(head.len());
            rest = after;
        }
        assert_eq!(lengths, [2001, 4096, 1904]);
    }
}

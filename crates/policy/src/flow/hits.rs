//! What a look has found so far: for each source, how much of its data.

use super::finding::{Copied, Encoding, MAX_PIECE};

/// What was found of one source.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) source: u16,
    pub(super) copied: Copied,
    /// The length of the longest piece.
    longest: usize,
}

/// What was found of each source.
#[derive(Debug, Clone, Default)]
pub(super) struct Hits(Vec<Hit>);

impl Hits {
    /// Adds a piece of a source that is in the result of the call with this ordinal.
    pub(super) fn add(&mut self, source: u16, ordinal: usize, piece: &[u8], encoding: Encoding) {
        let shown = || {
            let cut = piece.get(..MAX_PIECE).unwrap_or(piece);
            String::from_utf8_lossy(cut).trim().to_owned()
        };
        let Self(hits) = self;
        let known = hits.iter_mut().find(|hit| hit.source == source);
        let Some(hit) = known else {
            hits.push(Hit {
                source,
                longest: piece.len(),
                copied: Copied {
                    ordinal,
                    bytes: piece.len(),
                    pieces: 1,
                    piece: shown(),
                    encoding,
                },
            });
            return;
        };
        hit.copied.bytes += piece.len();
        hit.copied.pieces += 1;
        if piece.len() > hit.longest {
            hit.longest = piece.len();
            hit.copied.ordinal = ordinal;
            hit.copied.piece = shown();
            hit.copied.encoding = encoding;
        }
    }

    /// Each source's, in the order in which sources were first met.
    pub(super) fn into_iter(self) -> impl Iterator<Item = Hit> {
        self.0.into_iter()
    }
}

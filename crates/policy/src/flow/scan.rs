//! The look at one call's arguments.

use std::ops::Range;

use memchr::{memchr, memmem};

use super::encoded::{MAX_SHIFTED, begins_like_text, decode, runs, texts};
use super::finding::{Copied, Encoding, MAX_PIECE, Side};
use super::flows::known;
use super::grams::GRAM;
use super::index::{Index, MIN_PIECE, SAMPLE};
use super::normal::{plus_is_space, without_plus};
use super::numbers::numbers;

/// Arguments longer than this, in bytes of normal form, are looked at in wider
/// steps.
pub(super) const LONG: usize = 128 << 10;

/// The shortest piece that is surely found in long arguments.
pub(super) const MIN_PIECE_IN_LONG: usize = 24;

/// How many places around a known fingerprint are looked at before it is asked
/// whose it is.
const NEAR: usize = 4 * SAMPLE;

/// How many places are looked up together.
const BLOCK: usize = 256;

/// A wide step through a long piece, in which all bytes but a few are looked at.
const WIDE: usize = 4 * SAMPLE;

/// Letters, digits and characters beyond ASCII that a piece needs: rules and
/// brackets are nobody's data.
const MIN_LETTERS: usize = 10;

/// Different ones among them.
const MIN_DIFFERENT: u32 = 4;

/// How often a call's pieces are looked for among what is known anyway. Later
/// ones count as unknown.
const MAX_KNOWN_CHECKS: usize = 64;

/// What was found of one source.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) source: u16,
    pub(super) copied: Copied,
    /// The length of the longest piece.
    longest: usize,
}

/// One look.
pub(super) struct Scan<'a> {
    index: &'a mut Index,
    /// Where the arguments go.
    to: &'a Side,
    /// Texts that are no server's secret: the script, in normal form and lower
    /// case, and the target's definition as it is.
    script: &'a [u8],
    definition: &'a str,
    /// The definition like the script, once it is needed.
    defined: Option<Vec<u8>>,
    known_checks: usize,
    pub(super) hits: Vec<Hit>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        index: &'a mut Index,
        to: &'a Side,
        script: &'a [u8],
        definition: &'a str,
    ) -> Self {
        Self {
            index,
            to,
            script,
            definition,
            defined: None,
            known_checks: 0,
            hits: Vec::new(),
        }
    }

    /// Looks at arguments, for whose normal form there is `room`.
    pub(super) fn arguments(&mut self, json: &[u8], room: &mut Vec<u8>) {
        room.clear();
        let as_it_is = self.index.normaliser.is_normal(json);
        if !as_it_is {
            self.index.normaliser.append(json, room);
        }
        let normal = if as_it_is { json } else { room.as_slice() };
        self.base64(normal);
        if memchr(b'+', normal).is_none() {
            return self.text(if as_it_is { json } else { room }, Encoding::Text);
        }
        if as_it_is {
            room.extend(json.iter().map(|byte| without_plus(*byte)));
        } else {
            plus_is_space(room);
        }
        self.text(room, Encoding::Text);
    }

    fn text(&mut self, text: &[u8], encoding: Encoding) {
        self.pieces(text, encoding);
        if self.index.has_numbers() {
            numbers(text, |value, digits| self.number(value, digits));
        }
    }

    fn base64(&mut self, text: &[u8]) {
        let (mut decoded, mut normal) = (Vec::new(), Vec::new());
        let mut look = |run: &[u8], decoded: &mut Vec<u8>| {
            decode(run, decoded);
            for byte in decoded.iter_mut() {
                *byte = (*byte).max(b' ');
            }
            plus_is_space(decoded);
            if self.index.normaliser.is_normal(decoded) {
                return self.text(decoded, Encoding::Base64);
            }
            normal.clear();
            self.index.normaliser.append(decoded, &mut normal);
            plus_is_space(&mut normal);
            self.text(&normal, Encoding::Base64);
        };
        runs(text, |range| {
            let run = text.get(range).unwrap_or_default();
            if run.len() > MAX_SHIFTED {
                let mut stretches = Vec::new();
                texts(run, &mut decoded, |stretch| stretches.push(stretch));
                for stretch in stretches {
                    look(run.get(stretch).unwrap_or_default(), &mut decoded);
                }
                return;
            }
            for shift in 0..4 {
                let run = run.get(shift..).unwrap_or_default();
                if begins_like_text(run, &mut decoded) {
                    look(run, &mut decoded);
                }
            }
        });
    }

    /// Finds copied pieces.
    fn pieces(&mut self, text: &[u8], encoding: Encoding) {
        match text.len() {
            0..=LONG => self.pieces_by::<SAMPLE>(text, encoding),
            _ => self.pieces_by::<{ MIN_PIECE_IN_LONG - GRAM + 1 }>(text, encoding),
        }
    }

    /// Takes every so many places, block by block, and looks around the few whose
    /// fingerprint is known.
    fn pieces_by<const STRIDE: usize>(&mut self, text: &[u8], encoding: Encoding) {
        let mut suspects = [0; BLOCK];
        let mut at = 0;
        // What is before belongs to a piece already.
        let mut floor = 0;
        while let Some(rest) = text.get(at..).filter(|rest| rest.len() >= GRAM) {
            let known = self.suspects::<STRIDE>(rest, &mut suspects);
            let mut next = at;
            for suspect in suspects.iter().take(known) {
                let suspect = at + usize::from(*suspect);
                if suspect < next || !self.has_company(text, suspect, STRIDE / 2) {
                    continue;
                }
                let run = self.run(text, suspect, floor);
                let piece_end = if run.len() >= SAMPLE {
                    self.piece(text, run.clone(), floor, encoding)
                } else {
                    None
                };
                if let Some(end) = piece_end {
                    // The next piece may begin within this one, not be in it.
                    floor = (end + 1).saturating_sub(GRAM);
                    next = floor;
                } else if run.len() >= NEAR {
                    next = run.end;
                }
            }
            at = next.max(at + BLOCK * STRIDE);
        }
    }

    /// Which of the places of a block have a fingerprint that is probably known,
    /// and how many those are. In two steps, so that the memory of the filter,
    /// which is far away, is asked for many places at the same time; and without
    /// a branch, as one place in twenty is known.
    fn suspects<const STRIDE: usize>(&self, text: &[u8], suspects: &mut [u16; BLOCK]) -> usize {
        let mut grams = [0; BLOCK];
        let windows = text.windows(GRAM).step_by(STRIDE);
        let mut places = 0;
        for (gram, window) in grams.iter_mut().zip(windows) {
            if let Some(window) = window.first_chunk() {
                *gram = self.index.key.window(window);
                places += 1;
            }
        }
        let filter = &self.index.filter;
        let mut known = 0;
        let mut place = 0;
        for gram in grams.iter().take(places) {
            if let Some(suspect) = suspects.get_mut(known) {
                *suspect = place;
            }
            known += usize::from(filter.has(*gram));
            place += STRIDE as u16;
        }
        known
    }

    /// Whether the fingerprint so far before the place, or behind it, is known,
    /// too. For each place of a piece one of them is.
    fn has_company(&self, text: &[u8], at: usize, distance: usize) -> bool {
        let known = |at| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.index.filter.has(gram))
        };
        known(at + distance) || at.checked_sub(distance).is_some_and(known)
    }

    /// The places side by side, around `at`, whose fingerprints are known.
    fn run(&self, text: &[u8], at: usize, floor: usize) -> Range<usize> {
        let known = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.index.filter.has(gram))
        };
        let lowest = floor.max(at.saturating_sub(SAMPLE));
        let mut start = at;
        while start > lowest && known(start - 1) {
            start -= 1;
        }
        let mut end = at + 1;
        while end < start + NEAR && known(end) {
            end += 1;
        }
        start..end
    }

    /// The piece, or pieces of several sources, that a place of `run` is in;
    /// where the last of them ends.
    fn piece(
        &mut self,
        text: &[u8],
        run: Range<usize>,
        floor: usize,
        encoding: Encoding,
    ) -> Option<usize> {
        self.index.ready();
        for at in run {
            let gram = self.index.key.gram(text, at)?;
            let places: Vec<usize> = self.index.places(gram).collect();
            let mut last = None;
            // The target's own, if it was the first to have it.
            let mut own = 0..0;
            for (nth, place) in places.into_iter().enumerate() {
                let (source, ordinal) = self.index.origin_at(place);
                let piece = self.extent(text, at, floor, place);
                if piece.len() < MIN_PIECE {
                    continue;
                }
                last = last.max(Some(piece.end));
                if self.is_target(source) {
                    if nth == 0 {
                        own = piece;
                    }
                    continue;
                }
                let in_own = own.start <= piece.start && piece.end <= own.end;
                let piece = text.get(piece).unwrap_or_default();
                if !in_own && is_data(piece) && !self.is_known(piece) {
                    self.record(source, ordinal, piece, encoding);
                }
            }
            if last.is_some() {
                return last;
            }
        }
        None
    }

    /// How far a piece of the source that has this place reaches around `at`.
    fn extent(&self, text: &[u8], at: usize, floor: usize, place: usize) -> Range<usize> {
        let source = self.index.origin_at(place).0;
        let from_source = |at: usize| {
            let gram = self.index.key.gram(text, at)?;
            let mut places = self.index.places(gram);
            places.find(|place| self.index.origin_at(*place).0 == source)
        };
        let is_near = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.index.filter.has(gram))
        };
        // As far as the source goes on the same way. Where it does not, it may
        // have what follows elsewhere: in a wide step, in which whatever lies
        // between is not looked at, or in that of the fingerprints. Then place by
        // place.
        let mut last = at;
        let mut place = place;
        loop {
            let rest = text.get(last..).unwrap_or_default();
            let further = self.index.common(place, rest).saturating_sub(GRAM);
            last += further - further % SAMPLE;
            let step = |step| Some((last + step, from_source(last + step)?));
            let Some(next) = step(WIDE).or_else(|| step(SAMPLE)) else {
                break;
            };
            (last, place) = next;
        }
        let mut near = last + 1;
        while near < last + SAMPLE && is_near(near) {
            near += 1;
        }
        let mut first = at;
        while first >= floor + SAMPLE && from_source(first - SAMPLE).is_some() {
            first -= SAMPLE;
        }
        let lowest = floor.max((first + 1).saturating_sub(SAMPLE));
        while first > lowest && is_near(first - 1) {
            first -= 1;
        }
        first..near - 1 + GRAM
    }

    fn number(&mut self, value: u64, digits: &[u8]) {
        let mut seen: Vec<u16> = Vec::new();
        let results: Vec<u16> = self.index.results_with_number(value).collect();
        for (place, result) in results.into_iter().enumerate() {
            let (source, ordinal) = self.index.origin(result);
            if self.is_target(source) {
                if place == 0 {
                    return;
                }
                continue;
            }
            if !seen.contains(&source) && !self.is_known(digits) {
                seen.push(source);
                self.record(source, ordinal, digits, Encoding::Number);
            }
        }
    }

    fn is_target(&self, source: u16) -> bool {
        let source = self.index.sources.get(usize::from(source));
        source.is_none_or(|source| source.server == self.to.server)
    }

    /// Whether a piece is in a text that is no server's secret.
    fn is_known(&mut self, piece: &[u8]) -> bool {
        // The definition's normal form is no longer than it is.
        let longest = self.script.len().max(self.definition.len());
        if self.known_checks == MAX_KNOWN_CHECKS || piece.len() > longest {
            return false;
        }
        self.known_checks += 1;
        let piece = piece.to_ascii_lowercase();
        let index = &*self.index;
        let defined = self
            .defined
            .get_or_insert_with(|| known(index, self.definition));
        memmem::find(self.script, &piece).is_some() || memmem::find(defined, &piece).is_some()
    }

    fn record(&mut self, source: u16, ordinal: usize, piece: &[u8], encoding: Encoding) {
        let shown = || {
            let cut = piece.get(..MAX_PIECE).unwrap_or(piece);
            String::from_utf8_lossy(cut).trim().to_owned()
        };
        let known = self.hits.iter_mut().find(|hit| hit.source == source);
        let Some(hit) = known else {
            self.hits.push(Hit {
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
}

/// Whether a piece has enough letters and digits to be somebody's data.
fn is_data(piece: &[u8]) -> bool {
    let start = piece.get(..64).unwrap_or(piece);
    let letters = start
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let mut seen = 0_u128;
    let mut count = 0;
    for letter in letters {
        count += 1;
        seen |= 1 << (letter.to_ascii_lowercase() & 127);
    }
    count >= MIN_LETTERS && seen.count_ones() >= MIN_DIFFERENT
}

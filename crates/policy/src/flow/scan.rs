//! The look at one call's arguments.

use std::ops::Range;

use memchr::{memchr, memmem};

use super::encoded::{MAX_SHIFTED, begins_like_text, decode, texts};
use super::filters::Others;
use super::finding::{Copied, Encoding, MAX_PIECE, Side, is_data};
use super::flows::known as in_normal_form;
use super::grams::{Filter, GRAM};
use super::index::{Index, MIN_PIECE, SAMPLE};
use super::kinds::bits;
use super::normal::{append, is_normal, plus_is_space, without_plus};
use super::numbers::{number, numbers};
use super::parts::{Part, Wanted, parts};
use super::probe::{BLOCK, known};

/// Arguments longer than this, in bytes of normal form, are looked at in wider
/// steps.
pub(super) const LONG: usize = 128 << 10;

/// The shortest piece that is surely found in long arguments.
pub(super) const MIN_PIECE_IN_LONG: usize = 24;

/// How many places around a known fingerprint are looked at before it is asked
/// whose it is.
const NEAR: usize = 4 * SAMPLE;

/// A wide step through a long piece, in which all bytes but a few are looked at.
const WIDE: usize = 4 * SAMPLE;

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

/// Room for what arguments are made into, kept so that it need not be asked for
/// again.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    normal: Vec<u8>,
    decoded: Vec<u8>,
    decoded_normal: Vec<u8>,
}

impl Rooms {
    /// Gives back what is more than a call should need.
    pub(super) fn shrink(&mut self, most: usize) {
        for room in [
            &mut self.normal,
            &mut self.decoded,
            &mut self.decoded_normal,
        ] {
            if room.capacity() > most {
                *room = Vec::new();
            }
        }
    }
}

/// One look.
pub(super) struct Scan<'a> {
    index: &'a mut Index,
    /// How many results there were when the arguments were written.
    results: usize,
    /// Where the arguments go.
    to: &'a Side,
    /// The filter of what others said.
    others: Others,
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
        results: usize,
        to: &'a Side,
        script: &'a [u8],
        definition: &'a str,
    ) -> Self {
        Self {
            others: index.filters.others(&to.server),
            index,
            results,
            to,
            script,
            definition,
            defined: None,
            known_checks: 0,
            hits: Vec::new(),
        }
    }

    /// Looks at arguments.
    pub(super) fn arguments(&mut self, json: &[u8], rooms: &mut Rooms) {
        let Rooms {
            normal,
            decoded,
            decoded_normal,
        } = rooms;
        normal.clear();
        let as_it_is = is_normal(json);
        if !as_it_is {
            append(json, normal);
        }
        let text: &[u8] = if as_it_is { json } else { &*normal };
        let wanted = Wanted {
            base64: true,
            digits: self.index.has_numbers(),
        };
        parts(text, wanted, |part| match part {
            Part::Base64(run) => {
                let run = text.get(run).unwrap_or_default();
                self.run_of_base64(run, decoded, decoded_normal);
            }
            Part::Digits(digits) => {
                if let Some((value, digits)) = number(text, digits) {
                    self.number(value, digits);
                }
            }
        });
        if memchr(b'+', text).is_none() {
            return self.pieces(text, Encoding::Text);
        }
        if as_it_is {
            normal.extend(json.iter().map(|byte| without_plus(*byte)));
        } else {
            plus_is_space(normal);
        }
        self.pieces(normal, Encoding::Text);
    }

    #[inline(never)]
    fn run_of_base64(&mut self, run: &[u8], decoded: &mut Vec<u8>, decoded_normal: &mut Vec<u8>) {
        let mut look = |run: &[u8]| {
            decode(run, decoded, |byte| without_plus(byte.max(b' ')));
            let mut text: &[u8] = decoded;
            if !is_normal(text) {
                decoded_normal.clear();
                append(text, decoded_normal);
                plus_is_space(decoded_normal);
                text = decoded_normal;
            }
            self.pieces(text, Encoding::Base64);
            if self.index.has_numbers() {
                numbers(text, |value, digits| self.number(value, digits));
            }
        };
        if run.len() > MAX_SHIFTED {
            return texts(run, |stretch| {
                look(run.get(stretch).unwrap_or_default());
            });
        }
        for shift in 0..4 {
            let run = run.get(shift..).unwrap_or_default();
            if begins_like_text(run) {
                look(run);
            }
        }
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
        while text.len() >= at + GRAM {
            let known = self.suspects::<STRIDE>(text, at, &mut suspects);
            let mut next = at;
            for suspect in suspects.iter().take(known) {
                let suspect = at + usize::from(*suspect);
                if suspect < next {
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

    /// The places of a block whose fingerprints are probably known, with company,
    /// and how many those are.
    fn suspects<const STRIDE: usize>(
        &self,
        text: &[u8],
        at: usize,
        suspects: &mut [u16; BLOCK],
    ) -> usize {
        let (key, filter) = (self.index.key, self.filter());
        let rest = text.get(at..).unwrap_or_default();
        let mut count = 0;
        for (nth, mask) in known::<STRIDE>(key, filter, rest).into_iter().enumerate() {
            for bit in bits(mask) {
                if let Some(suspect) = suspects.get_mut(count) {
                    *suspect = ((nth * 64 + bit as usize) * STRIDE) as u16;
                    count += 1;
                }
            }
        }
        // Of the fingerprints so far before the place and behind it, one is known,
        // too, for each place of a piece.
        let is_known = |at: usize| key.gram(text, at).is_some_and(|gram| filter.has(gram));
        let mut in_company = 0;
        for nth in 0..count {
            let place = suspects.get(nth).copied().unwrap_or(0);
            let here = at + usize::from(place);
            let before = here.checked_sub(STRIDE / 2).is_some_and(is_known);
            let behind = is_known(here + STRIDE / 2);
            if let Some(suspect) = suspects.get_mut(in_company) {
                *suspect = place;
            }
            in_company += usize::from(before | behind);
        }
        in_company
    }

    /// The places side by side, around `at`, whose fingerprints are known.
    fn run(&self, text: &[u8], at: usize, floor: usize) -> Range<usize> {
        let known = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.filter().has(gram))
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
            let places = self.index.places(gram);
            let places = places.filter(|place| self.was_there(self.index.result_at(*place)));
            let places: Vec<usize> = places.collect();
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
        let is_near = |at: usize| {
            let gram = self.index.key.gram(text, at);
            gram.is_some_and(|gram| self.filter().has(gram))
        };
        let from_source = |at: usize| {
            // The filter is nearer at hand, and mostly says no.
            let gram = self.index.key.gram(text, at).filter(|_| is_near(at))?;
            let mut places = self.index.places(gram);
            places.find(|place| self.index.origin_at(*place).0 == source)
        };
        // As far as the source goes on the same way. Where it does not, it may
        // have what follows elsewhere: in a wide step, in which whatever lies
        // between is not looked at, or in that of the fingerprints.
        let (mut last, mut last_place) = (at, place);
        let end = loop {
            let rest = text.get(last..).unwrap_or_default();
            let common = self.index.common(last_place, rest);
            let end = last + common;
            let further = common.saturating_sub(GRAM);
            last += further - further % SAMPLE;
            let step = |step| Some((last + step, from_source(last + step)?));
            match step(WIDE).or_else(|| step(SAMPLE)) {
                Some(next) => (last, last_place) = next,
                None => break end,
            }
        };
        let (mut first, mut first_place) = (at, place);
        while first >= floor + SAMPLE
            && let Some(place) = from_source(first - SAMPLE)
        {
            (first, first_place) = (first - SAMPLE, place);
        }
        let before = text.get(floor..first).unwrap_or_default();
        let start = first - self.index.common_before(first_place, before);
        if end >= start + MIN_PIECE {
            return start..end;
        }
        // Where the source has the beginning of the piece more than once, only one
        // such place is known. Then place by place.
        let mut near = last + 1;
        while near < last + SAMPLE && is_near(near) {
            near += 1;
        }
        let lowest = floor.max((first + 1).saturating_sub(SAMPLE));
        while first > lowest && is_near(first - 1) {
            first -= 1;
        }
        first..near - 1 + GRAM
    }

    fn filter(&self) -> &Filter {
        self.index.filters.get(self.others)
    }

    fn number(&mut self, value: u64, digits: &[u8]) {
        let mut seen: Vec<u16> = Vec::new();
        let results = self.index.results_with_number(value);
        let results: Vec<u16> = results.filter(|result| self.was_there(*result)).collect();
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

    fn was_there(&self, result: u16) -> bool {
        usize::from(result) < self.results
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
        let defined = self
            .defined
            .get_or_insert_with(|| in_normal_form(self.definition));
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

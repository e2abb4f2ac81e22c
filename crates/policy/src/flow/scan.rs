//! The look at one call's arguments.

use memchr::{memchr, memmem};
use rustc_hash::FxHashMap;

use super::encoded::{MAX_SHIFTED, decode, may_have_text, texts};
use super::filters::Place;
use super::finding::{Copied, Encoding, MAX_PIECE, Side};
use super::flows::known as in_normal_form;
use super::grams::{Filter, GRAM};
use super::index::{Index, MIN_PIECE, SAMPLE};
use super::kinds::bits;
use super::normal::{append, is_normal, plus_is_space, without_plus};
use super::numbers::{answered, number, numbers, stands_in};
use super::parts::{Part, Wanted, parts, parts_of_normal};
use super::probe::{BLOCK, known};

mod pieces;

use pieces::NEAR;

/// Arguments longer than this, in bytes of normal form, are looked at in wider
/// steps.
pub(super) const LONG: usize = 128 << 10;

/// The shortest piece that is surely found in long arguments.
pub(super) const MIN_PIECE_IN_LONG: usize = 24;

/// How often a call's pieces are looked for among what is known anyway. Later
/// ones count as unknown.
const MAX_KNOWN_CHECKS: usize = 64;

/// The most parts that are kept until it is known that a text is in normal form. Where there are
/// more, they are looked for again.
const MAX_PARTS: usize = 1 << 15;

/// The most places of results that one look goes to, besides one for each four bytes: many sources
/// that say the same, and arguments that repeat it, would make it slow.
const MIN_STEPS: usize = 1 << 16;

/// How many suspects the filter is asked about together.
const MANY: usize = 16;

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
    found: Vec<Part>,
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
    /// The filter of what others said, and whether those are one source.
    others: Place,
    has_one_other: bool,
    /// One with all that the target said.
    own: Place,
    /// Texts that are no server's secret: the script, in normal form and lower
    /// case, and the target's definition as it is.
    script: &'a [u8],
    definition: &'a str,
    /// The definition like the script, once it is needed.
    defined: Option<Vec<u8>>,
    /// The numbers of both, and what becomes of them, in order, once they are needed.
    known_numbers: Option<Vec<u64>>,
    known_checks: usize,
    /// Where the last piece of each source ends in the text that is looked at.
    reached: FxHashMap<u16, usize>,
    /// How many places of results were looked at, and how many may be.
    steps: usize,
    most_steps: usize,
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
        let others = index.sources.iter();
        let others = others.filter(|source| source.server != to.server);
        let has_one_other = others.count() == 1;
        let others = index.others(&to.server);
        Self {
            has_one_other,
            others,
            own: index.filters.own(&to.server),
            index,
            results,
            to,
            script,
            definition,
            defined: None,
            known_numbers: None,
            known_checks: 0,
            reached: FxHashMap::default(),
            steps: 0,
            most_steps: MIN_STEPS,
            hits: Vec::new(),
        }
    }

    /// Whether it was given up: then there may be data of whomever it did not meet.
    pub(super) fn is_given_up(&self) -> bool {
        self.steps >= self.most_steps
    }

    /// Looks at arguments.
    pub(super) fn arguments(&mut self, json: &[u8], rooms: &mut Rooms) {
        let Rooms {
            normal,
            decoded,
            decoded_normal,
            found,
        } = rooms;
        self.most_steps = MIN_STEPS + json.len() / 4;
        normal.clear();
        let wanted = Wanted {
            base64: true,
            digits: self.index.has_numbers(),
        };
        found.clear();
        let mut are_all = true;
        let as_it_is = parts_of_normal(json, wanted, |part| match found.len() {
            0..MAX_PARTS => found.push(part),
            _ => are_all = false,
        });
        if !as_it_is {
            append(json, normal);
        }
        let text: &[u8] = if as_it_is { json } else { &*normal };
        let mut look = |part| match part {
            Part::Base64(run) => {
                let run = text.get(run).unwrap_or_default();
                self.run_of_base64(run, decoded, decoded_normal);
            }
            Part::Digits(digits) => {
                if let Some((value, digits)) = number(text, digits) {
                    self.number(value, digits);
                }
            }
        };
        if as_it_is && are_all {
            found.drain(..).for_each(look);
        } else {
            parts(text, wanted, &mut look);
        }
        if memchr(b'+', text).is_none() {
            return self.pieces(text, Encoding::Text);
        }
        if as_it_is {
            normal.extend_from_slice(json);
        }
        plus_is_space(normal, 0);
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
                plus_is_space(decoded_normal, 0);
                text = decoded_normal;
            }
            self.pieces(text, Encoding::Base64);
            if self.index.has_numbers() {
                numbers(text, |value, digits| self.number(value, digits));
            }
        };
        // What stands before it, such as a path, may be of the same alphabet.
        for shift in 0..4 {
            let run = run.get(shift..).unwrap_or_default();
            if run.len() > MAX_SHIFTED {
                texts(run, |stretch| {
                    look(run.get(stretch).unwrap_or_default());
                });
            } else if may_have_text(run) {
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
        self.reached.clear();
        let mut suspects = [0; BLOCK];
        let mut at = 0;
        // What is before is in a piece already.
        let mut next = 0;
        while text.len() >= at + GRAM && self.steps < self.most_steps {
            let known = self.suspects::<STRIDE>(text, at, &mut suspects);
            for suspect in suspects.iter().take(known) {
                let suspect = at + usize::from(*suspect);
                if suspect < next && !self.is_shared(text, suspect) {
                    continue;
                }
                let run = self.run(text, suspect);
                let piece_end = if run.len() >= SAMPLE {
                    self.piece(text, suspect, run.clone(), encoding)
                } else {
                    None
                };
                if let Some(end) = piece_end {
                    // The next piece may begin within this one; but what is in it, or the most
                    // of it, is only another's if several have it.
                    next = next.max((end + 1).saturating_sub(MIN_PIECE));
                } else if run.len() >= NEAR {
                    next = next.max(run.end);
                }
            }
            at += BLOCK * STRIDE;
            if !self.index.shares() {
                at = at.max(next);
            }
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
        // too, for each place of a piece. Beyond the ends of the text it is that of nothing: a
        // yes to that is one too many, as others are.
        let mut in_company = 0;
        for first in (0..count).step_by(MANY) {
            let some = first..count.min(first + MANY);
            let mut beside = [[0; 2]; MANY];
            for (nth, beside) in some.clone().zip(&mut beside) {
                let here = at + usize::from(suspects.get(nth).copied().unwrap_or(0));
                let around = [here.checked_sub(STRIDE / 2), Some(here + STRIDE / 2)];
                *beside = around.map(|at| at.and_then(|at| key.gram(text, at)).unwrap_or(0));
                for gram in beside {
                    filter.fetch(*gram);
                }
            }
            for (nth, grams) in some.zip(&beside) {
                let place = suspects.get(nth).copied().unwrap_or(0);
                let [before, behind] = grams.map(|gram| filter.has(gram));
                if let Some(suspect) = suspects.get_mut(in_company) {
                    *suspect = place;
                }
                in_company += usize::from(before | behind);
            }
        }
        in_company
    }

    fn filter(&self) -> &Filter {
        self.index.filters.get(self.others)
    }

    fn number(&mut self, value: u64, digits: &[u8]) {
        let mut seen: Vec<u16> = Vec::new();
        let results = self.index.results_with_number(value);
        let results: Vec<u16> = results.filter(|result| self.was_there(*result)).collect();
        let mut is_known = None;
        for (place, result) in results.into_iter().enumerate() {
            let (source, ordinal) = self.index.origin(result);
            if self.is_target(source) {
                if place == 0 {
                    return;
                }
                continue;
            }
            let is_known = is_known.get_or_insert_with(|| self.is_known_number(value, digits));
            if !*is_known && !seen.contains(&source) {
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
        if !self.may_be_known(piece) {
            return false;
        }
        let piece = piece.to_ascii_lowercase();
        let mut texts = self.known_texts().into_iter();
        texts.any(|text| memmem::find(text, &piece).is_some())
    }

    /// Whether a number is in one, or becomes of one that is.
    fn is_known_number(&mut self, value: u64, digits: &[u8]) -> bool {
        if self.known_numbers.is_none() {
            let mut numbers = Vec::new();
            for text in self.known_texts() {
                answered(text, |value| numbers.push(value));
            }
            numbers.sort_unstable();
            self.known_numbers = Some(numbers);
        }
        let numbers = self.known_numbers.as_deref().unwrap_or_default();
        if numbers.binary_search(&value).is_ok() {
            return true;
        }
        // A name's digits, such as those of `row_123456`, are no number there.
        self.may_be_known(digits) && {
            let mut texts = self.known_texts().into_iter();
            texts.any(|text| stands_in(digits, text))
        }
    }

    /// Whether a piece can be in one and may be looked for.
    fn may_be_known(&mut self, piece: &[u8]) -> bool {
        // The definition's normal form is no longer than it is.
        let longest = self.script.len().max(self.definition.len());
        let may_be = self.known_checks < MAX_KNOWN_CHECKS && piece.len() <= longest;
        self.known_checks += usize::from(may_be);
        may_be
    }

    fn known_texts(&mut self) -> [&[u8]; 2] {
        let defined = self
            .defined
            .get_or_insert_with(|| in_normal_form(self.definition));
        [self.script, defined]
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

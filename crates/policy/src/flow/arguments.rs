//! The arguments of one call, made into texts that are looked through: what they are without
//! escapes, and what base64 in them stands for. Numbers and short texts are looked for at once.

use memchr::memchr;

use super::encoded::{MAX_SHIFTED, decode, may_have_text, texts};
use super::finding::Encoding;
use super::hits::Hits;
use super::known::Known;
use super::normal::{append, is_normal, plus_is_space, without_plus};
use super::numbers::{number, numbers};
use super::parts::{Part, Wanted, parts, parts_of_normal};
use super::scan::{Found, LONG, Scan, Terms};

/// The most parts that are kept until it is known that a text is in normal form. Where there are
/// more, they are looked for again.
const MAX_PARTS: usize = 1 << 15;

/// The most places of results that one look goes to, besides one for each four bytes: many sources
/// that say the same, and arguments that repeat it, would make it slow.
const MIN_STEPS: usize = 1 << 16;

/// The most places of results that a look at these arguments goes to.
pub(super) fn most_steps(json: &[u8]) -> usize {
    MIN_STEPS + json.len() / 4
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

/// Arguments that are being looked at.
pub(super) struct Arguments<'a> {
    terms: Terms<'a>,
    pub(super) known: Known<'a>,
    pub(super) hits: Hits,
    /// How many places of results were looked at, and how many may be.
    pub(super) steps: usize,
    pub(super) most_steps: usize,
    /// What base64 stands for, where that takes long to look through.
    pub(super) long: Vec<Long>,
}

/// A text that takes long to look through.
#[derive(Debug)]
pub(super) struct Long {
    /// What was made of the arguments; `None` if it is they, as they are.
    made: Option<Vec<u8>>,
    pub(super) encoding: Encoding,
}

impl Long {
    /// What arguments are without escapes, if that had to be made.
    fn text_of(made: Option<Vec<u8>>) -> Self {
        Self {
            made,
            encoding: Encoding::Text,
        }
    }

    /// The text itself, of these arguments.
    pub(super) fn text<'a>(&'a self, json: &'a [u8]) -> &'a [u8] {
        self.made.as_deref().unwrap_or(json)
    }
}

impl<'a> Arguments<'a> {
    /// Looks at arguments, but not through long texts. What they are without escapes goes to
    /// `outer`, if that is long: mostly before what takes the most time here, as it can be looked
    /// through meanwhile.
    pub(super) fn begin(
        terms: Terms<'a>,
        known: Known<'a>,
        json: &[u8],
        rooms: &mut Rooms,
        outer: impl FnMut(Long),
    ) -> Self {
        let mut begun = Self {
            terms,
            known,
            hits: Hits::default(),
            steps: 0,
            most_steps: most_steps(json),
            long: Vec::new(),
        };
        begun.look(json, rooms, outer);
        begun
    }

    /// Those that were begun before, with what was found then.
    pub(super) fn continued(terms: Terms<'a>, known: Known<'a>, hits: Hits) -> Self {
        Self {
            terms,
            known,
            hits,
            steps: 0,
            most_steps: 0,
            long: Vec::new(),
        }
    }

    fn look(&mut self, json: &[u8], rooms: &mut Rooms, mut outer: impl FnMut(Long)) {
        let Rooms {
            normal,
            decoded,
            decoded_normal,
            found,
        } = rooms;
        normal.clear();
        let wanted = Wanted {
            base64: true,
            digits: self.terms.index.has_numbers(),
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
        let mut is_given = false;
        if as_it_is && json.len() > LONG {
            let made = memchr(b'+', json).map(|_| {
                let mut made = json.to_vec();
                plus_is_space(&mut made, 0);
                made
            });
            is_given = made.as_ref().is_none_or(|made| made.len() > LONG);
            if is_given {
                outer(Long::text_of(made));
            }
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
        if is_given {
            return;
        }
        let has_plus = memchr(b'+', text).is_some();
        if as_it_is && !has_plus {
            return self.short(json, Encoding::Text);
        }
        if as_it_is {
            normal.extend_from_slice(json);
        }
        if has_plus {
            plus_is_space(normal, 0);
        }
        match normal.len() {
            0..=LONG => self.short(normal, Encoding::Text),
            _ => outer(Long::text_of(Some(std::mem::take(normal)))),
        }
    }

    #[inline(never)]
    fn run_of_base64(&mut self, run: &[u8], decoded: &mut Vec<u8>, decoded_normal: &mut Vec<u8>) {
        let mut look = |run: &[u8]| {
            decode(run, decoded, |byte| without_plus(byte.max(b' ')));
            let mut text = &mut *decoded;
            if !is_normal(text) {
                decoded_normal.clear();
                append(text, decoded_normal);
                plus_is_space(decoded_normal, 0);
                text = decoded_normal;
            }
            if self.terms.index.has_numbers() {
                numbers(text, |value, digits| self.number(value, digits));
            }
            match text.len() {
                0..=LONG => self.short(text, Encoding::Base64),
                _ => self.long.push(Long {
                    made: Some(std::mem::take(text)),
                    encoding: Encoding::Base64,
                }),
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

    fn short(&mut self, text: &[u8], encoding: Encoding) {
        let mut scan = Scan::new(self.terms, self.steps, self.most_steps);
        scan.short(text);
        self.steps = scan.steps;
        self.add(&scan.found, text, encoding);
    }

    /// Adds the pieces that were found in a text.
    pub(super) fn add(&mut self, found: &[Found], text: &[u8], encoding: Encoding) {
        for Found {
            source,
            ordinal,
            range,
        } in found
        {
            let piece = text.get(range.clone()).unwrap_or_default();
            if !self.known.has(piece) {
                self.hits.add(*source, *ordinal, piece, encoding);
            }
        }
    }

    fn number(&mut self, value: u64, digits: &[u8]) {
        let Terms { index, .. } = self.terms;
        let mut seen: Vec<u16> = Vec::new();
        let results = index.results_with_number(value);
        let results = results.filter(|result| self.terms.was_there(*result));
        let results: Vec<u16> = results.collect();
        let mut is_known = None;
        for (place, result) in results.into_iter().enumerate() {
            let (source, ordinal) = index.origin(result);
            if self.terms.is_target(source) {
                if place == 0 {
                    return;
                }
                continue;
            }
            let is_known = is_known.get_or_insert_with(|| self.known.has_number(value, digits));
            if !*is_known && !seen.contains(&source) {
                seen.push(source);
                self.hits.add(source, ordinal, digits, Encoding::Number);
            }
        }
    }
}

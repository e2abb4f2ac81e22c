//! The look at long arguments, which several threads can take part in.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::arguments::{Arguments, Long, Rooms, most_steps};
use super::filters::Place;
use super::finding::{Finding, Seen, Side};
use super::hits::Hits;
use super::index::{Gap, Index};
use super::known::Known;
use super::scan::{Found, Scan, Terms};

/// How often whoever finishes a look looks whether another thread has searched a section that it
/// has begun, before it does that itself: some hundred microseconds, in which that is
/// done unless the other has lost its processor.
const PATIENCE: usize = 10_000;

/// The same where another thread makes the texts: some milliseconds.
const PATIENCE_FOR_TEXTS: usize = 100_000;

/// The most places of results that [`Inspection::finish_soon`] goes to: some milliseconds.
const SOON: usize = 1 << 16;

/// A look at one call's arguments that is not done yet, by what was learnt before it was begun.
///
/// Its parts are done by whoever has time for them: other threads, which
/// [help](Self::help), and the one that finishes it. That waits for none of them, but where one
/// is making the tables of what was learnt, once a run.
pub struct Inspection {
    index: Arc<Index>,
    others: Place,
    script: Arc<[u8]>,
    results: usize,
    to: Side,
    definition: String,
    arguments: Arc<String>,
    /// Whether somebody makes the texts.
    begun: AtomicBool,
    /// What the arguments are without escapes, if that is long: made before the rest.
    outer: OnceLock<Texts>,
    rest: OnceLock<Rest>,
    /// As many places of results as all looked at by now, or fewer; and how many may be.
    steps: AtomicUsize,
    most_steps: usize,
}

/// Long texts, which are searched by sections.
struct Texts {
    long: Vec<Long>,
    sections: Vec<Section>,
    /// The first section that nobody has begun.
    next: AtomicUsize,
}

/// What else arguments were made into, and what was found then.
struct Rest {
    texts: Texts,
    hits: Hits,
    /// How often a piece was looked for in what is known anyway.
    checks: usize,
    /// How many places of results were looked at then.
    steps: usize,
}

/// A part of a long text.
struct Section {
    /// Which text it is of.
    long: usize,
    places: Range<usize>,
    searched: OnceLock<Searched>,
}

/// What came of a section.
struct Searched {
    found: Vec<Found>,
    steps: usize,
    is_given_up: bool,
}

impl Inspection {
    /// A look at arguments for `to` that were written when there were only so many results.
    pub(super) fn new(
        index: &Arc<Index>,
        others: Place,
        script: &Arc<[u8]>,
        results: usize,
        to: &Side,
        arguments: &Arc<String>,
        definition: &str,
    ) -> Self {
        Self {
            index: Arc::clone(index),
            others,
            script: Arc::clone(script),
            results,
            to: to.clone(),
            definition: definition.to_owned(),
            arguments: Arc::clone(arguments),
            begun: AtomicBool::new(false),
            outer: OnceLock::new(),
            rest: OnceLock::new(),
            steps: AtomicUsize::new(0),
            most_steps: most_steps(arguments.as_bytes()),
        }
    }

    /// Does what nobody has begun, until there is no more of it.
    pub fn help(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) {
            self.rest();
        }
        let sections = || {
            self.texts()
                .map(|texts| texts.sections.len())
                .sum::<usize>()
        };
        // Of a single one, nothing would be left for others.
        while sections() > 1
            && let Some((texts, section)) = self.next()
        {
            self.search(texts, section, self.most_steps);
        }
    }

    /// What the arguments carry, as [`Flows::inspect`](super::Flows::inspect) says it. Whoever
    /// helps may be at a part afterwards still, for nothing.
    pub fn finish(&self) -> Vec<Finding> {
        let rest = self.search_all(usize::MAX);
        self.found(rest.unwrap_or_else(|| self.rest()))
    }

    /// The same, if it takes some milliseconds at the most; `None` if it is better
    /// [finished](Self::finish) where nobody else has to wait for it.
    pub fn finish_soon(&self) -> Option<Vec<Finding>> {
        let rest = self.search_all(SOON)?;
        Some(self.found(rest))
    }

    /// Searches what nobody has begun, and what others do not finish soon; `None` if that is not done
    /// after so many steps besides those for what is not searched in sections.
    fn search_all(&self, steps: usize) -> Option<&Rest> {
        let mut most_steps = self.most_steps.min(steps);
        let mut patience = PATIENCE_FOR_TEXTS;
        let is_begun = self.begun.swap(true, Ordering::Relaxed);
        while is_begun && self.rest.get().is_none() && patience > 0 {
            match self.next() {
                Some((texts, section)) => self.search(texts, section, most_steps)?,
                None => {
                    std::hint::spin_loop();
                    patience -= 1;
                }
            }
        }
        let rest = self.rest();
        most_steps = self.most_steps.min(rest.steps.saturating_add(steps));
        while let Some((texts, section)) = self.next() {
            self.search(texts, section, most_steps)?;
        }
        for texts in self.texts() {
            for section in &texts.sections {
                if !is_searched(section) {
                    self.search(texts, section, most_steps)?;
                }
            }
        }
        Some(rest)
    }

    /// The rest, made by this thread unless there is one.
    fn rest(&self) -> &Rest {
        self.rest.get().unwrap_or_else(|| {
            let rest = self.make_rest();
            let steps = rest.steps;
            // Of those who did the same, one counts.
            if self.rest.set(rest).is_ok() {
                self.steps.fetch_add(steps, Ordering::Relaxed);
            }
            self.rest.wait()
        })
    }

    /// The texts that are there by now.
    fn texts(&self) -> impl Iterator<Item = &Texts> {
        let rest = self.rest.get().map(|rest| &rest.texts);
        self.outer.get().into_iter().chain(rest)
    }

    /// A section that nobody has begun.
    fn next(&self) -> Option<(&Texts, &Section)> {
        self.texts().find_map(|texts| {
            // Whoever waits asks often.
            texts.sections.get(texts.next.load(Ordering::Relaxed))?;
            let next = texts.next.fetch_add(1, Ordering::Relaxed);
            Some((texts, texts.sections.get(next)?))
        })
    }

    /// What was found, once all sections are searched.
    fn found(&self, rest: &Rest) -> Vec<Finding> {
        let known = Known::new(&self.script, &self.definition, rest.checks);
        let mut all = Arguments::continued(self.terms(), known, rest.hits.clone());
        let mut steps = rest.steps;
        let mut is_given_up = false;
        for texts in self.texts() {
            for section in &texts.sections {
                let Some(searched) = section.searched.get() else {
                    // Then nobody can tell.
                    is_given_up = true;
                    continue;
                };
                steps += searched.steps;
                is_given_up |= searched.is_given_up;
                if let Some(long) = texts.long.get(section.long) {
                    let text = long.text(self.arguments.as_bytes());
                    all.add(&searched.found, text, long.encoding);
                }
            }
        }
        is_given_up |= steps >= self.most_steps;
        findings(&self.index, &self.to, all.hits, is_given_up)
    }

    /// Makes texts of the arguments; the outer one is there before the rest.
    fn make_rest(&self) -> Rest {
        let known = Known::new(&self.script, &self.definition, 0);
        let json = self.arguments.as_bytes();
        let outer = |long| {
            // Of those who did the same, one counts.
            let _others = self.outer.set(self.in_sections(vec![long]));
        };
        let begun = Arguments::begin(self.terms(), known, json, &mut Rooms::default(), outer);
        Rest {
            texts: self.in_sections(begun.long),
            hits: begun.hits,
            checks: begun.known.checks(),
            steps: begun.steps,
        }
    }

    fn in_sections(&self, long: Vec<Long>) -> Texts {
        let (terms, json) = (self.terms(), self.arguments.as_bytes());
        let sections = long.iter().enumerate().flat_map(|(nth, long)| {
            let sections = terms.sections(long.text(json)).into_iter();
            sections.map(move |places| Section {
                long: nth,
                places,
                searched: OnceLock::new(),
            })
        });
        Texts {
            sections: sections.collect(),
            long,
            next: AtomicUsize::new(0),
        }
    }

    /// Searches a section; `None` if it is not done after `most_steps` of all, which are fewer than
    /// there may be.
    fn search(&self, texts: &Texts, section: &Section, most_steps: usize) -> Option<()> {
        let Some(long) = texts.long.get(section.long) else {
            return Some(());
        };
        let before = self.steps.load(Ordering::Relaxed);
        let mut scan = Scan::new(self.terms(), before, most_steps);
        let text = long.text(self.arguments.as_bytes());
        scan.section(text, section.places.clone());
        if scan.steps >= most_steps && most_steps < self.most_steps {
            return None;
        }
        let steps = scan.steps - before;
        let searched = Searched {
            found: scan.found,
            steps,
            is_given_up: scan.steps >= self.most_steps,
        };
        // Of those who did the same, one counts.
        if section.searched.set(searched).is_ok() {
            self.steps.fetch_add(steps, Ordering::Relaxed);
        }
        Some(())
    }

    fn terms(&self) -> Terms<'_> {
        Terms {
            index: &self.index,
            results: self.results,
            to: &self.to,
            others: self.others,
        }
    }
}

/// Whether a section is searched, or is as soon as the thread is done that has begun it.
fn is_searched(section: &Section) -> bool {
    (0..PATIENCE).any(|_| {
        let is_searched = section.searched.get().is_some();
        if !is_searched {
            std::hint::spin_loop();
        }
        is_searched
    })
}

impl fmt::Debug for Inspection {
    // Data of servers belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspection")
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

/// What is said of arguments in which this was found; if it `is_given_up`, there may be data of
/// whoever was not met.
pub(super) fn findings(index: &Index, to: &Side, hits: Hits, is_given_up: bool) -> Vec<Finding> {
    let goes_to = Arc::new(to.clone());
    let finding = |from: &Arc<Side>, seen| Finding {
        from: Arc::clone(from),
        to: Arc::clone(&goes_to),
        seen,
    };
    let copied = hits.into_iter().filter_map(|hit| {
        let from = index.sources.get(usize::from(hit.source))?;
        Some(finding(from, Seen::Copied(hit.copied)))
    });
    let is_other = |from: &&Arc<Side>| from.server != to.server;
    let crowded = index.sources.iter().filter(|_| is_given_up);
    let crowded = crowded.map(|from| (from, Gap::Crowded));
    let gaps = index.gaps().filter(|_| !is_given_up).chain(crowded);
    let gaps = gaps.filter(|(from, _)| is_other(from));
    let gaps = gaps.map(|(from, gap)| finding(from, Seen::NotCompared(gap.reason())));
    copied.chain(gaps).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow::{Copied, Flows};

    const SAID: &str = "what the other server said before";

    /// Words that are all different, and no numbers.
    fn filling(first: usize, bytes: usize) -> String {
        let mut text = String::new();
        let mut nth = first;
        while text.len() < bytes {
            let word = format!("{:x} ", nth.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            text.extend(word.chars().map(|c| match c {
                '0'..='9' => char::from(c as u8 - b'0' + b'g'),
                _ => c,
            }));
            nth += 1;
        }
        text
    }

    /// The look at this text, after another server than its target said that.
    fn inspection(said: &str, text: &str) -> Inspection {
        let mut flows = Flows::default();
        let from = Side::new("a_get", "a", "get");
        flows.learn(from, 1, &json!(said).to_string());
        let arguments = Arc::new(json!({ "text": text }).to_string());
        flows.begin(1, &Side::new("b_put", "b", "put"), &arguments, "")
    }

    /// A long text in which it is said again, three times.
    fn repeated() -> Inspection {
        let filling = |nth: usize| filling(nth * 1_000_000, 100_000);
        let [a, b, c] = [1, 2, 3].map(filling);
        inspection(SAID, &format!("{SAID} {a}{SAID} {b}{SAID} {c}"))
    }

    /// How much was found.
    fn copied(findings: &[Finding]) -> Vec<(usize, usize)> {
        let copied = findings.iter().map(|finding| match &finding.seen {
            Seen::Copied(Copied { bytes, pieces, .. }) => (*bytes, *pieces),
            Seen::NotCompared(_) => (0, 0),
        });
        copied.collect()
    }

    #[test]
    fn all_of_it_may_be_done_by_others() {
        let inspection = repeated();
        inspection.help();
        let texts = inspection.outer.get().expect("texts");
        assert!(texts.sections.len() > 3, "{}", texts.sections.len());
        let mut sections = texts.sections.iter();
        assert!(sections.all(|section| section.searched.get().is_some()));
        // There is nothing left to search.
        assert!(inspection.next().is_none());
        assert_eq!(copied(&inspection.finish()), [(99, 3)]);
    }

    #[test]
    fn what_others_began_and_do_not_finish_is_done_all_the_same() {
        for finish in [
            |inspection: &Inspection| inspection.finish(),
            |inspection: &Inspection| inspection.finish_soon().expect("soon"),
        ] {
            let inspection = repeated();
            // All texts but the outer one.
            inspection.begun.store(true, Ordering::Relaxed);
            inspection.make_rest();
            // The first section of that, and one behind it.
            let outer = inspection.outer.get().expect("the outer text");
            outer.next.store(2, Ordering::Relaxed);
            assert_eq!(copied(&finish(&inspection)), [(99, 3)]);
        }
    }

    #[test]
    fn others_leave_a_single_section_alone() {
        let said = filling(1, 200_000);
        let inspection = inspection(&said, &said);
        inspection.help();
        let texts = inspection.outer.get().expect("texts");
        assert_eq!(texts.sections.len(), 1);
        assert!(texts.sections[0].searched.get().is_none());
        assert_eq!(copied(&inspection.finish()), [(said.len(), 1)]);
    }

    #[test]
    fn a_look_that_is_given_up_says_so_whoever_did_what_of_it() {
        for is_helped in [false, true] {
            let mut inspection = repeated();
            inspection.most_steps = 2;
            if is_helped {
                inspection.help();
            }
            let found = copied(&inspection.finish());
            assert!(found.contains(&(0, 0)), "{found:?}");
        }
    }

    #[test]
    fn what_takes_long_is_not_finished_soon() {
        // Pieces that have to be looked up, each of them.
        let said = filling(1, 60_000);
        let piece = |nth: usize| {
            let begin = nth * 307 % (said.len() - 34);
            &said[begin..begin + 34]
        };
        let text: String = (0..45_000).map(piece).collect();
        let inspection = inspection(&said, &text);
        assert_eq!(inspection.finish_soon(), None);
        let found = inspection.finish();
        assert!(copied(&found)[0].1 > 10_000, "{found:?}");
        // By now it is done.
        assert_eq!(inspection.finish_soon(), Some(found));
    }
}

//! Learns results, and finds copies of them in arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::finding::{Copied, Encoding, Finding, MAX_PIECE, Seen, Side, is_data};
use super::known::KnownTexts;
use super::normalize::{each_base64, each_part, normalize, plus_to_space, search_form};
use super::numbers::{each_answered_number, each_number};
use super::owners::{Owner, Owners, OwnersId};
use super::windows::{Source, Windows};

/// The maximum number of bytes of results, as JSON, that one run's detector learns. Its index of
/// them takes up to 150 MiB.
pub(super) const MAX_BYTES: usize = 10 << 20;

/// The maximum number of different numbers that it keeps.
pub(super) const MAX_NUMBERS: usize = 1 << 18;

/// The minimum size of arguments with data: a key and a number.
const MIN_ARGUMENTS: usize = 12;

const TOO_MUCH: &str = "this run has more results than can be compared";
const TOO_REPETITIVE: &str = "they are too repetitive to be compared";

/// Finds data of one server in the arguments for another, within one run.
///
/// Its memory is bounded. Results are indexed when the first arguments for a different server come.
pub struct Detector {
    /// In search form.
    script: Vec<u8>,
    learnt: Mutex<Learnt>,
}

/// The results of a run so far.
#[derive(Default)]
struct Learnt {
    /// The tools that answered.
    tools: Vec<Arc<Side>>,
    /// The ordinal of each result's call.
    ordinals: Vec<usize>,
    /// Results that no arguments were compared with yet.
    waiting: Vec<(Owner, Box<str>)>,
    bytes: usize,
    owners: Owners,
    windows: Windows,
    numbers: FxHashMap<u128, OwnersId>,
    /// The tools whose results are not all in here, and why.
    incomplete: BTreeMap<u32, &'static str>,
}

impl Detector {
    /// A detector without results. Text of `script`, the run's script, does not count as a server's
    /// data.
    pub fn new(script: &str) -> Self {
        Self {
            script: search_form(script.as_bytes()),
            learnt: Mutex::default(),
        }
    }

    /// Learns the result of one call: JSON text that `from` answered to the call with this
    /// ordinal.
    pub fn learn(&self, from: &Side, ordinal: usize, result: &str) {
        self.learnt.lock().take(from, ordinal, result);
    }

    /// Finds data of other servers in arguments, JSON text that would go to `to`. There is at
    /// most one finding for each tool that data came from, and one for each tool whose results
    /// could not be compared. Text of `definition`, the called tool's definition as JSON, does not
    /// count as a server's data.
    pub fn find(&self, to: &Side, arguments: &str, definition: &str) -> Vec<Finding> {
        let mut learnt = self.learnt.lock();
        if !learnt.has_others(to) {
            return Vec::new();
        }
        let mut found = BTreeMap::new();
        if arguments.len() >= MIN_ARGUMENTS {
            learnt.catch_up();
            let mut search = Search {
                learnt: &learnt,
                known: KnownTexts::new(&self.script, definition),
                to,
                found,
            };
            search.arguments(arguments.as_bytes());
            found = search.found;
        }
        learnt.findings(to, found)
    }
}

impl Default for Detector {
    fn default() -> Self {
        Self::new("")
    }
}

impl fmt::Debug for Detector {
    // Data of servers belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detector").finish_non_exhaustive()
    }
}

impl Learnt {
    fn take(&mut self, from: &Side, ordinal: usize, result: &str) {
        let known = self.tools.iter().position(|tool| **tool == *from);
        let tool = known.unwrap_or_else(|| {
            self.tools.push(Arc::new(from.clone()));
            self.tools.len() - 1
        });
        // There are fewer calls in a run.
        let (Ok(tool), Ok(number)) = (u32::try_from(tool), u32::try_from(self.ordinals.len()))
        else {
            return;
        };
        if self.bytes + result.len() > MAX_BYTES {
            self.incomplete.insert(tool, TOO_MUCH);
            return;
        }
        self.bytes += result.len();
        self.ordinals.push(ordinal);
        let owner = Owner {
            tool,
            result: number,
        };
        self.waiting.push((owner, result.into()));
    }

    /// True if a server other than that of `to` answered.
    fn has_others(&self, to: &Side) -> bool {
        self.tools.iter().any(|tool| tool.server != to.server)
    }

    /// Searches the results that wait for it.
    fn catch_up(&mut self) {
        for (owner, result) in std::mem::take(&mut self.waiting) {
            each_part(result.as_bytes(), |part, is_string| {
                self.learn_part(owner, part, is_string);
            });
        }
    }

    fn learn_part(&mut self, owner: Owner, text: &[u8], is_string: bool) {
        let Self {
            owners,
            windows,
            numbers,
            incomplete,
            ..
        } = self;
        let mut last = None;
        let mut add = |known| {
            // Most windows have the same owners as the one before.
            if let Some((before, added)) = last
                && before == known
            {
                return added;
            }
            let added = owners.add(known, owner);
            last = Some((known, added));
            if added.is_none() {
                incomplete.insert(owner.tool, TOO_REPETITIVE);
            }
            added
        };
        let text = normalize(text);
        let mut is_full = false;
        each_answered_number(&text, |number| {
            let known = numbers.get(&number).copied();
            is_full |= known.is_none() && numbers.len() >= MAX_NUMBERS;
            if !is_full && let Some(owners) = add(known) {
                numbers.insert(number, owners);
            }
        });
        if is_string {
            let text = plus_to_space(text).to_ascii_lowercase();
            windows.learn(&text, &mut add);
        }
        if is_full {
            incomplete.insert(owner.tool, TOO_MUCH);
        }
    }

    fn tool(&self, tool: u32) -> Option<&Arc<Side>> {
        self.tools.get(tool as usize)
    }

    /// The tools of other servers that have the data, and whether the server of `to` said it
    /// before them, so that it is its own.
    fn sources(&self, owners: OwnersId, to: &Side) -> Vec<Source> {
        let mut is_own = false;
        let mut sources = Vec::new();
        for owner in self.owners.list(owners) {
            match self.tool(owner.tool) {
                Some(tool) if tool.server != to.server => sources.push(Source { owner, is_own }),
                _ => is_own = true,
            }
        }
        sources
    }

    fn findings(&self, to: &Side, found: BTreeMap<u32, Found>) -> Vec<Finding> {
        let to = Arc::new(to.clone());
        let finding = |tool: u32, seen| {
            let from = self.tool(tool).filter(|from| from.server != to.server)?;
            Some(Finding::new(Arc::clone(from), Arc::clone(&to), seen))
        };
        let copied = found.into_iter();
        let copied = copied.filter_map(|(tool, found)| finding(tool, Seen::Copied(found.copied)));
        let incomplete = self.incomplete.iter();
        let incomplete =
            incomplete.filter_map(|(tool, reason)| finding(*tool, Seen::NotCompared(reason)));
        copied.chain(incomplete).collect()
    }
}

/// The search for data in the arguments of one call.
struct Search<'a> {
    learnt: &'a Learnt,
    known: KnownTexts<'a>,
    to: &'a Side,
    /// The data that was found of each tool.
    found: BTreeMap<u32, Found>,
}

/// The data that was found of one tool.
#[derive(Default)]
struct Found {
    copied: Copied,
    longest: usize,
}

impl Search<'_> {
    fn arguments(&mut self, json: &[u8]) {
        let text = normalize(json);
        each_base64(&text, |decoded| {
            self.text(normalize(&decoded), Encoding::Base64);
        });
        self.text(text, Encoding::Text);
    }

    fn text(&mut self, text: Vec<u8>, encoding: Encoding) {
        let text = plus_to_space(text);
        let lower = text.to_ascii_lowercase();
        let (learnt, to) = (self.learnt, self.to);
        let pieces = learnt
            .windows
            .find(&lower, |owners| learnt.sources(owners, to));
        for piece in pieces {
            let in_lower = lower.get(piece.range.clone()).unwrap_or_default();
            if is_data(in_lower) && !self.known.has_piece(in_lower) {
                self.add(piece.owner, &text, piece.range, encoding);
            }
        }
        if learnt.numbers.is_empty() {
            return;
        }
        each_number(&lower, |number, range| {
            let Some(owners) = learnt.numbers.get(&number) else {
                return;
            };
            let mut sources = learnt.sources(*owners, to);
            sources.retain(|source| !source.is_own);
            let digits = lower.get(range.clone()).unwrap_or_default();
            if !sources.is_empty() && !self.known.has_number(number, digits) {
                for Source { owner, .. } in sources {
                    self.add(owner, &text, range.clone(), Encoding::Number);
                }
            }
        });
    }

    fn add(&mut self, owner: Owner, text: &[u8], range: Range<usize>, encoding: Encoding) {
        let piece = text.get(range).unwrap_or_default();
        let found = self.found.entry(owner.tool).or_default();
        found.copied.bytes += piece.len();
        if piece.len() > found.longest {
            let ordinal = self.learnt.ordinals.get(owner.result as usize);
            let shown = piece.get(..MAX_PIECE).unwrap_or(piece);
            found.longest = piece.len();
            found.copied.ordinal = ordinal.copied().unwrap_or_default();
            found.copied.piece = String::from_utf8_lossy(shown).trim().to_owned();
            found.copied.encoding = encoding;
        }
    }
}

//! The windows of learnt texts: each twelve bytes side by side, and which results have them.
//!
//! A text of sixteen bytes has five windows one after the other. So a search looks up every fifth
//! window of a text, and its neighbours only where that one is known. Five known windows in a row
//! are a copy. Only a hash of 32 bits is kept of each window: that one is known by mistake is
//! rare, and five in a row do not happen.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::owners::{Owner, OwnersId};

/// The shortest piece that counts as copied, in bytes of normal form.
pub(super) const MIN_PIECE: usize = 16;

/// The bytes of a window.
pub(super) const WINDOW: usize = 12;

/// The windows that the shortest piece has.
const STEP: usize = MIN_PIECE - WINDOW + 1;

/// The windows of all results of one run.
#[derive(Debug)]
pub(super) struct Windows {
    /// Hashes differ from run to run, so that no server can prepare texts with equal ones.
    seeds: [u64; 2],
    owners: FxHashMap<u32, OwnersId>,
}

/// A tool whose results have a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) owner: Owner,
    /// True if the server that the text goes to said it first.
    pub(super) is_own: bool,
}

/// A part of a text that is also in a tool's results.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) owner: Owner,
    pub(super) range: Range<usize>,
}

impl Default for Windows {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            seeds: [1_u8, 2].map(|seed| random.hash_one(seed)),
            owners: FxHashMap::default(),
        }
    }
}

impl Windows {
    /// Learns a text in lower case. `add` adds to the owners of a window.
    pub(super) fn learn(
        &mut self,
        text: &[u8],
        mut add: impl FnMut(Option<OwnersId>) -> Option<OwnersId>,
    ) {
        if text.len() < MIN_PIECE {
            return;
        }
        self.owners.reserve(text.len());
        for window in text.windows(WINDOW) {
            let Some(hash) = self.hash(window) else {
                continue;
            };
            match self.owners.entry(hash) {
                Entry::Vacant(entry) => {
                    if let Some(owners) = add(None) {
                        entry.insert(owners);
                    }
                }
                Entry::Occupied(mut entry) => {
                    if let Some(owners) = add(Some(*entry.get())) {
                        entry.insert(owners);
                    }
                }
            }
        }
    }

    /// Finds the pieces of a text, in lower case, that results have.
    pub(super) fn find(
        &self,
        text: &[u8],
        mut sources: impl FnMut(OwnersId) -> Vec<Source>,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut done = 0;
        let mut at = STEP - 1;
        while at + WINDOW <= text.len() {
            if self.get(text, at).is_none() {
                at += STEP;
                continue;
            }
            let mut first = at;
            while first > done && self.get(text, first - 1).is_some() {
                first -= 1;
            }
            done = self.follow(text, first, &mut sources, &mut pieces);
            at = done + STEP;
        }
        pieces
    }

    /// Follows known windows from a place on, and adds the pieces that they form.
    fn follow(
        &self,
        text: &[u8],
        first: usize,
        sources: &mut impl FnMut(OwnersId) -> Vec<Source>,
        pieces: &mut Vec<Piece>,
    ) -> usize {
        let mut runs: Vec<Run> = Vec::new();
        let mut previous = None;
        let mut at = first;
        while let Some(known) = self.get(text, at) {
            if previous != Some(known) {
                let here = sources(known);
                runs.retain_mut(|run| {
                    run.pass(at);
                    let goes_on = here
                        .iter()
                        .any(|source| source.owner.tool == run.owner.tool);
                    if !goes_on {
                        pieces.extend(run.piece(at));
                    }
                    goes_on
                });
                for source in here {
                    let tool = source.owner.tool;
                    match runs.iter_mut().find(|run| run.owner.tool == tool) {
                        Some(run) => run.meet(source, at),
                        None => runs.push(Run::begin(source, at)),
                    }
                }
                previous = Some(known);
            }
            at += 1;
        }
        for mut run in runs {
            run.pass(at);
            pieces.extend(run.piece(at));
        }
        at
    }

    fn get(&self, text: &[u8], at: usize) -> Option<OwnersId> {
        let hash = self.hash(text.get(at..at + WINDOW)?)?;
        self.owners.get(&hash).copied()
    }

    fn hash(&self, window: &[u8]) -> Option<u32> {
        let (first, last) = window.split_first_chunk::<8>()?;
        let first = u64::from_le_bytes(*first) ^ self.seeds[0];
        let last = u64::from(u32::from_le_bytes(*last.first_chunk()?)) ^ self.seeds[1];
        let product = u128::from(first) * u128::from(last);
        Some((product >> 48) as u32)
    }
}

/// Windows in a row that one tool's results have.
struct Run {
    owner: Owner,
    start: usize,
    /// The windows from the first to the last that are not the target's own.
    foreign: Option<Range<usize>>,
    is_own: bool,
}

impl Run {
    fn begin(source: Source, at: usize) -> Self {
        let mut run = Self {
            owner: source.owner,
            start: at,
            foreign: None,
            is_own: true,
        };
        run.meet(source, at);
        run
    }

    /// Records the windows from `at` on.
    fn meet(&mut self, source: Source, at: usize) {
        // The result that had all of it first is the latest of these.
        self.owner.result = self.owner.result.max(source.owner.result);
        self.is_own = source.is_own;
        if !source.is_own && self.foreign.is_none() {
            self.foreign = Some(at..at);
        }
    }

    /// Notes that the windows before `at` are like the last one.
    fn pass(&mut self, at: usize) {
        if let Some(foreign) = self.foreign.as_mut().filter(|_| !self.is_own) {
            foreign.end = at;
        }
    }

    /// The piece that a run forms which ends before the window at `end`.
    fn piece(&self, end: usize) -> Option<Piece> {
        let foreign = self.foreign.clone()?;
        let start = self.start.max((foreign.start + 1).saturating_sub(STEP));
        let end = end.min(foreign.end + STEP - 1);
        (end - start >= STEP).then(|| Piece {
            owner: self.owner,
            range: start..end + WINDOW - 1,
        })
    }
}

//! One run's data: learnt from results, looked for in arguments.

use std::sync::Arc;

use super::finding::{Finding, Seen, Side};
use super::index::{Gap, Index, MIN_PIECE};
use super::normal::{append, plus_is_space};
use super::numbers::numbers;
use super::scan::{Rooms, Scan};

/// What the results of one run had in them, as far as it may be sent elsewhere.
///
/// Results are kept as they are until arguments for another server come; then
/// the strings and numbers in them become fingerprints. All of it is in memory
/// and goes with this value.
#[derive(Debug)]
pub struct Flows {
    index: Index,
    /// The script, in normal form and lower case.
    script: Vec<u8>,
    rooms: Rooms,
}

/// The most room of one kind that is kept between calls, in bytes.
const MAX_ROOM: usize = 4 << 20;

impl Default for Flows {
    fn default() -> Self {
        Self::new("")
    }
}

impl Flows {
    /// Nothing learnt yet. What `script`, the run's own text, says is not
    /// anybody's data, wherever else it is found; it may be empty.
    pub fn new(script: &str) -> Self {
        let index = Index::new();
        let script = known(script);
        Self {
            index,
            script,
            rooms: Rooms::default(),
        }
    }

    /// Learns the result of one call: JSON text that `from` answered to the
    /// call with this ordinal. Text that is no JSON is learnt as far as it
    /// looks like it.
    pub fn learn(&mut self, from: Side, ordinal: usize, result: &str) {
        self.index.take(from, ordinal, result);
    }

    /// How many bytes a look at these arguments for `to` would go through: they, and
    /// the results that it would have to learn first.
    pub fn work(&self, to: &Side, arguments: &str) -> usize {
        if self.has_others(to) && may_hold_data(arguments) {
            self.index.backlog() + arguments.len()
        } else {
            0
        }
    }

    /// What has to be said of arguments for `to` as long as nobody has looked at them:
    /// that they may hold data of every other server.
    pub fn unseen(&self, to: &Side) -> Vec<Finding> {
        let others = self.index.sources.iter();
        let others = others.filter(|from| from.server != to.server);
        let to = Arc::new(to.clone());
        let seen = Seen::NotCompared("nobody has looked at them yet");
        let unseen = others.map(|from| Finding {
            from: Arc::clone(from),
            to: Arc::clone(&to),
            seen: seen.clone(),
        });
        unseen.collect()
    }

    /// Learns what is kept as it came. A look does that by itself; this is for
    /// who wants it done before.
    pub fn catch_up(&mut self) {
        self.index.catch_up();
    }

    /// How many results there are by now.
    pub fn results(&self) -> usize {
        self.index.results()
    }

    /// Looks in arguments, JSON text that would go to `to`, for what other
    /// servers answered before. There is at most one finding for each tool of
    /// theirs. `definition` is the target tool's own, as JSON: what it says is
    /// no finding; it may be empty.
    pub fn inspect(&mut self, to: &Side, arguments: &str, definition: &str) -> Vec<Finding> {
        self.inspect_among(self.results(), to, arguments, definition)
    }

    /// [`Flows::inspect`] for arguments that were written when there were only so many
    /// results: what came later is not in them, whoever says the same.
    pub fn inspect_among(
        &mut self,
        results: usize,
        to: &Side,
        arguments: &str,
        definition: &str,
    ) -> Vec<Finding> {
        if !self.has_others(to) {
            return Vec::new();
        }
        let mut hits = Vec::new();
        let mut is_given_up = false;
        if may_hold_data(arguments) {
            self.index.catch_up();
            let mut scan = Scan::new(&mut self.index, results, to, &self.script, definition);
            scan.arguments(arguments.as_bytes(), &mut self.rooms);
            is_given_up = scan.is_given_up();
            hits = scan.hits;
            self.rooms.shrink(MAX_ROOM);
        }
        let goes_to = Arc::new(to.clone());
        let finding = |from: &Arc<Side>, seen| Finding {
            from: Arc::clone(from),
            to: Arc::clone(&goes_to),
            seen,
        };
        let sources = &self.index.sources;
        let copied = hits.into_iter().filter_map(|hit| {
            let from = sources.get(usize::from(hit.source))?;
            Some(finding(from, Seen::Copied(hit.copied)))
        });
        let is_other = |from: &&Arc<Side>| from.server != to.server;
        let crowded = sources.iter().filter(|_| is_given_up);
        let crowded = crowded.map(|from| (from, Gap::Crowded));
        let gaps = self.index.gaps().filter(|_| !is_given_up).chain(crowded);
        let gaps = gaps.filter(|(from, _)| is_other(from));
        let gaps = gaps.map(|(from, gap)| finding(from, Seen::NotCompared(gap.reason())));
        copied.chain(gaps).collect()
    }

    /// Whether another server than that of `to` has answered anything.
    fn has_others(&self, to: &Side) -> bool {
        let mut sources = self.index.sources.iter();
        sources.any(|from| from.server != to.server)
    }
}

/// Whether arguments are long enough for a piece, or have a number, or what becomes one
/// when escapes are undone. Results need not be learnt for those that do not, such as `{}`.
fn may_hold_data(arguments: &str) -> bool {
    if arguments.len() >= MIN_PIECE || arguments.contains(['%', '\\']) {
        return true;
    }
    let mut found = false;
    numbers(arguments.as_bytes(), |_, _| found = true);
    found
}

impl Gap {
    fn reason(self) -> &'static str {
        match self {
            Self::Full => "this run has more results than can be compared",
            Self::Crowded => "they are too repetitive to be compared",
        }
    }
}

/// A text in which pieces are looked for. Unlike JSON, a script has lines of its own.
pub(super) fn known(text: &str) -> Vec<u8> {
    let text: Vec<u8> = text.bytes().map(|byte| byte.max(b' ')).collect();
    let mut normal = Vec::new();
    append(&text, &mut normal);
    plus_is_space(&mut normal, 0);
    normal.make_ascii_lowercase();
    normal
}

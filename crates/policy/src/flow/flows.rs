//! One run's data: learnt from results, looked for in arguments.

use std::sync::Arc;

use super::arguments::{Arguments, Rooms};
use super::filters::Place;
use super::finding::{Finding, Seen, Side};
use super::hits::Hits;
use super::index::{Gap, Index, MIN_PIECE};
use super::inspection::{Inspection, findings};
use super::known::{Known, in_normal_form};
use super::numbers::numbers;
use super::scan::{Scan, Terms};

/// What the results of one run had in them, as far as it may be sent elsewhere.
///
/// Results are kept as they are until arguments for another server come; then
/// the strings and numbers in them become fingerprints. All of it is in memory
/// and goes with this value.
#[derive(Debug)]
pub struct Flows {
    /// Alone in having it, unless a look goes on.
    index: Arc<Index>,
    /// The script, in normal form and lower case.
    script: Arc<[u8]>,
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
        Self {
            index: Arc::new(Index::new()),
            script: in_normal_form(script).into(),
            rooms: Rooms::default(),
        }
    }

    /// Learns the result of one call: JSON text that `from` answered to the
    /// call with this ordinal. Text that is no JSON is learnt as far as it
    /// looks like it.
    pub fn learn(&mut self, from: Side, ordinal: usize, result: &str) {
        Arc::make_mut(&mut self.index).take(from, ordinal, result);
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

    /// How many bytes of results have to be gone through besides, once, where a look at arguments
    /// for `to` needs all that is made of them.
    pub fn to_be_made(&self, to: &Side) -> usize {
        self.index.to_be_made(&to.server)
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
        if !self.index.is_caught_up() {
            Arc::make_mut(&mut self.index).catch_up();
        }
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
        if !may_hold_data(arguments) {
            return findings(&self.index, to, Hits::default(), false);
        }
        let others = self.others(to);
        let terms = Terms {
            index: &self.index,
            results,
            to,
            others,
        };
        let known = Known::new(&self.script, definition, 0);
        let json = arguments.as_bytes();
        let mut outer = None;
        let rooms = &mut self.rooms;
        let mut all = Arguments::begin(terms, known, json, rooms, |long| outer = Some(long));
        self.rooms.shrink(MAX_ROOM);
        for long in outer.into_iter().chain(std::mem::take(&mut all.long)) {
            let text = long.text(json);
            for places in terms.sections(text) {
                let mut scan = Scan::new(terms, all.steps, all.most_steps);
                scan.section(text, places);
                all.steps = scan.steps;
                all.add(&scan.found, text, long.encoding);
            }
        }
        let is_given_up = all.steps >= all.most_steps;
        findings(&self.index, to, all.hits, is_given_up)
    }

    /// Begins the look of [`Flows::inspect_among`], which other threads can help with: for
    /// arguments that take long. What is learnt, while somebody is at it still, makes a copy of
    /// what was learnt before.
    pub fn begin(
        &mut self,
        results: usize,
        to: &Side,
        arguments: &Arc<String>,
        definition: &str,
    ) -> Inspection {
        let others = self.others(to);
        let (index, script) = (&self.index, &self.script);
        Inspection::new(index, others, script, results, to, arguments, definition)
    }

    /// Learns what is kept as it came, and says which filter has what others said.
    fn others(&mut self, to: &Side) -> Place {
        self.catch_up();
        let known = self.index.others(&to.server);
        known.unwrap_or_else(|| Arc::make_mut(&mut self.index).join())
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
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Full => "this run has more results than can be compared",
            Self::Crowded => "they are too repetitive to be compared",
        }
    }
}

//! The results that have the same data, as small numbers.
//!
//! Most data is in one result, or in the same few. Each combination of results is kept once.

use rustc_hash::FxHashMap;

/// The maximum number of combinations that a run keeps.
const MAX_COMBINATIONS: usize = 1 << 16;

/// The maximum number of tools of one combination.
const MAX_TOOLS: usize = 64;

/// A combination of results, at most one of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OwnersId(u32);

/// A tool, and the first of its results that has the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// The tool's place among all tools that answered.
    pub(super) tool: u32,
    /// The result's place among all results.
    pub(super) result: u32,
}

/// All combinations of results.
#[derive(Debug, Default)]
pub(super) struct Owners {
    combinations: Vec<Combination>,
    /// The combination that a known one and a further result make.
    with: FxHashMap<(Option<OwnersId>, u32), OwnersId>,
}

/// A result, and the combination that it was added to.
#[derive(Debug)]
struct Combination {
    last: Owner,
    others: Option<OwnersId>,
}

impl Owners {
    /// The combination with this result added, unless its tool is there already. `None` if there
    /// are too many.
    pub(super) fn add(&mut self, to: Option<OwnersId>, owner: Owner) -> Option<OwnersId> {
        if let Some(known) = self.with.get(&(to, owner.result)) {
            return Some(*known);
        }
        let has_tool = self.newest_first(to).any(|known| known.tool == owner.tool);
        let with = match to {
            Some(to) if has_tool => to,
            _ => self.push(to, owner)?,
        };
        self.with.insert((to, owner.result), with);
        Some(with)
    }

    fn push(&mut self, others: Option<OwnersId>, last: Owner) -> Option<OwnersId> {
        let tools = self.newest_first(others).count() + 1;
        if self.combinations.len() >= MAX_COMBINATIONS || tools > MAX_TOOLS {
            return None;
        }
        let id = OwnersId(u32::try_from(self.combinations.len()).ok()?);
        self.combinations.push(Combination { last, others });
        Some(id)
    }

    /// The owners of a combination, in the order in which they answered.
    pub(super) fn list(&self, id: OwnersId) -> Vec<Owner> {
        let mut owners: Vec<Owner> = self.newest_first(Some(id)).collect();
        owners.reverse();
        owners
    }

    fn newest_first(&self, id: Option<OwnersId>) -> impl Iterator<Item = Owner> {
        let get = |id: OwnersId| self.combinations.get(id.0 as usize);
        let first = id.and_then(get);
        std::iter::successors(first, move |known| known.others.and_then(get))
            .map(|known| known.last)
    }
}

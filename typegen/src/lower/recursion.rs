//! Definitions that are only themselves, by way of references.

use super::Lowering;
use crate::degradation::Reason;
use crate::ir::Type;

impl Lowering<'_, '_> {
    /// Cuts each definition that is only itself, by way of other definitions.
    pub(super) fn break_empty_recursion(&mut self, first: usize) {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.definitions.len().saturating_sub(first)];
        let mut empty = Vec::new();
        for start in first..self.definitions.len() {
            let mut open = vec![(start, false)];
            while let Some((id, leaving)) = open.pop() {
                let Some(mark) = marks.get_mut(id.saturating_sub(first)) else {
                    continue;
                };
                if leaving {
                    *mark = Mark::Done;
                    continue;
                }
                match *mark {
                    Mark::Done => {}
                    Mark::Open => empty.push(id),
                    Mark::New => {
                        *mark = Mark::Open;
                        open.push((id, true));
                        if let Some(definition) = self.definitions.get(id) {
                            let aliases = definition.body.aliases();
                            open.extend(aliases.into_iter().rev().map(|id| (id, false)));
                        }
                    }
                }
            }
        }
        for id in empty {
            if let Some(definition) = self.definitions.get_mut(id) {
                definition.body = Type::Unknown;
            }
            self.degrade_definition(id, Reason::EmptyRecursion);
        }
    }
}

//! The degradations found while lowering, and the budget of parts.

use std::collections::HashSet;

use super::{Found, Lowering, MAX_QUOTED, Step};
use crate::degradation::Reason;
use crate::ir::{Literal, Property, Type, TypeId};
use crate::text::prefix;

/// Schemas and literals of one tool.
const MAX_PARTS: usize = 20_000;
/// Bytes of text that count as a part when they are copied.
const TEXT_OF_PART: usize = 64;
const MAX_DEGRADATIONS: usize = 50;

/// The report on a tool, shared by its input and its output.
#[derive(Default)]
pub(super) struct Report {
    pub(super) found: Vec<Found>,
    seen: HashSet<String>,
    parts: usize,
}

impl<'a> Lowering<'a, '_> {
    /// Counts one part; false once there are too many.
    pub(super) fn spend(&mut self) -> bool {
        self.spend_on(1)
    }

    /// Counts `parts` parts; false, with none counted, if they would exceed the limit. A copy of a
    /// lowered type costs its [`size`]: copies of copies would grow with the power of the nesting.
    pub(super) fn spend_on(&mut self, parts: usize) -> bool {
        if parts > MAX_PARTS.saturating_sub(self.report.parts) {
            self.degrade(Reason::TooLarge { limit: MAX_PARTS });
            return false;
        }
        self.report.parts += parts;
        true
    }

    /// Reports something at a place inside the present one.
    pub(super) fn degrade_at(&mut self, keys: &[&'a str], reason: Reason) {
        let outer = self.path.len();
        self.path.extend(keys.iter().map(|key| Step::Key(key)));
        self.degrade(reason);
        self.path.truncate(outer);
    }

    /// Reports something at a declared type.
    pub(super) fn degrade_definition(&mut self, id: TypeId, reason: Reason) {
        self.path.clear();
        self.base_pointer = self.pointers.get(&id).cloned().unwrap_or_default();
        self.degrade(reason);
    }

    /// Reports something at the present place.
    pub(super) fn degrade(&mut self, reason: Reason) {
        if self.report.found.len() > MAX_DEGRADATIONS {
            return;
        }
        // These hold for a tool, and the first place is as good as any.
        let once = matches!(reason, Reason::TooLarge { .. });
        let pointer = self.pointer();
        let key = if once {
            reason.to_string()
        } else {
            format!("{pointer} {reason}")
        };
        if !self.report.seen.insert(key) {
            return;
        }
        let reason = if self.report.found.len() == MAX_DEGRADATIONS {
            Reason::MoreNotListed
        } else {
            reason
        };
        self.report.found.push((pointer, reason));
    }

    /// The JSON pointer of the present place, cut when it is long.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = self.base_pointer.clone();
        for step in &self.path {
            if pointer.len() > MAX_QUOTED {
                pointer.push('…');
                break;
            }
            pointer.push('/');
            match step {
                Step::Key(key) => {
                    let key = prefix(key, MAX_QUOTED);
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
                Step::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }
}

/// The size of a lowered type: its types, itself included, and parts for its text.
pub(super) fn size(ty: &Type) -> usize {
    let text = |property: &Property| {
        let doc = property.doc.as_ref().map_or(0, |doc| doc.comment.len());
        (property.name.len() + doc) / TEXT_OF_PART
    };
    let mut size = 0;
    ty.visit(&mut |ty| {
        size += 1 + match ty {
            Type::Literal(Literal::String(text) | Literal::Number(text)) => {
                text.len() / TEXT_OF_PART
            }
            Type::Object(object) => object.properties.iter().map(text).sum(),
            _ => 0,
        };
    });
    size
}

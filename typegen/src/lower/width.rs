//! Bounds intersections of unions. TypeScript multiplies them out, and fails on every type that
//! mentions one when the product is too large.

use std::collections::HashMap;

use super::{Definition, Lowering};
use crate::degradation::Reason;
use crate::ir::{Additional, Type, TypeId};

/// Members an intersection may have when it is multiplied out.
const MAX_WIDTH: usize = 1_000;
/// The maximum length of a chain of declared types that stand for each other.
const MAX_CHAIN: usize = 32;

impl Lowering<'_, '_> {
    /// Drops members of intersections, widest first, where there would be too
    /// many. `first` is the first definition of this schema.
    pub(super) fn bound_widths(&mut self, first: TypeId) {
        let mut known = HashMap::new();
        for id in first..self.definitions.len() {
            let Some(definition) = self.definitions.get_mut(id) else {
                continue;
            };
            let mut body = std::mem::replace(&mut definition.body, Type::Unknown);
            let mut widths = Widths {
                definitions: self.definitions,
                known: &mut known,
            };
            let cut = widths.bound(&mut body);
            if let Some(definition) = self.definitions.get_mut(id) {
                definition.body = body;
            }
            if cut {
                self.degrade_definition(id, Reason::TooManyCombinations { limit: MAX_WIDTH });
            }
        }
    }
}

/// Counts the members of types when they are multiplied out.
struct Widths<'d> {
    definitions: &'d [Definition],
    known: &'d mut HashMap<TypeId, usize>,
}

impl Widths<'_> {
    /// True if anything was dropped.
    fn bound(&mut self, ty: &mut Type) -> bool {
        let mut cut = false;
        match ty {
            Type::Array(item) => cut |= self.bound(item),
            Type::Tuple(tuple) => {
                for ty in tuple.places.iter_mut().chain(tuple.rest.as_deref_mut()) {
                    cut |= self.bound(ty);
                }
            }
            Type::Object(object) => {
                for property in &mut object.properties {
                    cut |= self.bound(&mut property.ty);
                }
                if let Additional::Typed(ty) = &mut object.additional {
                    cut |= self.bound(ty);
                }
            }
            Type::Union(members) => {
                for member in members {
                    cut |= self.bound(member);
                }
            }
            Type::Intersection(members) => {
                for member in members.iter_mut() {
                    cut |= self.bound(member);
                }
                let widths = members.iter().map(|member| self.width(member, 0));
                let mut widths: Vec<usize> = widths.collect();
                while widths.iter().copied().fold(1, usize::saturating_mul) > MAX_WIDTH {
                    let widest = widths.iter().enumerate().max_by_key(|(_, width)| **width);
                    let Some((widest, _)) = widest else {
                        break;
                    };
                    widths.remove(widest);
                    members.remove(widest);
                    cut = true;
                }
                *ty = Type::intersection(std::mem::take(members));
            }
            _ => {}
        }
        cut
    }

    fn width(&mut self, ty: &Type, chain: usize) -> usize {
        match ty {
            Type::Union(members) => members
                .iter()
                .map(|member| self.width(member, chain))
                .fold(0, usize::saturating_add),
            Type::Intersection(members) => members
                .iter()
                .map(|member| self.width(member, chain))
                .fold(1, usize::saturating_mul),
            Type::Named(_) if chain >= MAX_CHAIN => MAX_WIDTH,
            Type::Named(id) => {
                if let Some(known) = self.known.get(id) {
                    return *known;
                }
                let definitions = self.definitions;
                let width = match definitions.get(*id) {
                    Some(definition) => self.width(&definition.body, chain + 1),
                    None => 1,
                };
                self.known.insert(*id, width);
                width
            }
            _ => 1,
        }
    }
}

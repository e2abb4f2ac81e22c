//! Detection of tools that can be called without arguments.

use std::collections::HashMap;

use crate::ir::{Additional, Type, TypeId};
use crate::lower::Definition;

/// The deepest nesting of unions, intersections and names that is searched.
const MAX_DEPTH: usize = 8;

/// True if an empty object is of the type, so that the call needs no argument.
pub(crate) fn may_be_empty(ty: &Type, definitions: &[Definition]) -> bool {
    let mut search = Search {
        definitions,
        known: HashMap::new(),
    };
    search.ty(ty, 0)
}

struct Search<'d> {
    definitions: &'d [Definition],
    /// The results for declared types, each with the depth of its search. Without them, unions that
    /// share members would be searched once per path.
    known: HashMap<TypeId, (bool, usize)>,
}

impl Search<'_> {
    fn ty(&mut self, ty: &Type, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        match ty {
            Type::Unknown => true,
            Type::Object(object) => {
                object.properties.iter().all(|property| property.optional)
                    && object.additional != Additional::Typed(Box::new(Type::Never))
            }
            Type::Named(id) => self.named(*id, depth),
            Type::Union(members) => members.iter().any(|member| self.ty(member, depth + 1)),
            Type::Intersection(members) => members.iter().all(|member| self.ty(member, depth + 1)),
            _ => false,
        }
    }

    fn named(&mut self, id: TypeId, depth: usize) -> bool {
        match self.known.get(&id) {
            Some((true, _)) => return true,
            // A shallower visit can search further before `MAX_DEPTH`.
            Some((false, before)) if *before <= depth => return false,
            _ => {}
        }
        let definitions = self.definitions;
        let empty = definitions
            .get(id)
            .is_some_and(|definition| self.ty(&definition.body, depth + 1));
        self.known.insert(id, (empty, depth));
        empty
    }
}

#[cfg(test)]
mod tests {
    use super::may_be_empty;
    use crate::ir::{Additional, Object, Property, Type};
    use crate::lower::Definition;

    fn definition(body: Type) -> Definition {
        Definition {
            body,
            ..Definition::default()
        }
    }

    fn object(optional: bool) -> Type {
        Type::Object(Object {
            properties: vec![Property::new("a", Type::String, optional)],
            additional: Additional::Unmentioned,
        })
    }

    #[test]
    fn possibly_empty_types_are_recognized() {
        let check = |ty: Type, bodies: Vec<Type>, expected: bool| {
            let definitions: Vec<Definition> = bodies.into_iter().map(definition).collect();
            assert_eq!(may_be_empty(&ty, &definitions), expected, "{ty:?}");
        };
        check(Type::Unknown, vec![], true);
        check(Type::String, vec![], false);
        check(object(true), vec![], true);
        check(object(false), vec![], false);
        let named = || vec![Type::Named(0), Type::Named(1)];
        check(
            Type::Union(named()),
            vec![object(false), object(true)],
            true,
        );
        check(
            Type::Intersection(named()),
            vec![object(false), object(true)],
            false,
        );
        // Too deep the first time, and near enough the second.
        let mut chain: Vec<Type> = (1..9).map(Type::Named).collect();
        chain.push(object(true));
        check(Type::Named(0), chain.clone(), false);
        check(
            Type::Union(vec![Type::Named(0), Type::Named(4)]),
            chain,
            true,
        );
    }
}

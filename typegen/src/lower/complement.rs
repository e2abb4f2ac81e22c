//! The complement of a schema, for `not`, `else` and `oneOf`.
//!
//! A complement can be too wide, never too narrow: it has every instance that the schema refuses,
//! and may have some that the schema accepts.

use serde_json::{Map, Value};

use super::keywords::{OF_ARRAYS, OF_OBJECTS};
use super::kinds::{Kinds, any_of};
use super::literal::kind;
use super::report::size;
use super::{Lowering, MAX_DEPTH};
use crate::ir::{Additional, Literal, Object, Property, Type};
use crate::reserved::OBJECT_MEMBERS;

/// The maximum number of values or names that are compared one by one.
const MAX_VALUES: usize = 64;
/// The maximum number of types beside whole kinds. With more, the result is not readable.
const MAX_PARTS: usize = 6;

/// Schemas that an instance is known to fit.
type Known<'a> = Vec<&'a Map<String, Value>>;

/// Refused values, by kind.
#[derive(Debug)]
struct Complement {
    whole: Kinds,
    /// Types for some values of other kinds.
    parts: Vec<(Kinds, Type)>,
}

impl<'a> Lowering<'a, '_> {
    /// The values of `kinds` that a schema refuses, given that the instance fits the schemas around
    /// the present place; [`Type::Unknown`] if that is all of `kinds`.
    pub(super) fn complement(&mut self, schema: &'a Value, kinds: Kinds) -> Type {
        let known = self.around.clone();
        let narrowing = std::mem::replace(&mut self.narrowing, false);
        let complement = self.refused(schema, kinds, &known);
        self.narrowing = narrowing;
        complement.into_type(kinds)
    }

    fn refused(&mut self, schema: &'a Value, kinds: Kinds, known: &Known<'a>) -> Complement {
        let map = match schema {
            Value::Bool(true) => return Complement::nothing(),
            Value::Object(map) if self.depth < MAX_DEPTH && self.spend() => map,
            _ => return Complement::all(kinds),
        };
        if map.contains_key("$ref") {
            return Complement::all(kinds);
        }
        self.depth += 1;
        let mut refused = Complement::nothing();
        for (keyword, value) in map {
            let by_keyword = self.refused_by(keyword, value, kinds, known);
            refused = refused.or(by_keyword, kinds);
        }
        self.depth -= 1;
        refused
    }

    /// The values that one keyword refuses; a schema refuses the values of any of its keywords.
    fn refused_by(
        &mut self,
        keyword: &'a str,
        value: &'a Value,
        kinds: Kinds,
        known: &Known<'a>,
    ) -> Complement {
        let of_kind = |kind: Kinds| Complement::all(kind.and(kinds));
        match (keyword, value) {
            ("type", value) => match Kinds::of_types(value) {
                Some(named) => Complement::all(kinds.without(named)),
                None => Complement::all(kinds),
            },
            ("const", value) => self.refused_values(std::slice::from_ref(value), kinds, known),
            ("enum", Value::Array(values)) => self.refused_values(values, kinds, known),
            ("required", Value::Array(names))
                if kinds.has(Kinds::OBJECT) && names.len() <= MAX_VALUES =>
            {
                refused_by_required(names, kinds, known)
            }
            ("properties", Value::Object(schemas)) if kinds.has(Kinds::OBJECT) => {
                self.refused_by_properties(schemas, known)
            }
            ("allOf", Value::Array(schemas)) => self.refused_by_any(schemas, kinds, known),
            ("anyOf", Value::Array(schemas)) => self.refused_by_all(schemas, kinds, known),
            ("not", schema) => match self.in_place(&["not"], None, schema, kinds) {
                Type::Unknown => Complement::all(kinds),
                Type::Never => Complement::nothing(),
                ty => Complement {
                    whole: Kinds::NONE,
                    parts: vec![(kinds, ty)],
                },
            },
            (
                "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding"
                | "contentMediaType" | "contentSchema",
                _,
            ) => of_kind(Kinds::STRING),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf", _) => {
                of_kind(Kinds::INTEGER.or(Kinds::FRACTION))
            }
            (keyword, _) if OF_OBJECTS.contains(&keyword) => of_kind(Kinds::OBJECT),
            (keyword, _) if OF_ARRAYS.contains(&keyword) => of_kind(Kinds::ARRAY),
            (
                "enum" | "allOf" | "anyOf" | "oneOf" | "if" | "$dynamicRef" | "$recursiveRef"
                | "extends" | "disallow",
                _,
            ) => Complement::all(kinds),
            // Notes, definitions, and keywords that JSON Schema does not have.
            _ => Complement::nothing(),
        }
    }

    fn refused_by_properties(
        &mut self,
        schemas: &'a Map<String, Value>,
        known: &Known<'a>,
    ) -> Complement {
        let mut parts = Vec::new();
        for (name, schema) in schemas {
            let known = known
                .iter()
                .filter_map(|map| map.get("properties")?.get(name)?.as_object())
                .collect();
            let kinds = known_kinds(&known);
            match self.refused(schema, kinds, &known).into_type(kinds) {
                Type::Never => {}
                ty => parts.push(with(name, ty)),
            }
        }
        Complement::objects(parts)
    }

    /// The values that at least one of the schemas refuses.
    fn refused_by_any(
        &mut self,
        schemas: &'a [Value],
        kinds: Kinds,
        known: &Known<'a>,
    ) -> Complement {
        let mut any = Complement::nothing();
        for schema in schemas {
            any = any.or(self.refused(schema, kinds, known), kinds);
        }
        any
    }

    /// The values that all of the schemas refuse.
    fn refused_by_all(
        &mut self,
        schemas: &'a [Value],
        kinds: Kinds,
        known: &Known<'a>,
    ) -> Complement {
        let mut all = Complement::all(kinds);
        for schema in schemas {
            let refused = self.refused(schema, kinds, known);
            let copies = all.copies(&refused).saturating_add(refused.copies(&all));
            all = if self.spend_on(copies) {
                all.and(refused, kinds)
            } else {
                Complement::all(kinds)
            };
        }
        all
    }

    /// All values except `values`: the other values of a known list, else the kinds that `values` does
    /// not exhaust.
    fn refused_values(
        &mut self,
        values: &'a [Value],
        kinds: Kinds,
        known: &Known<'a>,
    ) -> Complement {
        let listed = known.iter().find_map(|map| match map.get("const") {
            Some(value) => Some(std::slice::from_ref(value)),
            None => map.get("enum")?.as_array().map(Vec::as_slice),
        });
        if let Some(listed) = listed.filter(|listed| listed.len() <= MAX_VALUES) {
            let (mut covered, mut types) = (Kinds::NONE, Vec::new());
            for value in listed.iter().filter(|value| !values.contains(value)) {
                covered = covered.or(kind(value));
                types.push(self.value(value, 0));
            }
            let mut others = Complement::nothing();
            if covered != Kinds::NONE {
                others.parts.push((covered, Type::union(types)));
            }
            return others;
        }
        let mut whole = kinds;
        let mut parts = Vec::new();
        if values.contains(&Value::Null) {
            whole = whole.without(Kinds::NULL);
        }
        for boolean in [true, false] {
            if values.contains(&Value::Bool(boolean)) {
                whole = whole.without(Kinds::BOOLEAN);
                if kinds.has(Kinds::BOOLEAN) && !values.contains(&Value::Bool(!boolean)) {
                    parts.push((Kinds::BOOLEAN, Type::Literal(Literal::Boolean(!boolean))));
                }
            }
        }
        Complement { whole, parts }
    }
}

impl Complement {
    fn nothing() -> Self {
        Self::all(Kinds::NONE)
    }

    fn all(kinds: Kinds) -> Self {
        Self {
            whole: kinds,
            parts: Vec::new(),
        }
    }

    fn objects(types: Vec<Type>) -> Self {
        Self {
            whole: Kinds::NONE,
            parts: types.into_iter().map(|ty| (Kinds::OBJECT, ty)).collect(),
        }
    }

    fn or(self, other: Self, kinds: Kinds) -> Self {
        let whole = self.whole.or(other.whole);
        let parts = self.parts.into_iter().chain(other.parts).collect();
        Self { whole, parts }.bounded(kinds)
    }

    fn and(self, other: Self, kinds: Kinds) -> Self {
        if self.parts.len() * other.parts.len() > MAX_PARTS {
            return Self::all(self.any_kind().and(other.any_kind())).bounded(kinds);
        }
        let mut parts = Vec::new();
        for (kind, ty) in &self.parts {
            if kind.has(other.whole) {
                parts.push((*kind, ty.clone()));
            }
            for (other_kind, other) in &other.parts {
                if kind.has(*other_kind) {
                    let both = Type::intersection([ty.clone(), other.clone()]);
                    parts.push((kind.and(*other_kind), both));
                }
            }
        }
        for (kind, ty) in other.parts {
            if kind.has(self.whole) {
                parts.push((kind, ty));
            }
        }
        let whole = self.whole.and(other.whole);
        Self { whole, parts }.bounded(kinds)
    }

    /// The cost of copying each type here for every part of `other` of a common kind, except the
    /// first copy.
    fn copies(&self, other: &Self) -> usize {
        let copies = |(kind, ty): &(Kinds, Type)| {
            let parts = other.parts.iter().filter(|(other, _)| kind.has(*other));
            let uses = parts.count() + usize::from(kind.has(other.whole));
            uses.saturating_sub(1).saturating_mul(size(ty))
        };
        self.parts.iter().map(copies).fold(0, usize::saturating_add)
    }

    /// The complement as a type: [`Type::Unknown`] if it is all of `kinds`.
    fn into_type(self, kinds: Kinds) -> Type {
        if self.whole == kinds {
            return Type::Unknown;
        }
        let mut members: Vec<Type> = self.parts.into_iter().map(|(_, ty)| ty).collect();
        members.push(any_of(self.whole));
        Type::union(members)
    }

    fn any_kind(&self) -> Kinds {
        let parts = self.parts.iter().map(|(kind, _)| *kind);
        parts.fold(self.whole, Kinds::or)
    }

    /// Drops parts of whole kinds; with too many parts left, widens to all of `kinds`.
    fn bounded(mut self, kinds: Kinds) -> Self {
        self.parts
            .retain(|(kind, _)| kind.without(self.whole) != Kinds::NONE);
        if self.parts.len() > MAX_PARTS {
            return Self::all(kinds);
        }
        self
    }
}

/// The objects without one of the required properties.
fn refused_by_required(names: &[Value], kinds: Kinds, known: &Known<'_>) -> Complement {
    let names = names.iter().filter_map(Value::as_str);
    let names: Vec<&str> = names.filter(|name| !is_required(name, known)).collect();
    if names.iter().any(|name| OBJECT_MEMBERS.contains(name)) {
        return Complement::all(Kinds::OBJECT.and(kinds));
    }
    Complement::objects(names.into_iter().map(without).collect())
}

fn is_required(name: &str, known: &Known<'_>) -> bool {
    known.iter().any(|map| {
        let required = map.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    })
}

/// The kinds that all of the schemas allow.
fn known_kinds(known: &Known<'_>) -> Kinds {
    let types = known.iter().filter_map(|map| map.get("type"));
    types
        .filter_map(Kinds::of_types)
        .fold(Kinds::ALL, Kinds::and)
}

/// Objects without a property.
pub(super) fn without(name: &str) -> Type {
    one_property(name, Type::Never, true)
}

/// Objects with a property.
pub(super) fn with(name: &str, ty: Type) -> Type {
    one_property(name, ty, false)
}

fn one_property(name: &str, ty: Type, optional: bool) -> Type {
    Type::Object(Object {
        properties: vec![Property::new(name, ty, optional)],
        additional: Additional::Unmentioned,
    })
}

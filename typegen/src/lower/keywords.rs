//! A schema's keywords, all together.

use serde_json::{Map, Value};

use super::kinds::{Kinds, any_of, type_names};
use super::scope::Dialect;
use super::values::SAFE_INTEGER;
use super::{Lowering, MAX_QUOTED, Side};
use crate::degradation::Reason;
use crate::ir::Type;
use crate::text::prefix;

/// Keywords that say something of objects only.
pub(super) const OF_OBJECTS: [&str; 11] = [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
];
/// Keywords that say something of arrays only.
pub(super) const OF_ARRAYS: [&str; 10] = [
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "unevaluatedItems",
];

/// Formats of integers that a double holds.
const SMALL: [&str; 6] = ["int8", "uint8", "int16", "uint16", "int32", "uint32"];

impl<'a> Lowering<'a, '_> {
    /// The type of a schema that is an object.
    pub(super) fn keywords(&mut self, map: &'a Map<String, Value>, assume: Kinds) -> Type {
        if let Some(kinds) = simple_kinds(map) {
            return self.with_big(map, any_of(kinds.and(assume)));
        }
        let mut parts = Vec::new();
        if let Some(reference) = map.get("$ref") {
            let target = self.reference("$ref", reference);
            if self.dialect != Dialect::Modern {
                return or_null(map, target);
            }
            parts.push(target);
        }
        if let Some(reference) = map.get("$dynamicRef").filter(|_| self.is_modern()) {
            parts.push(self.reference("$dynamicRef", reference));
        }
        self.report_inexpressible(map);

        let declared = self.declared_kinds(map);
        let kinds = match declared {
            Some(kinds) => kinds.and(assume),
            None if assume == Kinds::ALL => self.meant_kinds(map),
            None => assume,
        };
        for (index, schema) in self.schemas(map, "allOf").iter().enumerate() {
            parts.push(self.in_place(&["allOf"], Some(index), schema, kinds));
        }
        let any = self.schemas(map, "anyOf");
        if !any.is_empty() {
            let members = any.iter().enumerate();
            let members: Vec<Type> = members
                .map(|(index, schema)| self.in_place(&["anyOf"], Some(index), schema, kinds))
                .collect();
            parts.push(Type::union(members));
        }
        parts.extend(self.one_of(map, kinds));

        let base = if let Some(values) = self.enumerated(map, kinds) {
            values
        } else if declared.is_none() && !speaks_of(map, kinds) {
            self.report_missing_type(map, kinds);
            Type::Unknown
        } else {
            self.structure(map, kinds)
        };
        // The other constraints on an object list its keys, so that the index signature for all
        // keys would only hide mistakes.
        let conditions = self.conditions(map, kinds);
        let closed = map.get("unevaluatedProperties") == Some(&Value::Bool(false));
        let listing = parts.iter().chain(conditions.iter().filter(|_| closed));
        let says_more = listing.into_iter().any(|part| *part != Type::Unknown);
        if !(says_more && base == Type::open_object() && !map.contains_key("additionalProperties"))
        {
            parts.insert(0, base);
        }
        parts.extend(conditions);
        or_null(map, Type::intersection(parts))
    }

    pub(super) fn is_modern(&self) -> bool {
        self.dialect == Dialect::Modern
    }

    /// The values of the given kinds, as far as the keywords for each restrict them.
    pub(super) fn structure(&mut self, map: &'a Map<String, Value>, kinds: Kinds) -> Type {
        if kinds == Kinds::ALL {
            // Reached only when `type` lists all of them.
            return Type::Unknown;
        }
        let shaped = Kinds::OBJECT.or(Kinds::ARRAY);
        let object = kinds.has(Kinds::OBJECT).then(|| self.object(map));
        let array = kinds.has(Kinds::ARRAY).then(|| self.array(map));
        let null = kinds.and(Kinds::NULL);
        let scalars = any_of(kinds.without(shaped.or(null)));
        let members = [
            Some(self.with_big(map, scalars)),
            object,
            array,
            Some(any_of(null)),
        ];
        Type::union(members.into_iter().flatten())
    }

    /// A type without objects and arrays, with integers beyond the range of doubles if the schema
    /// allows them: for arguments, unless there is a smaller bound; for results, by bounds or
    /// format. Other results are `number`, since few are ever beyond.
    fn with_big(&self, map: &Map<String, Value>, ty: Type) -> Type {
        let bound = |keywords: [&str; 2]| {
            let bounds = keywords
                .iter()
                .filter_map(|keyword| map.get(*keyword)?.as_f64());
            bounds.map(|bound| bound.abs() <= SAFE_INTEGER + 1.0).next()
        };
        let min = bound(["minimum", "exclusiveMinimum"]);
        let max = bound(["maximum", "exclusiveMaximum"]);
        let format = map
            .get("format")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_big = match self.side {
            Side::Input => max != Some(true) && !SMALL.contains(&format),
            Side::Output => {
                let is_long = ["int64", "uint64"].contains(&format) && max != Some(true);
                is_long || min == Some(false) || max == Some(false)
            }
        };
        let members = match ty {
            Type::Union(members) => members,
            one => vec![one],
        };
        let big = |member| {
            let is_integer = member == Type::Integer;
            [Some(member), (is_big && is_integer).then_some(Type::BigInt)]
        };
        Type::union(members.into_iter().flat_map(big).flatten())
    }

    /// The kinds `type` names, or none where it is missing or unusable.
    fn declared_kinds(&mut self, map: &Map<String, Value>) -> Option<Kinds> {
        let value = map.get("type")?;
        let kinds = Kinds::of_types(value).filter(|kinds| *kinds != Kinds::NONE);
        if kinds.is_none() {
            let mut names = type_names(value).iter();
            let unknown = names.find(|name| name.as_str().and_then(Kinds::of_type).is_none());
            self.degrade(match unknown.and_then(Value::as_str) {
                Some(name) => Reason::UnknownType {
                    name: prefix(name, MAX_QUOTED).to_owned(),
                },
                None => Reason::Malformed { keyword: "type" },
            });
        }
        kinds
    }

    /// The permitted narrowing: the kinds that keywords for objects mean where there is no `type`.
    fn meant_kinds(&self, map: &Map<String, Value>) -> Kinds {
        let any = |keywords: &[&str]| keywords.iter().any(|keyword| map.contains_key(*keyword));
        if !self.narrowing || any(&["enum", "const"]) || !any(&OF_OBJECTS) {
            Kinds::ALL
        } else if any(&OF_ARRAYS) {
            Kinds::OBJECT.or(Kinds::ARRAY)
        } else {
            Kinds::OBJECT
        }
    }

    /// The list of schemas under a keyword, or an empty list.
    pub(super) fn schemas(
        &mut self,
        map: &'a Map<String, Value>,
        keyword: &'static str,
    ) -> &'a [Value] {
        match map.get(keyword) {
            None => &[],
            Some(Value::Array(schemas)) if !schemas.is_empty() => schemas,
            Some(_) => {
                self.degrade(Reason::Malformed { keyword });
                &[]
            }
        }
    }

    /// Reports keywords that restrict the shape of an instance and are never lowered. Those that
    /// only bound a number, a string's text or a count are not a part of a type in any case.
    fn report_inexpressible(&mut self, map: &Map<String, Value>) {
        for keyword in ["$recursiveRef", "extends", "disallow"] {
            if map.contains_key(keyword) {
                self.degrade(Reason::Inexpressible { keyword });
            }
        }
    }

    /// Reports keywords that do nothing because no `type` goes with them.
    fn report_missing_type(&mut self, map: &Map<String, Value>, kinds: Kinds) {
        if kinds != Kinds::ALL {
            return;
        }
        let silent = ["items", "prefixItems"];
        if let Some(keyword) = silent.into_iter().find(|key| map.contains_key(*key)) {
            self.degrade(Reason::MissingType { keyword });
        }
    }
}

/// A type with `null`, if OpenAPI's `nullable` says so.
fn or_null(map: &Map<String, Value>, ty: Type) -> Type {
    if map.get("nullable") == Some(&Value::Bool(true)) {
        Type::union([ty, Type::Null])
    } else {
        ty
    }
}

/// The kind of a schema that only names one without parts: most of all schemas,
/// and quicker seen at once than by a look at each keyword there could be.
fn simple_kinds(map: &Map<String, Value>) -> Option<Kinds> {
    const SAYING_NO_MORE: [&str; 8] = [
        "description",
        "title",
        "default",
        "format",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
    ];
    let mut kinds = None;
    for (keyword, value) in map {
        if keyword == "type" {
            kinds = match value.as_str()? {
                simple @ ("string" | "number" | "integer" | "boolean" | "null") => {
                    Kinds::of_type(simple)
                }
                _ => return None,
            };
        } else if !SAYING_NO_MORE.contains(&keyword.as_str()) {
            return None;
        }
    }
    kinds
}

/// True if the schema has keywords for the kinds the instance is known to be
/// of, when no `type` says which.
fn speaks_of(map: &Map<String, Value>, kinds: Kinds) -> bool {
    let any = |keywords: &[&str]| keywords.iter().any(|keyword| map.contains_key(*keyword));
    kinds != Kinds::ALL
        && ((kinds.has(Kinds::OBJECT) && any(&OF_OBJECTS))
            || (kinds.has(Kinds::ARRAY) && any(&OF_ARRAYS)))
}

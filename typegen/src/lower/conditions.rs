//! Conditional keywords, which constrain an instance depending on whether it fits a schema:
//! `oneOf`, `not`, `if`, `dependentRequired` and the like.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Lowering;
use super::complement::{with, without};
use super::kinds::{Kinds, any_of};
use super::scope::Dialect;
use crate::degradation::Reason;
use crate::ir::{Additional, Object, Property, Type};
use crate::reserved::OBJECT_MEMBERS;

/// The maximum number of conditions on one instance. Each doubles TypeScript's work.
const MAX_CONDITIONS: usize = 8;
/// The maximum number of branches of a `oneOf` that exclude the properties of other branches.
const MAX_EXCLUSIVE: usize = 8;

impl<'a> Lowering<'a, '_> {
    /// The constraints of a schema's conditional keywords, each as a type.
    pub(super) fn conditions(&mut self, map: &'a Map<String, Value>, kinds: Kinds) -> Vec<Type> {
        let mut parts = Vec::new();
        if let Some(schema) = map.get("not") {
            let ty = self.negation(schema, kinds);
            if ty == Type::Unknown {
                self.degrade(Reason::Inexpressible { keyword: "not" });
            }
            parts.push(ty);
        }
        if let Some(condition) = map.get("if")
            && self.dialect != Dialect::Old
        {
            let ty = self.choice(condition, map, kinds);
            if ty == Type::Unknown && (map.contains_key("then") || map.contains_key("else")) {
                self.degrade(Reason::Inexpressible { keyword: "if" });
            }
            parts.push(ty);
        }
        let keywords: &[&'static str] = if self.is_modern() {
            &["dependentRequired", "dependentSchemas"]
        } else {
            &["dependencies"]
        };
        for keyword in keywords {
            match map.get(*keyword) {
                Some(Value::Object(dependent))
                    if kinds.has(Kinds::OBJECT) && kinds != Kinds::ALL =>
                {
                    let required = names_under(map, "required");
                    for (name, consequence) in dependent {
                        let place = (*keyword, name.as_str());
                        parts.push(self.dependency(&required, place, consequence, kinds));
                    }
                }
                Some(Value::Object(_)) | None => {}
                Some(_) => self.degrade(Reason::Malformed { keyword }),
            }
        }
        self.report_left_over(map);
        parts
    }

    fn negation(&mut self, schema: &'a Value, kinds: Kinds) -> Type {
        if !self.one_more_condition() {
            return Type::Unknown;
        }
        self.complement(schema, kinds)
    }

    /// `if` with `then` and `else`: an instance fits `if` and `then`, or `else` and not `if`.
    fn choice(&mut self, condition: &'a Value, map: &'a Map<String, Value>, kinds: Kinds) -> Type {
        if !self.one_more_condition() {
            return Type::Unknown;
        }
        let mut branch = |keyword: &'static str| match map.get(keyword) {
            None => Type::Unknown,
            Some(schema) => self.in_place(&[keyword], None, schema, kinds),
        };
        let (then, otherwise) = (branch("then"), branch("else"));
        match condition {
            Value::Bool(true) => return then,
            Value::Bool(false) => return otherwise,
            _ => {}
        }
        let narrowing = std::mem::replace(&mut self.narrowing, false);
        // A declared type takes keywords for objects to mean an object, which a condition does not.
        let fits = if kinds != Kinds::OBJECT && has_reference(condition, 0) {
            Type::Unknown
        } else {
            self.in_place(&["if"], None, condition, kinds)
        };
        self.narrowing = narrowing;
        let fails = self.complement(condition, kinds);
        Type::union([
            Type::intersection([fits, then]),
            Type::intersection([fails, otherwise]),
        ])
    }

    /// One property under `dependentRequired` and the like: an object without the property, or an
    /// object that meets the property's consequence.
    fn dependency(
        &mut self,
        required: &HashSet<&str>,
        (keyword, name): (&'static str, &'a str),
        consequence: &'a Value,
        kinds: Kinds,
    ) -> Type {
        let mut then = match consequence {
            Value::Bool(true) => return Type::Unknown,
            Value::Array(names) => {
                let names = names.iter().filter_map(Value::as_str);
                let mut names: Vec<&str> = names.filter(|name| !required.contains(name)).collect();
                names.dedup();
                if names.is_empty() {
                    return Type::Unknown;
                }
                requiring(&names)
            }
            schema => self.in_place(&[keyword, name], None, schema, Kinds::OBJECT),
        };
        if then == Type::Unknown {
            return then;
        }
        if !required.contains(name) {
            if OBJECT_MEMBERS.contains(&name) {
                self.degrade_at(&[keyword, name], Reason::InheritedName);
                return Type::Unknown;
            }
            if !self.one_more_condition() {
                self.degrade_at(&[keyword], Reason::Inexpressible { keyword });
                return Type::Unknown;
            }
            let present = Type::intersection([with(name, Type::Unknown), then]);
            then = Type::union([without(name), present]);
        }
        Type::union([then, any_of(kinds.without(Kinds::OBJECT))])
    }

    /// `oneOf`: the union of the branches. A branch excludes the properties that other branches only
    /// require.
    pub(super) fn one_of(&mut self, map: &'a Map<String, Value>, kinds: Kinds) -> Option<Type> {
        let schemas = self.schemas(map, "oneOf");
        if schemas.is_empty() {
            return None;
        }
        // An instance of one of two equal branches is an instance of both.
        let is_single = |schema: &Value| {
            schemas.len() > MAX_EXCLUSIVE
                || schemas.iter().filter(|other| *other == schema).count() == 1
        };
        let accepts_all = |schema: &Value| match schema {
            Value::Object(map) => map.is_empty(),
            schema => *schema == Value::Bool(true),
        };
        let all = schemas.iter().position(accepts_all);
        if let Some(all) = all {
            let others = schemas
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != all);
            let refused: Vec<Type> = others
                .take(MAX_EXCLUSIVE)
                .map(|(_, schema)| self.complement(schema, kinds))
                .collect();
            return Some(Type::intersection(refused));
        }
        let few = schemas.len() <= MAX_EXCLUSIVE && kinds == Kinds::OBJECT;
        let marks: Vec<HashSet<&str>> = if few {
            schemas.iter().map(only_requirement).collect()
        } else {
            Vec::new()
        };
        let mut members = Vec::with_capacity(schemas.len());
        for (index, schema) in schemas.iter().enumerate() {
            if !is_single(schema) {
                continue;
            }
            let mut parts = vec![self.in_place(&["oneOf"], Some(index), schema, kinds)];
            if few {
                let own = schema.as_object().map(|map| names_under(map, "required"));
                let own = own.unwrap_or_default();
                for (other, marks) in marks.iter().enumerate() {
                    let mut missing = marks.difference(&own);
                    let only = missing.next().filter(|_| missing.next().is_none());
                    if let Some(name) = only.filter(|_| other != index)
                        && !OBJECT_MEMBERS.contains(name)
                    {
                        parts.push(without(name));
                    }
                }
            }
            members.push(Type::intersection(parts));
        }
        Some(Type::union(members))
    }

    /// True if there is room for one more condition on the present instance.
    fn one_more_condition(&mut self) -> bool {
        self.conditions += 1;
        self.conditions <= MAX_CONDITIONS
    }

    /// Reports `unevaluatedProperties` and `unevaluatedItems` where they are ignored.
    fn report_left_over(&mut self, map: &Map<String, Value>) {
        if !self.is_modern() {
            return;
        }
        for (keyword, before) in [
            ("unevaluatedProperties", "additionalProperties"),
            ("unevaluatedItems", "items"),
        ] {
            let Some(value) = map.get(keyword) else {
                continue;
            };
            // TypeScript refuses keys that no schema lists in any case.
            let closed = keyword == "unevaluatedProperties" && value.is_boolean();
            let looked_into = !has_applicators(map) || map.contains_key(before);
            if !looked_into && !closed {
                self.degrade(Reason::Inexpressible { keyword });
            }
        }
    }
}

/// True if other schemas also constrain the same instance, so that
/// `unevaluatedProperties` and `unevaluatedItems` depend on them.
pub(super) fn has_applicators(map: &Map<String, Value>) -> bool {
    let applies = |keyword: &String| {
        matches!(
            keyword.as_str(),
            "$ref"
                | "$dynamicRef"
                | "$recursiveRef"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "if"
                | "not"
                | "dependentSchemas"
        )
    };
    map.keys().any(applies)
}

/// The properties that a schema requires, if that is all it does.
fn only_requirement(schema: &Value) -> HashSet<&str> {
    let Some(map) = schema.as_object() else {
        return HashSet::new();
    };
    let says_nothing = |keyword: &str| {
        matches!(keyword, "required" | "title" | "description" | "$comment")
            || keyword == "type" && map.get("type").is_some_and(|ty| ty == "object")
    };
    if !map.keys().all(|keyword| says_nothing(keyword)) {
        return HashSet::new();
    }
    names_under(map, "required")
}

fn names_under<'m>(map: &'m Map<String, Value>, keyword: &str) -> HashSet<&'m str> {
    let names = map.get(keyword).and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn requiring(names: &[&str]) -> Type {
    let property = |name: &&str| Property::new(*name, Type::Unknown, false);
    Type::Object(Object {
        properties: names.iter().map(property).collect(),
        additional: Additional::Unmentioned,
    })
}

/// True if a schema has a reference, or is too deep to search.
fn has_reference(schema: &Value, depth: usize) -> bool {
    depth > 16
        || match schema {
            Value::Object(map) => {
                map.contains_key("$ref")
                    || map.contains_key("$dynamicRef")
                    || map.values().any(|value| has_reference(value, depth + 1))
            }
            Value::Array(items) => items.iter().any(|item| has_reference(item, depth + 1)),
            _ => false,
        }
}

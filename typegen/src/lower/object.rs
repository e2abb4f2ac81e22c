//! Objects: named properties, and what may stand beside them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Lowering;
use super::conditions::has_applicators;
use super::kinds::Kinds;
use crate::degradation::Reason;
use crate::ir::{Additional, Object, Property, Type};
use crate::reserved::OBJECT_MEMBERS;

/// Names that `propertyNames` lists.
const MAX_NAMES: usize = 64;

impl<'a> Lowering<'a, '_> {
    /// The objects a schema accepts.
    pub(super) fn object(&mut self, map: &'a Map<String, Value>) -> Type {
        let required = self.required(map);
        let mut properties = self.named_properties(map, &required);
        let mut additional = self.additional(map);
        if map.get("maxProperties").and_then(count) == Some(0) {
            if !required.is_empty() {
                return Type::Never;
            }
            properties.clear();
            additional = Additional::Closed;
        }
        self.names(map, &mut properties, &mut additional);

        let known: HashSet<&str> = properties.iter().map(|p| p.name.as_str()).collect();
        let others: Vec<&str> = required
            .iter()
            .copied()
            .filter(|name| !known.contains(name))
            .collect();
        for name in others {
            let ty = match &additional {
                Additional::Unmentioned => Type::Unknown,
                Additional::Closed => Type::Never,
                Additional::Typed(ty) => (**ty).clone(),
            };
            if !self.spend() {
                break;
            }
            properties.push(Property {
                name: name.to_owned(),
                ty,
                optional: false,
                doc: None,
            });
        }

        // An object of which nothing is said is one that may hold anything.
        if properties.is_empty() && additional == Additional::Unmentioned {
            additional = Additional::Typed(Box::new(Type::Unknown));
        }
        Type::Object(Object {
            properties,
            additional,
        })
    }

    /// Applies `propertyNames` where it lists the names.
    fn names(
        &mut self,
        map: &'a Map<String, Value>,
        properties: &mut Vec<Property>,
        additional: &mut Additional,
    ) {
        let listed = match map.get("propertyNames") {
            Some(Value::Bool(false)) => &[],
            Some(Value::Object(names)) => match (names.get("const"), names.get("enum")) {
                (Some(name), _) => std::slice::from_ref(name),
                (None, Some(Value::Array(names))) => names.as_slice(),
                _ => return,
            },
            _ => return,
        };
        let listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
        if listed.len() > MAX_NAMES {
            return;
        }
        properties.retain(|property| !property.optional || listed.contains(&&*property.name));
        let others = match std::mem::replace(additional, Additional::Closed) {
            Additional::Unmentioned => Type::Unknown,
            Additional::Closed => return,
            Additional::Typed(ty) => *ty,
        };
        for name in listed {
            if properties.iter().any(|property| property.name == name) || !self.spend() {
                continue;
            }
            let inherited = OBJECT_MEMBERS.contains(&name);
            properties.push(Property {
                name: name.to_owned(),
                ty: if inherited {
                    Type::Unknown
                } else {
                    others.clone()
                },
                optional: true,
                doc: None,
            });
        }
    }

    fn named_properties(
        &mut self,
        map: &'a Map<String, Value>,
        required: &[&'a str],
    ) -> Vec<Property> {
        let schemas = match map.get("properties") {
            None => return Vec::new(),
            Some(Value::Object(schemas)) => schemas,
            Some(_) => {
                self.degrade(Reason::Malformed {
                    keyword: "properties",
                });
                return Vec::new();
            }
        };
        let required: HashSet<&str> = required.iter().copied().collect();
        let mut properties = Vec::with_capacity(schemas.len());
        for (name, schema) in schemas {
            let optional = !required.contains(name.as_str());
            let mut ty = self.at(&["properties", name], None, schema, Kinds::ALL);
            if optional && ty != Type::Unknown && OBJECT_MEMBERS.contains(&name.as_str()) {
                self.degrade_at(&["properties", name], Reason::InheritedName);
                ty = Type::Unknown;
            }
            // A type declared in this place carries the description itself.
            let declared_here = self.is_declared(schema);
            let doc = if declared_here || !self.narrowing {
                None
            } else {
                self.comment(&["properties", name], Some(name), schema)
            };
            properties.push(Property {
                name: name.clone(),
                ty,
                optional,
                doc,
            });
        }
        properties
    }

    /// The names under `required`, each once.
    fn required(&mut self, map: &'a Map<String, Value>) -> Vec<&'a str> {
        match map.get("required") {
            // A boolean is draft 3's way to say it of the property itself.
            None | Some(Value::Bool(_)) => Vec::new(),
            Some(Value::Array(names)) => {
                let mut seen = HashSet::new();
                let names = names.iter().filter_map(Value::as_str);
                names.filter(|name| seen.insert(*name)).collect()
            }
            Some(_) => {
                self.degrade(Reason::Malformed {
                    keyword: "required",
                });
                Vec::new()
            }
        }
    }

    /// What may stand beside the named properties: a value under a pattern is of
    /// that pattern's type, and any other of the additional properties'.
    fn additional(&mut self, map: &'a Map<String, Value>) -> Additional {
        let patterns = match map.get("patternProperties") {
            Some(Value::Object(patterns)) if !patterns.is_empty() => Some(patterns),
            _ => None,
        };
        // What is left over is what other schemas of the same instance do not
        // speak of; where there is none, that is what is additional.
        let keyword = match map.get("additionalProperties") {
            None if self.is_modern() && !has_applicators(map) => "unevaluatedProperties",
            _ => "additionalProperties",
        };
        let others = map
            .get(keyword)
            .map(|schema| self.at(&[keyword], None, schema, Kinds::ALL));
        let Some(patterns) = patterns else {
            return match others {
                None => Additional::Unmentioned,
                Some(Type::Never) => Additional::Closed,
                Some(ty) => Additional::Typed(Box::new(ty)),
            };
        };
        let mut members = vec![others.unwrap_or(Type::Unknown)];
        for (pattern, schema) in patterns {
            members.push(self.at(&["patternProperties", pattern], None, schema, Kinds::ALL));
        }
        match Type::union(members) {
            Type::Never => Additional::Closed,
            ty => Additional::Typed(Box::new(ty)),
        }
    }
}

/// The count that a keyword gives.
pub(super) fn count(value: &Value) -> Option<u64> {
    // Drafts from 6 on take `2.0` for an integer.
    let whole = || {
        value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && (0.0..1e15).contains(number))
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number in range"
    )]
    value
        .as_u64()
        .or_else(|| whole().map(|number| number as u64))
}

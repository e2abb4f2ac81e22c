//! Objects: named properties and additional ones.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Lowering;
use super::conditions::has_applicators;
use super::kinds::Kinds;
use super::report::size;
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
        let ty = match &additional {
            Additional::Closed => &Type::Never,
            Additional::Typed(ty) if self.spend_on(size(ty).saturating_mul(others.len())) => ty,
            Additional::Typed(_) | Additional::Unmentioned => &Type::Unknown,
        };
        for name in others {
            if !self.spend() {
                break;
            }
            properties.push(Property::new(name, ty.clone(), false));
        }

        // An object without any keyword may hold anything.
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
            Additional::Closed => return,
            Additional::Typed(ty) if self.spend_on(size(&ty).saturating_mul(listed.len())) => *ty,
            Additional::Typed(_) | Additional::Unmentioned => Type::Unknown,
        };
        for name in listed {
            if properties.iter().any(|property| property.name == name) {
                continue;
            }
            if !self.spend() {
                // The remaining names may be present all the same.
                *additional = Additional::Unmentioned;
                break;
            }
            let ty = if OBJECT_MEMBERS.contains(&name) {
                Type::Unknown
            } else {
                others.clone()
            };
            properties.push(Property::new(name, ty, true));
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

    /// The properties besides the named ones: a value under a pattern has the pattern's type, and
    /// any other value the type of additional properties.
    fn additional(&mut self, map: &'a Map<String, Value>) -> Additional {
        let patterns = match map.get("patternProperties") {
            Some(Value::Object(patterns)) if !patterns.is_empty() => Some(patterns),
            _ => None,
        };
        // `unevaluatedProperties` is about keys that no other schema of the instance mentions;
        // without other schemas, it means `additionalProperties`.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::size;
    use crate::lower::lower_tool;

    /// The size of a lowered schema, and the reasons of its degradations.
    fn lowered(schema: &Value) -> (usize, Vec<String>) {
        let mut definitions = Vec::new();
        let tool = lower_tool(0, schema, None, &mut definitions);
        let bodies = definitions.iter().map(|definition| &definition.body);
        let reasons = tool.degradations.iter();
        (
            bodies.map(size).sum(),
            reasons.map(|(_, reason)| reason.to_string()).collect(),
        )
    }

    fn nested(levels: usize, around: impl Fn(Value) -> Value) -> Value {
        (0..levels).fold(json!({ "type": "string" }), |inner, _| around(inner))
    }

    #[track_caller]
    fn check_bounded(around: impl Fn(Value) -> Value) {
        let (size, reasons) = lowered(&nested(6, around));
        assert!((64 * 65..=20_000).contains(&size), "{size}");
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(
            reasons.iter().all(|reason| reason.contains("20000")),
            "{reasons:?}"
        );
    }

    #[test]
    fn shared_type_counts_for_each_copy() {
        let names: Vec<String> = (0..64).map(|n| format!("n{n}")).collect();
        let listed = |inner: Value| {
            json!({
                "type": "object",
                "propertyNames": { "enum": names },
                "additionalProperties": inner,
            })
        };
        assert_eq!(lowered(&nested(1, listed)), (65, Vec::new()));
        assert_eq!(lowered(&nested(2, listed)), (64 * 65 + 1, Vec::new()));
        check_bounded(listed);
        check_bounded(
            |inner| json!({ "type": "object", "required": names, "additionalProperties": inner }),
        );
    }

    #[test]
    fn complement_type_counts_for_each_copy() {
        let others: Vec<Value> = (0..5)
            .map(|n| json!({ "properties": { format!("p{n}"): { "type": "string" } } }))
            .collect();
        let around = |inner: Value| json!({ "anyOf": [{ "properties": { "a": inner } }, { "allOf": others }] });
        let (size, reasons) = lowered(&json!({ "type": "object", "not": nested(2, around) }));
        assert!(size > 50, "{size}");
        assert_eq!(reasons, Vec::<String>::new());
        let (size, reasons) = lowered(&json!({ "type": "object", "not": nested(12, around) }));
        assert!(size <= 40_000, "{size}");
        assert!(!reasons.is_empty());
    }
}

//! `enum` and `const`: values that are types.

use serde_json::{Map, Number, Value};

use super::kinds::Kinds;
use super::values::SAFE_INTEGER;
use super::{Lowering, MAX_DEPTH};
use crate::degradation::Reason;
use crate::ir::{Additional, Literal, Object, Property, Tuple, Type};

/// Values of one enumeration; of longer ones a comment has the first.
pub(super) const MAX_VALUES: usize = 64;
/// Bytes of a string that is a type of its own; longer ones are strings.
const MAX_STRING: usize = 500;

impl<'a> Lowering<'a, '_> {
    /// The values that `enum` and `const` allow, without values of kinds outside `kinds`; `None` if
    /// neither keyword is present and usable.
    pub(super) fn enumerated(&mut self, map: &'a Map<String, Value>, kinds: Kinds) -> Option<Type> {
        let mut parts = Vec::new();
        match map.get("enum") {
            None => {}
            Some(Value::Array(values)) => {
                parts.push(self.values(values, kinds));
            }
            Some(_) => self.degrade(Reason::Malformed { keyword: "enum" }),
        }
        if let Some(value) = map.get("const") {
            parts.push(self.values(std::slice::from_ref(value), kinds));
        }
        (!parts.is_empty()).then(|| Type::intersection(parts))
    }

    fn values(&mut self, values: &[Value], kinds: Kinds) -> Type {
        let values: Vec<&Value> = values
            .iter()
            .filter(|value| kind(value).has(kinds))
            .collect();
        if values.len() > MAX_VALUES {
            self.degrade(Reason::TooMany {
                keyword: "enum",
                limit: MAX_VALUES,
            });
            return Type::union(values.into_iter().map(any_of_kind));
        }
        Type::union(values.into_iter().map(|value| self.value(value, 0)))
    }

    /// The type of one value and no other.
    pub(super) fn value(&mut self, value: &Value, depth: usize) -> Type {
        if depth >= MAX_DEPTH || !self.spend() {
            return Type::Unknown;
        }
        match value {
            Value::Null => Type::Null,
            Value::Bool(boolean) => Type::Literal(Literal::Boolean(*boolean)),
            Value::Number(number) => number_literal(number),
            Value::String(string) if string.len() <= MAX_STRING => {
                Type::Literal(Literal::String(string.clone()))
            }
            Value::String(_) => Type::String,
            Value::Array(items) => Type::Tuple(Tuple {
                places: items
                    .iter()
                    .map(|item| self.value(item, depth + 1))
                    .collect(),
                required: items.len(),
                rest: None,
            }),
            Value::Object(entries) => Type::Object(Object {
                properties: entries
                    .iter()
                    .map(|(name, value)| Property::new(name, self.value(value, depth + 1), false))
                    .collect(),
                additional: Additional::Closed,
            }),
        }
    }
}

/// A number as its own type, in a spelling that JavaScript reads as the same
/// double; any number where doubles cannot tell it from its neighbours.
fn number_literal(number: &Number) -> Type {
    let Some(double) = number.as_f64() else {
        return Type::Number;
    };
    if double == 0.0 {
        return Type::Literal(Literal::Number("0".to_owned()));
    }
    if !double.is_finite() || double.abs() > SAFE_INTEGER {
        return Type::union([Type::Number, Type::BigInt]);
    }
    Type::Literal(Literal::Number(format!("{double}")))
}

fn any_of_kind(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Boolean,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::Array(_) | Value::Object(_) => Type::Unknown,
    }
}

pub(super) fn kind(value: &Value) -> Kinds {
    match value {
        Value::Null => Kinds::NULL,
        Value::Bool(_) => Kinds::BOOLEAN,
        Value::Number(number) => match number.as_f64() {
            Some(double) if double.fract() != 0.0 => Kinds::FRACTION,
            _ => Kinds::INTEGER,
        },
        Value::String(_) => Kinds::STRING,
        Value::Array(_) => Kinds::ARRAY,
        Value::Object(_) => Kinds::OBJECT,
    }
}

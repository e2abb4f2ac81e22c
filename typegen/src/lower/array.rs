//! Arrays: `items` and `prefixItems`, and the forms they had before 2020-12.

use serde_json::{Map, Value};

use super::Lowering;
use super::conditions::has_applicators;
use super::kinds::Kinds;
use super::object::count;
use super::scope::Dialect;
use crate::degradation::Reason;
use crate::ir::{Tuple, Type};

const MAX_PLACES: usize = 64;

impl<'a> Lowering<'a, '_> {
    /// The arrays a schema accepts.
    pub(super) fn array(&mut self, map: &'a Map<String, Value>) -> Type {
        let max = map.get("maxItems").and_then(count);
        let min = map.get("minItems").and_then(count).unwrap_or(0);
        // No item type is possible, but one item is required: the type is `never`.
        let needs = match self.dialect {
            Dialect::Old => false,
            Dialect::Draft7 => true,
            Dialect::Modern => map.get("minContains").and_then(count) != Some(0),
        };
        if map.get("contains") == Some(&Value::Bool(false)) && needs {
            return Type::Never;
        }
        if max == Some(0) {
            return Type::Tuple(Tuple {
                places: Vec::new(),
                required: 0,
                rest: None,
            });
        }
        // Up to 2019-09, a list under `items` had the meaning of today's `prefixItems`, and
        // `additionalItems` the meaning of today's `items`.
        let prefix = map.get("prefixItems").filter(|_| self.is_modern());
        let (prefix, rest) = match (prefix, map.get("items")) {
            (Some(Value::Array(prefix)), rest) => (
                Some(("prefixItems", prefix)),
                rest.map(|rest| ("items", rest)),
            ),
            (None, Some(Value::Array(prefix))) => {
                let rest = map.get("additionalItems");
                (
                    Some(("items", prefix)),
                    rest.map(|rest| ("additionalItems", rest)),
                )
            }
            (prefix, rest) => {
                if prefix.is_some() {
                    self.degrade(Reason::Malformed {
                        keyword: "prefixItems",
                    });
                }
                (None, rest.map(|rest| ("items", rest)))
            }
        };
        let rest = match rest {
            None if self.is_modern() && !has_applicators(map) && !map.contains_key("contains") => {
                let keyword = "unevaluatedItems";
                map.get(keyword).map(|schema| (keyword, schema))
            }
            rest => rest,
        };
        let rest_type = rest.map_or(Type::Unknown, |(keyword, schema)| {
            self.at(&[keyword], None, schema, Kinds::ALL)
        });
        let Some((keyword, prefix)) = prefix else {
            return Type::Array(Box::new(rest_type));
        };
        if prefix.is_empty() {
            return Type::Array(Box::new(rest_type));
        }
        if prefix.len() > MAX_PLACES {
            self.degrade(Reason::TooMany {
                keyword,
                limit: MAX_PLACES,
            });
            return Type::Array(Box::new(Type::Unknown));
        }

        let places: Vec<Type> = prefix
            .iter()
            .enumerate()
            .map(|(index, schema)| self.at(&[keyword], Some(index), schema, Kinds::ALL))
            .collect();
        let places_count = u64::try_from(places.len()).unwrap_or(u64::MAX);
        let required = usize::try_from(min).unwrap_or(usize::MAX).min(places.len());
        let full = max.is_some_and(|max| max <= places_count);
        let rest = (rest_type != Type::Never && !full).then(|| Box::new(rest_type));
        Type::Tuple(Tuple {
            places,
            required,
            rest,
        })
    }
}

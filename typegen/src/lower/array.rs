//! Arrays: `items` and `prefixItems`, and the forms they had before 2020-12.

use serde_json::{Map, Value};

use super::Lowering;
use super::kinds::Kinds;
use crate::degradation::Reason;
use crate::ir::{Tuple, Type};

/// Places of one tuple.
const MAX_PLACES: usize = 64;

impl<'a> Lowering<'a, '_> {
    /// The arrays a schema accepts.
    pub(super) fn array(&mut self, map: &'a Map<String, Value>) -> Type {
        // Up to 2019-09 a list under `items` was what `prefixItems` is now, and
        // `additionalItems` what `items` is now.
        let (prefix, rest) = match (map.get("prefixItems"), map.get("items")) {
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
        let count = |keyword: &str| {
            let count = map.get(keyword).and_then(Value::as_u64);
            count.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        let required = count("minItems").unwrap_or(0).min(places.len());
        let full = count("maxItems").is_some_and(|most| most <= places.len());
        let rest = (rest_type != Type::Never && !full).then(|| Box::new(rest_type));
        Type::Tuple(Tuple {
            places,
            required,
            rest,
        })
    }
}

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
        if self.lacks_a_needed_item(map) {
            return Type::Never;
        }
        let max = map.get("maxItems").and_then(count);
        if max == Some(0) {
            return Type::Tuple(Tuple {
                places: Vec::new(),
                required: 0,
                rest: None,
            });
        }
        let (prefix, rest) = self.item_schemas(map);
        let rest = rest.map_or(Type::Unknown, |(keyword, schema)| {
            self.at(&[keyword], None, schema, Kinds::ALL)
        });
        match prefix {
            Some((keyword, prefix)) if prefix.len() > MAX_PLACES => {
                self.degrade(Reason::TooMany {
                    keyword,
                    limit: MAX_PLACES,
                });
                Type::Array(Box::new(Type::Unknown))
            }
            Some((keyword, prefix)) if !prefix.is_empty() => {
                let min = map.get("minItems").and_then(count).unwrap_or(0);
                let places = prefix.iter().enumerate();
                let places: Vec<Type> = places
                    .map(|(index, schema)| self.at(&[keyword], Some(index), schema, Kinds::ALL))
                    .collect();
                tuple(places, min, max, rest)
            }
            _ => Type::Array(Box::new(rest)),
        }
    }

    /// True if an array needs an item that `contains` describes, and no value is such an item.
    fn lacks_a_needed_item(&self, map: &Map<String, Value>) -> bool {
        let needs_one = match self.dialect {
            Dialect::Old => false,
            Dialect::Draft7 => true,
            Dialect::Modern => map.get("minContains").and_then(count) != Some(0),
        };
        map.get("contains") == Some(&Value::Bool(false)) && needs_one
    }

    /// The schemas of the first items, and the schema of the rest, each with its keyword.
    ///
    /// Up to 2019-09, a list under `items` had the meaning of today's `prefixItems`, and
    /// `additionalItems` the meaning of today's `items`.
    fn item_schemas(
        &mut self,
        map: &'a Map<String, Value>,
    ) -> (Option<Items<'a>>, Option<Item<'a>>) {
        let named = |keyword: &'static str| map.get(keyword).map(|schema| (keyword, schema));
        let prefix = map.get("prefixItems").filter(|_| self.is_modern());
        let (prefix, rest) = match (prefix, map.get("items")) {
            (Some(Value::Array(prefix)), _) => (Some(("prefixItems", prefix)), named("items")),
            (None, Some(Value::Array(prefix))) => {
                (Some(("items", prefix)), named("additionalItems"))
            }
            (prefix, _) => {
                if prefix.is_some() {
                    self.degrade(Reason::Malformed {
                        keyword: "prefixItems",
                    });
                }
                (None, named("items"))
            }
        };
        let is_closed =
            || self.is_modern() && !has_applicators(map) && !map.contains_key("contains");
        let rest = rest.or_else(|| named("unevaluatedItems").filter(|_| is_closed()));
        (prefix, rest)
    }
}

/// A list of schemas, and its keyword.
type Items<'a> = (&'static str, &'a Vec<Value>);
/// A schema, and its keyword.
type Item<'a> = (&'static str, &'a Value);

fn tuple(places: Vec<Type>, min: u64, max: Option<u64>, rest: Type) -> Type {
    let count = u64::try_from(places.len()).unwrap_or(u64::MAX);
    let required = usize::try_from(min).unwrap_or(usize::MAX).min(places.len());
    let is_full = max.is_some_and(|max| max <= count);
    let rest = (rest != Type::Never && !is_full).then(|| Box::new(rest));
    Type::Tuple(Tuple {
        places,
        required,
        rest,
    })
}

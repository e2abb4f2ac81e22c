//! The cases: random schemas of every keyword, and random instances that a validator judges.

use jsonschema::Draft;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Map, Value, json};

/// Names of properties; one of them is not an identifier, one is every object's.
const KEYS: [&str; 6] = ["a", "b", "kind", "x-y", "x-z", "toString"];
const INSTANCES: usize = 12;

/// A schema and the instances that it accepts.
pub struct Accepted {
    pub schema: Value,
    pub instances: Vec<Value>,
}

/// Schemas with at least one instance each, the same for the same seed.
pub fn schemas(count: usize, seed: u64) -> Vec<Accepted> {
    let mut runner = TestRunner::new(Config {
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    });
    let strategy = (root(), prop::collection::vec(instance(), INSTANCES));
    let mut found = Vec::new();
    while found.len() < count {
        let (schema, mut instances) = strategy.new_tree(&mut runner).unwrap().current();
        // A reference that leads only to itself is an error to the validator.
        let judges = judge(&schema).zip(judge(&objects_meant(&schema)));
        let Some((strict, narrowed)) = judges else {
            continue;
        };
        instances.retain(|instance| strict.is_valid(instance) && narrowed.is_valid(instance));
        if !instances.is_empty() {
            found.push(Accepted { schema, instances });
        }
    }
    found
}

fn judge(schema: &Value) -> Option<jsonschema::Validator> {
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    options.build(schema).ok()
}

/// The schema with the one narrowing there is: object keywords mean an object.
fn objects_meant(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut narrowed = Map::new();
    for (keyword, value) in map {
        let value = match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs",
                Value::Object(inner),
            ) => {
                let meant = inner
                    .iter()
                    .map(|(key, schema)| (key.clone(), objects_meant(schema)));
                Value::Object(meant.collect())
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(inner)) => {
                inner.iter().map(objects_meant).collect()
            }
            (keyword, schema) if OF_SCHEMAS.split(' ').any(|one| one == keyword) => {
                objects_meant(schema)
            }
            (_, value) => value.clone(),
        };
        narrowed.insert(keyword.clone(), value);
    }
    if OF_OBJECTS
        .split(' ')
        .any(|keyword| map.contains_key(keyword))
    {
        narrowed.entry("type").or_insert(json!("object"));
    }
    Value::Object(narrowed)
}

const OF_OBJECTS: &str = "properties required additionalProperties patternProperties propertyNames \
     minProperties maxProperties dependentRequired dependentSchemas unevaluatedProperties";

/// Keywords whose value is a schema.
const OF_SCHEMAS: &str = "items additionalProperties unevaluatedItems unevaluatedProperties then \
     else contains";

fn key() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(KEYS.as_slice()).prop_map(str::to_owned)
}

fn instance() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![json!(0), json!(1), json!(1.5), json!(-2.0)]),
        prop::sample::select(vec!["", "a", "b"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            2 => prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn type_name() -> impl Strategy<Value = Value> {
    let one = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "array", "object", "object",
        "object",
    ]);
    prop_oneof![
        3 => one.clone().prop_map(Value::from),
        1 => prop::collection::btree_set(one, 1..3).prop_map(|types| json!(types)),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let reference = prop::sample::select(vec![
        json!({ "$ref": "#" }),
        json!({ "$ref": "#/$defs/A" }),
        json!({ "$ref": "#b" }),
        json!({ "$ref": "other#/$defs/C" }),
        json!({ "$dynamicRef": "#d" }),
    ]);
    let leaf = prop_oneof![
        4 => type_name().prop_map(|ty| json!({ "type": ty })),
        2 => reference,
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(json!({})),
        1 => instance().prop_map(|value| json!({ "const": value })),
        1 => values().prop_map(|values| json!({ "enum": values })),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let by_key =
            prop::collection::btree_map(key(), inner.clone(), 1..4).prop_map(|map| json!(map));
        let keys = prop::collection::btree_set(key(), 0..3).prop_map(|keys| json!(keys));
        let count = (0..4u8).prop_map(Value::from);
        let pattern = prop::sample::select(vec!["^x-", "^a$", "^(a|b)$", "b", "^.*$", "\\d"]);
        let of_objects = prop_oneof![
            4 => by_key.clone().prop_map(|map| ("properties", map)),
            3 => keys.clone().prop_map(|keys| ("required", keys)),
            2 => inner.clone().prop_map(|schema| ("additionalProperties", schema)),
            1 => prop::collection::btree_map(pattern.clone(), inner.clone(), 1..3)
                .prop_map(|map| ("patternProperties", json!(map))),
            1 => pattern.prop_map(|pattern| ("propertyNames", json!({ "pattern": pattern }))),
            1 => keys.clone().prop_map(|keys| ("propertyNames", json!({ "enum": keys }))),
            1 => count.clone().prop_map(|count| ("minProperties", count)),
            1 => count.clone().prop_map(|count| ("maxProperties", count)),
            1 => (key(), keys).prop_map(|(key, keys)| ("dependentRequired", json!({ key: keys }))),
            1 => by_key.prop_map(|map| ("dependentSchemas", map)),
            1 => inner.clone().prop_map(|schema| ("unevaluatedProperties", schema)),
        ];
        let of_arrays = prop_oneof![
            2 => inner.clone().prop_map(|schema| ("items", schema)),
            2 => list.clone().prop_map(|list| ("prefixItems", list)),
            1 => inner.clone().prop_map(|schema| ("contains", schema)),
            1 => count.clone().prop_map(|count| ("minItems", count)),
            1 => count.clone().prop_map(|count| ("maxItems", count)),
            1 => count.clone().prop_map(|count| ("minContains", count)),
            1 => count.prop_map(|count| ("maxContains", count)),
            1 => any::<bool>().prop_map(|unique| ("uniqueItems", json!(unique))),
            1 => inner.clone().prop_map(|schema| ("unevaluatedItems", schema)),
        ];
        let applied = prop_oneof![
            2 => list.clone().prop_map(|list| ("anyOf", list)),
            2 => list.clone().prop_map(|list| ("oneOf", list)),
            2 => list.prop_map(|list| ("allOf", list)),
            1 => inner.clone().prop_map(|schema| ("not", schema)),
            1 => inner.clone().prop_map(|schema| ("if", schema)),
            1 => inner.clone().prop_map(|schema| ("then", schema)),
            1 => inner.clone().prop_map(|schema| ("else", schema)),
        ];
        let keyword = prop_oneof![
            5 => of_objects,
            3 => of_arrays,
            4 => applied,
            4 => type_name().prop_map(|ty| ("type", ty)),
            1 => values().prop_map(|values| ("enum", values)),
            1 => Just(("$ref", json!("#/$defs/A"))),
            1 => prop::sample::select(vec!["A", "Entry"]).prop_map(|title| ("title", json!(title))),
        ];
        // A choice by kind, as people write it.
        let by_kind = prop::collection::vec(inner, 3).prop_map(|inner| {
            let [then, otherwise, a] = inner.as_slice() else {
                return Value::Bool(true);
            };
            json!({
                "type": "object",
                "properties": { "kind": { "enum": ["a", "b", 0] }, "a": a },
                "if": { "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
                "then": then,
                "else": otherwise,
            })
        });
        let any = prop::collection::vec(keyword, 1..6).prop_map(|keywords| {
            Value::Object(
                keywords
                    .into_iter()
                    .map(|(keyword, value)| (keyword.to_owned(), value))
                    .collect(),
            )
        });
        prop_oneof![8 => any, 1 => by_kind]
    })
}

fn values() -> impl Strategy<Value = Value> {
    prop::collection::vec(instance(), 1..4).prop_map(|values| {
        let mut different: Vec<Value> = Vec::new();
        for value in values {
            if !different.contains(&value) {
                different.push(value);
            }
        }
        Value::from(different)
    })
}

/// A schema with definitions of each kind: by pointer, by anchor, in a resource
/// of its own, and by dynamic anchor.
fn root() -> impl Strategy<Value = Value> {
    (schema(), schema(), schema(), schema(), schema()).prop_map(|(root, a, b, c, d)| {
        let with = |schema: Value, keyword: &str, value: Value| match schema {
            Value::Object(mut map) => {
                map.insert(keyword.to_owned(), value);
                Value::Object(map)
            }
            other => json!({ "allOf": [other], keyword: value }),
        };
        let definitions = json!({
            "A": a,
            "B": with(b, "$anchor", json!("b")),
            "Other": {
                "$id": "other",
                "$dynamicAnchor": "d",
                "$defs": { "C": c, "B": { "$anchor": "b", "type": "string" } },
            },
            "D": with(d, "$dynamicAnchor", json!("d")),
        });
        with(root, "$defs", definitions)
    })
}

//! The rule of the lowering, tested: what a schema accepts, its type takes.
//!
//! Once over the JSON Schema Test Suite, and once over random schemas and
//! instances, judged by a small validator of what the lowering knows.

use std::path::Path;

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::ir::{Additional, Literal, Object, Type};
use crate::lower::{Definition, lower_tool};
use crate::reserved::OBJECT_MEMBERS;

/// Lowers a schema as a tool's output.
fn lower(schema: &Value) -> (Type, Vec<Definition>) {
    let mut definitions = Vec::new();
    let input = json!({});
    let lowered = lower_tool(("s", "t"), 0, &input, Some(schema), &mut definitions);
    // The input declares a type as well, which nothing refers to.
    (lowered.output, definitions)
}

/// Whether TypeScript takes a value for a type as it is printed.
fn takes(ty: &Type, value: &Value, definitions: &[Definition]) -> bool {
    let takes = |ty: &Type, value: &Value| takes(ty, value, definitions);
    match ty {
        Type::Unknown => true,
        Type::Never => false,
        Type::Null => value.is_null(),
        Type::Boolean => value.is_boolean(),
        Type::Integer | Type::Number => value.is_number(),
        Type::String => value.is_string(),
        Type::Literal(Literal::Boolean(boolean)) => *value == Value::Bool(*boolean),
        Type::Literal(Literal::Number(number)) => value.as_f64() == number.parse().ok(),
        Type::Literal(Literal::String(string)) => value.as_str() == Some(string),
        Type::Array(item) => value
            .as_array()
            .is_some_and(|items| items.iter().all(|value| takes(item, value))),
        Type::Tuple(tuple) => value.as_array().is_some_and(|items| {
            items.len() >= tuple.required
                && items.iter().enumerate().all(|(index, value)| {
                    let place = tuple.places.get(index).or(tuple.rest.as_deref());
                    place.is_some_and(|ty| takes(ty, value))
                })
        }),
        Type::Object(object) => value
            .as_object()
            .is_some_and(|map| takes_object(object, map, definitions)),
        Type::Union(members) => members.iter().any(|member| takes(member, value)),
        Type::Intersection(members) => members.iter().all(|member| takes(member, value)),
        Type::Named(id) => takes(&definitions[*id].body, value),
    }
}

fn takes_object(object: &Object, map: &Map<String, Value>, definitions: &[Definition]) -> bool {
    let named = object
        .properties
        .iter()
        .all(|property| match map.get(&property.name) {
            Some(value) => takes(&property.ty, value, definitions),
            None => {
                let inherited = OBJECT_MEMBERS.contains(&property.name.as_str());
                property.optional && (!inherited || property.ty == Type::Unknown)
            }
        });
    let others = map
        .iter()
        .filter(|(name, _)| object.properties.iter().all(|p| p.name != **name));
    named
        && match &object.additional {
            Additional::Unmentioned => true,
            Additional::Closed => !object.properties.is_empty() || map.is_empty(),
            Additional::Typed(ty) => {
                let own = object.properties.iter().map(|property| property.ty.clone());
                let index = Type::union(std::iter::once((**ty).clone()).chain(own));
                others
                    .into_iter()
                    .all(|(_, value)| takes(&index, value, definitions))
            }
        }
}

#[test]
fn types_take_every_instance_the_test_suite_calls_valid() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus/json-schema-test-suite/tests");
    let mut narrowed = String::new();
    let mut count = 0;
    for draft in ["draft7", "draft2020-12"] {
        let Ok(files) = std::fs::read_dir(suite.join(draft)) else {
            return skip(
                "the JSON Schema Test Suite is not at ../shared/corpus beside the checkout",
            );
        };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let groups: Value = serde_json::from_str(&text).unwrap();
            for group in groups.as_array().unwrap() {
                let mut schema = group["schema"].clone();
                if let (Some(map), "draft7") = (schema.as_object_mut(), draft) {
                    let dialect = "http://json-schema.org/draft-07/schema#";
                    map.insert("$schema".to_owned(), json!(dialect));
                }
                let (ty, definitions) = lower(&schema);
                for case in group["tests"].as_array().unwrap() {
                    if case["valid"] != true {
                        continue;
                    }
                    count += 1;
                    if !takes(&ty, &case["data"], &definitions) {
                        narrowed.push_str(&format!(
                            "{draft} {} | {} | {}\n",
                            file.file_stem().unwrap().to_str().unwrap(),
                            group["description"].as_str().unwrap(),
                            case["description"].as_str().unwrap(),
                        ));
                    }
                }
            }
        }
    }
    assert!(count > 1_000, "{count}");
    // Each of these is the one narrowing allowed: `properties` without `type`
    // is an object.
    expect![[r#"
        draft7 additionalProperties | additionalProperties being false does not allow other properties | ignores arrays
        draft7 additionalProperties | additionalProperties being false does not allow other properties | ignores strings
        draft7 additionalProperties | additionalProperties being false does not allow other properties | ignores other non-objects
        draft7 properties | object properties validation | ignores arrays
        draft7 properties | object properties validation | ignores other non-objects
        draft7 properties | properties whose names are Javascript object property names | ignores arrays
        draft7 properties | properties whose names are Javascript object property names | ignores other non-objects
        draft7 ref | root pointer ref | match
        draft7 ref | root pointer ref | recursive match
        draft7 required | required validation | ignores arrays
        draft7 required | required validation | ignores strings
        draft7 required | required validation | ignores other non-objects
        draft7 required | required validation | ignores null
        draft7 required | required validation | ignores boolean
        draft2020-12 additionalProperties | additionalProperties being false does not allow other properties | ignores arrays
        draft2020-12 additionalProperties | additionalProperties being false does not allow other properties | ignores strings
        draft2020-12 additionalProperties | additionalProperties being false does not allow other properties | ignores other non-objects
        draft2020-12 properties | object properties validation | ignores arrays
        draft2020-12 properties | object properties validation | ignores other non-objects
        draft2020-12 properties | properties whose names are Javascript object property names | ignores arrays
        draft2020-12 properties | properties whose names are Javascript object property names | ignores other non-objects
        draft2020-12 ref | root pointer ref | match
        draft2020-12 ref | root pointer ref | recursive match
        draft2020-12 required | required validation | ignores arrays
        draft2020-12 required | required validation | ignores strings
        draft2020-12 required | required validation | ignores other non-objects
        draft2020-12 required | required validation | ignores null
        draft2020-12 required | required validation | ignores boolean
    "#]].assert_eq(&narrowed);
}

#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Whether a schema accepts an instance, for the keywords that
/// [`random_schema`] uses. Recursion is bounded by the instance, or by `fuel`
/// where a reference is its own target.
fn accepts(root: &Value, schema: &Value, value: &Value, fuel: u32) -> bool {
    let Some(fuel) = fuel.checked_sub(1) else {
        return false;
    };
    let map = match schema {
        Value::Bool(boolean) => return *boolean,
        Value::Object(map) => map,
        _ => return true,
    };
    let accepts_at = |schema: &Value, value: &Value| accepts(root, schema, value, fuel);
    let list = |keyword: &str| map.get(keyword).and_then(Value::as_array);
    let is = |ty: &Value| match ty.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        _ => value.is_object(),
    };
    let typed = match map.get("type") {
        None => !map.contains_key("properties") || value.is_object(),
        Some(Value::Array(types)) => types.iter().any(is),
        Some(ty) => is(ty),
    };
    typed
        && list("enum").is_none_or(|values| values.contains(value))
        && map.get("const").is_none_or(|only| only == value)
        && list("allOf").is_none_or(|all| all.iter().all(|schema| accepts_at(schema, value)))
        && list("anyOf").is_none_or(|any| any.iter().any(|schema| accepts_at(schema, value)))
        && list("oneOf").is_none_or(|one| {
            let matching = one.iter().filter(|schema| accepts_at(schema, value));
            matching.count() == 1
        })
        && map.get("$ref").and_then(Value::as_str).is_none_or(|text| {
            let target = root.pointer(text.trim_start_matches('#'));
            target.is_none_or(|schema| accepts_at(schema, value))
        })
        && value.as_array().is_none_or(|items| {
            let prefix = list("prefixItems").map_or(&[][..], Vec::as_slice);
            let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            items.len() as u64 >= least
                && items.iter().enumerate().all(|(index, item)| {
                    let schema = prefix.get(index).or(map.get("items"));
                    schema.is_none_or(|schema| accepts_at(schema, item))
                })
        })
        && value.as_object().is_none_or(|entries| {
            let named = map.get("properties").and_then(Value::as_object);
            list("required").is_none_or(|names| {
                let mut names = names.iter().filter_map(Value::as_str);
                names.all(|name| entries.contains_key(name))
            }) && entries.iter().all(|(name, value)| {
                let own = named.and_then(|named| named.get(name));
                let schema = own.or(map.get("additionalProperties"));
                schema.is_none_or(|schema| accepts_at(schema, value))
            })
        })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "kind", "x-y", "toString"]).prop_map(str::to_owned)
}

fn random_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![json!(0), json!(1), json!(1.5), json!(-2.0)]),
        prop::sample::select(vec!["", "a", "b"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn random_type() -> impl Strategy<Value = Value> {
    let one = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object", "object", "object",
    ]);
    prop_oneof![
        3 => one.clone().prop_map(Value::from),
        1 => prop::collection::vec(one.prop_map(Value::from), 1..3).prop_map(Value::from),
    ]
}

fn random_schema() -> impl Strategy<Value = Value> {
    let reference = prop::sample::select(vec!["#", "#/$defs/A", "#/$defs/B", "#/nowhere"]);
    let leaf = prop_oneof![
        4 => random_type().prop_map(|ty| json!({ "type": ty })),
        2 => reference.prop_map(|reference| json!({ "$ref": reference })),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(json!({})),
        1 => random_value().prop_map(|value| json!({ "const": value })),
        1 => prop::collection::vec(random_value(), 1..4).prop_map(|all| json!({ "enum": all })),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let schemas = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let keywords = prop_oneof![
            prop::collection::btree_map(name(), inner.clone(), 1..4)
                .prop_map(|map| ("properties", json!(map))),
            prop::collection::btree_set(name(), 0..3).prop_map(|set| ("required", json!(set))),
            inner
                .clone()
                .prop_map(|schema| ("additionalProperties", schema)),
            inner.prop_map(|schema| ("items", schema)),
            schemas.clone().prop_map(|schemas| ("prefixItems", schemas)),
            (0..3u8).prop_map(|count| ("minItems", json!(count))),
            schemas.clone().prop_map(|schemas| ("anyOf", schemas)),
            schemas.clone().prop_map(|schemas| ("oneOf", schemas)),
            schemas.prop_map(|schemas| ("allOf", schemas)),
            random_type().prop_map(|ty| ("type", ty)),
            random_type().prop_map(|ty| ("type", ty)),
            prop::collection::vec(random_value(), 1..4).prop_map(|all| ("enum", json!(all))),
            prop::sample::select(vec!["A", "Entry"]).prop_map(|title| ("title", json!(title))),
        ];
        prop::collection::vec(keywords, 1..6).prop_map(|keywords| {
            let keywords = keywords.into_iter();
            Value::Object(
                keywords
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
            )
        })
    })
}

fn random_root() -> impl Strategy<Value = Value> {
    (random_schema(), random_schema(), random_schema()).prop_map(|(root, a, b)| match root {
        Value::Object(mut map) => {
            map.insert("$defs".to_owned(), json!({ "A": a, "B": b }));
            Value::Object(map)
        }
        other => other,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn types_take_every_instance_a_random_schema_accepts(
        schema in random_root(),
        values in prop::collection::vec(random_value(), 12),
    ) {
        let (ty, definitions) = lower(&schema);
        for value in values {
            if accepts(&schema, &schema, &value, 40) {
                prop_assert!(takes(&ty, &value, &definitions), "{value} does not fit {ty:?}");
            }
        }
    }
}

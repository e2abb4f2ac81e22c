//! Prepares schemas for the generator.

use serde_json::{Map, Value};

/// Levels of schemas inside schemas; deeper ones accept anything.
const MAX_DEPTH: usize = 64;

/// The schema with this title, without keywords that need further crates (formats, patterns) or may
/// contradict the types (defaults), and with its definitions where draft 7 has them.
pub(crate) fn prepared(schema: &Value, name: &str) -> Value {
    let mut schema = prepare(schema, 0);
    if let Value::Object(map) = &mut schema {
        map.insert("title".to_owned(), name.into());
    }
    schema
}

fn prepare(schema: &Value, depth: usize) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    if depth > MAX_DEPTH {
        return Value::Bool(true);
    }
    let mut prepared = Map::with_capacity(map.len());
    for (keyword, value) in map {
        let inner = |value: &Value| prepare(value, depth + 1);
        match (keyword.as_str(), value) {
            ("format" | "pattern" | "default" | "examples" | "$schema" | "$id" | "$comment", _) => {
            }
            ("$ref", Value::String(target)) => {
                let target = target.replace("#/$defs/", "#/definitions/");
                prepared.insert(keyword.clone(), target.into());
            }
            ("$defs" | "definitions", Value::Object(schemas)) => {
                let schemas = schemas
                    .iter()
                    .map(|(key, value)| (key.clone(), inner(value)));
                let into = prepared
                    .entry("definitions")
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(into) = into {
                    into.extend(schemas);
                }
            }
            ("properties" | "patternProperties", Value::Object(schemas)) => {
                let schemas = schemas
                    .iter()
                    .map(|(key, value)| (key.clone(), inner(value)));
                prepared.insert(keyword.clone(), Value::Object(schemas.collect()));
            }
            ("allOf" | "anyOf" | "oneOf" | "items" | "prefixItems", Value::Array(schemas)) => {
                prepared.insert(keyword.clone(), schemas.iter().map(inner).collect());
            }
            (
                "items" | "additionalItems" | "additionalProperties" | "not" | "propertyNames",
                value,
            ) => {
                prepared.insert(keyword.clone(), inner(value));
            }
            _ => {
                prepared.insert(keyword.clone(), value.clone());
            }
        }
    }
    Value::Object(prepared)
}

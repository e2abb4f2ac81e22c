//! The cases: the JSON Schema Test Suite's schemas, plain and inside others.

use std::path::{Path, PathBuf};

use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

/// One schema in one shape, with instances and their validity.
pub struct Group {
    pub set: Set,
    pub shape: Shape,
    /// `draft2020-12 | required | required validation`
    pub title: String,
    pub schema: Value,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub title: String,
    pub instance: Value,
    pub valid: bool,
}

/// Which schemas of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    /// Draft 2020-12 without references, where a schema without `type` is given
    /// the one that its keywords are for.
    Typed,
    /// Draft 2020-12 as it is.
    Draft202012,
    /// Draft 7 as it is.
    Draft7,
}

/// Where the schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    Plain,
    Array,
    ArrayOrNull,
    NullableType,
    Siblings,
}

impl Shape {
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::Array,
        Self::ArrayOrNull,
        Self::NullableType,
        Self::Siblings,
    ];
}

/// Every group of a set in every shape; none where the suite is not there.
pub fn groups(set: Set) -> Option<Vec<Group>> {
    let is_old = set == Set::Draft7;
    let folder = if is_old { "draft7" } else { "draft2020-12" };
    let entries = std::fs::read_dir(root().join(folder)).ok()?;
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut groups = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let raw: Vec<Value> = serde_json::from_str(&text).unwrap();
        for raw in raw {
            let group = raw["description"].as_str().unwrap();
            let title = format!("{folder} | {stem} | {group}");
            groups.extend(shapes(set, &title, &raw));
        }
    }
    Some(groups)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/json-schema-test-suite/tests")
}

fn shapes(set: Set, title: &str, raw: &Value) -> Vec<Group> {
    let schema = &raw["schema"];
    if set == Set::Typed && refers(schema) {
        return Vec::new();
    }
    let plain = match (set, schema) {
        (Set::Typed, Value::Object(map)) => with_implied_type(map),
        (Set::Draft7, Value::Object(map)) => {
            let mut map = map.clone();
            let dialect = json!("http://json-schema.org/draft-07/schema#");
            map.entry("$schema").or_insert(dialect);
            Value::Object(map)
        }
        _ => schema.clone(),
    };
    let tests = raw["tests"].as_array().unwrap();
    Shape::ALL
        .into_iter()
        .filter_map(|shape| {
            let (schema, wrap) = compose(set, shape, &plain)?;
            // The suite's own word where it has one, the validator's elsewhere.
            let as_it_is = shape == Shape::Plain && set != Set::Typed;
            let judge = judge(set, &schema);
            if judge.is_none() && !as_it_is {
                return None;
            }
            let case = |title: &str, value: &Value, stated: bool| {
                let instance = wrap(value);
                let judge = judge.as_ref().filter(|_| !as_it_is);
                Case {
                    title: title.to_owned(),
                    valid: judge.map_or(stated, |judge| judge.is_valid(&instance)),
                    instance,
                }
            };
            let stated = tests.iter().map(|test| {
                let title = test["description"].as_str().unwrap();
                case(title, &test["data"], test["valid"] == true)
            });
            let mut cases: Vec<Case> = stated.collect();
            if shape == Shape::NullableType {
                cases.push(case("null itself", &Value::Null, false));
            }
            Some(Group {
                set,
                shape,
                title: title.to_owned(),
                schema,
                cases,
            })
        })
        .collect()
}

/// A validator of the schema; none where it needs a schema from elsewhere.
pub fn judge(set: Set, schema: &Value) -> Option<Validator> {
    let is_old = set == Set::Draft7;
    let draft = if is_old {
        Draft::Draft7
    } else {
        Draft::Draft202012
    };
    let options = jsonschema::options().with_draft(draft);
    options.should_validate_formats(false).build(schema).ok()
}

type Wrap = fn(&Value) -> Value;

/// The schema in a shape, and the function that puts an instance into the shape.
fn compose(set: Set, shape: Shape, plain: &Value) -> Option<(Value, Wrap)> {
    let listed: Wrap = |value| json!([value]);
    let same: Wrap = Value::clone;
    let (mut schema, wrap) = match shape {
        Shape::Plain => (plain.clone(), same),
        Shape::Array => {
            let items = embedded(set, plain)?;
            (json!({ "type": "array", "items": items }), listed)
        }
        Shape::ArrayOrNull => {
            let items = json!({ "anyOf": [embedded(set, plain)?, { "type": "null" }] });
            (json!({ "type": "array", "items": items }), listed)
        }
        Shape::NullableType => {
            let mut map = plain.as_object()?.clone();
            let mut types = match map.get("type")? {
                Value::Array(types) => types.clone(),
                one => vec![one.clone()],
            };
            if !types.contains(&json!("null")) {
                types.push(json!("null"));
            }
            map.insert("type".to_owned(), Value::Array(types));
            (Value::Object(map), same)
        }
        Shape::Siblings => {
            let value = embedded(set, plain)?;
            let schema = json!({
                "type": "object",
                "properties": { "tag": { "type": "string" } },
                "required": ["tag"],
                "anyOf": [
                    { "properties": { "value": value }, "required": ["value"] },
                    { "properties": { "other": { "type": "boolean" } }, "required": ["other"] },
                ],
            });
            let tagged: Wrap = |value| json!({ "tag": "t", "value": value });
            (schema, tagged)
        }
    };
    if let (Set::Draft7, Some(map)) = (set, schema.as_object_mut()) {
        let dialect = json!("http://json-schema.org/draft-07/schema#");
        map.entry("$schema").or_insert(dialect);
    }
    Some((schema, wrap))
}

/// The schema as a part of another one: with an `$id` of its own where its references would else
/// lead elsewhere. None where it can have none, which is beside `$ref` in draft 7.
fn embedded(set: Set, plain: &Value) -> Option<Value> {
    let Value::Object(map) = plain else {
        return Some(plain.clone());
    };
    let mut map = map.clone();
    if refers(plain) && !map.contains_key("$id") {
        if set == Set::Draft7 && map.contains_key("$ref") {
            return None;
        }
        map.insert("$id".to_owned(), json!("https://example.test/embedded"));
    }
    Some(Value::Object(map))
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key("$ref") || map.contains_key("$dynamicRef") || map.values().any(refers)
        }
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// `type` as the other keywords imply it, where they imply one.
fn with_implied_type(map: &Map<String, Value>) -> Value {
    let implied: Vec<Value> = IMPLIED
        .iter()
        .filter(|(_, keywords)| keywords.split(' ').any(|keyword| map.contains_key(keyword)))
        .map(|(ty, _)| json!(ty))
        .collect();
    let mut map = map.clone();
    if !implied.is_empty() {
        map.entry("type").or_insert(match implied.as_slice() {
            [one] => one.clone(),
            _ => Value::Array(implied),
        });
    }
    Value::Object(map)
}

/// Types, each with the keywords that imply it.
const IMPLIED: [(&str, &str); 4] = [
    (
        "object",
        "properties required additionalProperties patternProperties propertyNames minProperties \
         maxProperties dependentRequired dependentSchemas unevaluatedProperties",
    ),
    (
        "array",
        "items prefixItems contains minContains maxContains minItems maxItems uniqueItems \
         unevaluatedItems",
    ),
    (
        "string",
        "minLength maxLength pattern format contentEncoding contentMediaType",
    ),
    (
        "number",
        "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
    ),
];

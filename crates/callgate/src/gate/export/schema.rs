//! Schemas of arguments as a provider takes them. Some providers refuse a request for one
//! schema whose root combines others.

use callgate_text::one_line;
use serde_json::{Map, Value};

use super::ExportFormat;

/// Keywords that the provider refuses at the root of a schema.
fn refused(format: ExportFormat) -> &'static [&'static str] {
    match format {
        ExportFormat::Anthropic => &["oneOf", "anyOf", "allOf"],
        ExportFormat::OpenAi => &["oneOf", "anyOf", "allOf", "enum", "not"],
        ExportFormat::Gemini => &[],
    }
}

/// A schema as a provider takes it, and what it has lost.
pub(super) struct Fitted {
    pub(super) schema: Value,
    /// Keywords of the root that are left out.
    pub(super) lost: Vec<&'static str>,
}

/// The schema without refused keywords. Properties of the combined schemas are kept: their names,
/// and their schemas if all that describe them agree.
/// The error: a clause that says why the provider takes no such schema.
pub(super) fn fit(format: ExportFormat, schema: &Value) -> Result<Fitted, String> {
    let mut fitted = schema.as_object().cloned().unwrap_or_default();
    fitted.shift_remove("$schema");
    fitted.insert("type".to_owned(), "object".into());
    let mut lost = Vec::new();
    let mut found = Map::new();
    for keyword in refused(format) {
        if let Some(combined) = fitted.shift_remove(*keyword) {
            lost.push(*keyword);
            for branch in combined.as_array().into_iter().flatten() {
                gather(branch, &mut found);
            }
        }
    }
    if (!found.is_empty() || format == ExportFormat::OpenAi)
        && let Value::Object(properties) = fitted
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()))
    {
        for (name, schema) in found {
            properties.entry(name).or_insert(schema);
        }
    }
    let mut schema = Value::Object(fitted);
    match format {
        ExportFormat::Anthropic => check_for_anthropic(&mut schema)?,
        ExportFormat::OpenAi | ExportFormat::Gemini => each_schema(&mut schema, &mut |it| {
            let kind = it.get("type");
            let is_array = kind.is_some_and(|kind| {
                kind == "array"
                    || kind
                        .as_array()
                        .is_some_and(|all| all.contains(&"array".into()))
            });
            if is_array && !it.contains_key("items") {
                it.insert("items".to_owned(), Value::Object(Map::new()));
            }
        }),
    }
    Ok(Fitted { schema, lost })
}

/// Anthropic refuses a request for one wrong key of a property, and for one schema that is not of
/// draft 2020-12.
fn check_for_anthropic(schema: &mut Value) -> Result<(), String> {
    if let Some(problem) = callgate_schema::not_2020_12(schema) {
        return Err(format!("its schema is not of draft 2020-12 ({problem})"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let mut unfit = None;
    each_schema(schema, &mut |it| {
        let properties = it.get("properties").and_then(Value::as_object);
        let mut keys = properties.into_iter().flat_map(Map::keys);
        unfit = unfit.take().or_else(|| {
            let key = keys.find(|key| !(1..=64).contains(&key.len()) || !key.chars().all(is_plain));
            key.map(|key| one_line(key, 80))
        });
    });
    unfit.map_or(Ok(()), |key| {
        Err(format!(
            "its property {key:?} is not 1 to 64 letters, digits, \"_\", \".\" or \"-\""
        ))
    })
}

/// Calls `visit` with each object that is a schema in this one, itself included.
fn each_schema(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|it| each_schema(it, visit)),
        Value::Object(object) => {
            visit(object);
            for (keyword, value) in object {
                match (keyword.as_str(), value) {
                    (
                        "properties" | "patternProperties" | "dependentSchemas" | "$defs"
                        | "definitions",
                        Value::Object(schemas),
                    ) => schemas.values_mut().for_each(|it| each_schema(it, visit)),
                    ("const" | "default" | "enum" | "examples", _) => {}
                    (_, value) => each_schema(value, visit),
                }
            }
        }
        _ => {}
    }
}

/// Adds the properties of one of the combined schemas. A property that two of them describe
/// differently gets an empty schema.
fn gather(branch: &Value, found: &mut Map<String, Value>) {
    let properties = branch.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        match found.get_mut(name) {
            None => {
                found.insert(name.clone(), schema.clone());
            }
            Some(other) if other != schema => *other = Value::Object(Map::new()),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn combinations_at_the_root_are_flattened() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": { "id": { "type": "string" } },
            "oneOf": [
                { "properties": { "id": { "const": "x" }, "file": { "type": "string" }, "n": { "type": "string" } } },
                { "properties": { "url": { "type": "string" }, "n": { "type": "number" } } },
                true
            ]
        });
        let fit = |format, schema| super::fit(format, schema).expect("a schema");
        let Fitted {
            schema: fitted,
            lost,
        } = fit(ExportFormat::Anthropic, &schema);
        assert_eq!(
            fitted,
            json!({
                "type": "object",
                "properties": {
                    "id": { "type": "string" },
                    "file": { "type": "string" },
                    "n": {},
                    "url": { "type": "string" }
                }
            })
        );
        assert_eq!(lost, ["oneOf"]);
        let Fitted {
            schema: whole,
            lost,
        } = fit(ExportFormat::Gemini, &schema);
        assert_eq!(whole["oneOf"], schema["oneOf"]);
        assert_eq!(lost, Vec::<&str>::new());
    }

    #[test]
    fn combinations_below_the_root_stay() {
        let schema = json!({ "type": "object", "properties": { "a": { "anyOf": [{}, true] } } });
        for format in ExportFormat::ALL {
            let Ok(Fitted {
                schema: fitted,
                lost,
            }) = fit(format, &schema)
            else {
                panic!("{format} takes it");
            };
            assert_eq!((fitted, lost.len()), (schema.clone(), 0));
        }
    }

    #[test]
    fn anthropic_rejects_odd_keys_and_older_drafts() {
        let long = "k".repeat(65);
        let of = |properties: Value| json!({ "properties": properties });
        for (schema, why) in [
            (of(json!({ "filter[name]": {} })), "filter[name]"),
            (of(json!({ "größe": {} })), "größe"),
            (of(json!({ "": {} })), "\"\" is not"),
            (of(json!({ (&*long): {} })), "kkk"),
            (of(json!({ "a": of(json!({ "$top": {} })) })), "$top"),
            (
                of(json!({ "a": { "items": of(json!({ "a b": {} })) } })),
                "a b",
            ),
            (json!({ "$defs": { "D": of(json!({ "@id": {} })) } }), "@id"),
            (json!({ "oneOf": [of(json!({ "a/b": {} }))] }), "a/b"),
            (
                of(json!({ "a": { "anyOf": [of(json!({ "x:y": {} }))] } })),
                "x:y",
            ),
            (of(json!({ "a": { "type": "int" } })), "2020-12"),
            (of(json!({ "a": { "items": [{}, {}] } })), "2020-12"),
            (
                of(json!({ "a": { "minimum": 0, "exclusiveMinimum": true } })),
                "2020-12",
            ),
        ] {
            let refused = fit(ExportFormat::Anthropic, &schema)
                .err()
                .expect("no such schema");
            assert!(refused.contains(why), "{schema}: {refused}");
            assert!(fit(ExportFormat::OpenAi, &schema).is_ok());
        }
        for schema in [
            json!({ "properties": { "a.b-c_D9": {}, "enum": { "enum": [{ "properties": { "a b": 1 } }] } } }),
            json!({ "properties": { "a": { "default": { "properties": { "a b": 1 } } } } }),
            json!({ "properties": { "properties": { "type": "object" } } }),
        ] {
            assert!(fit(ExportFormat::Anthropic, &schema).is_ok(), "{schema}");
        }
    }

    #[test]
    fn openai_schema_gets_array_items_and_root_type() {
        let schema = json!({ "type": ["object"], "properties": { "a": { "type": "array" }, "b": { "type": ["array", "null"] } } });
        let fitted = fit(ExportFormat::OpenAi, &schema).expect("a schema").schema;
        assert_eq!(
            fitted,
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": {} }, "b": { "type": ["array", "null"], "items": {} } } })
        );
        let fitted = fit(ExportFormat::OpenAi, &json!({}))
            .expect("a schema")
            .schema;
        assert_eq!(fitted, json!({ "type": "object", "properties": {} }));
    }
}

//! The JSON Schema of the configuration file, for editors, made from the structs that read it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::file::File;
use super::section::ServeSection;

/// The JSON Schema (draft 07, which editors know) of a file with this section `serve`.
///
/// Spellings that only other clients have are not in it, so that an editor marks them.
pub fn schema<S: ServeSection + JsonSchema>() -> Value {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<File<S>>().to_value();
    // A struct of seconds and nanoseconds; the reader takes texts.
    schema["definitions"]["Duration"] = json!({
        "type": "string",
        "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([Mm][Ss]|[SsMmHh])\s*$",
        "examples": ["500ms", "2s", "1.5m", "1h"],
    });
    tidy(&mut schema);
    schema
}

/// Corrects a schema where the reader of the file differs from serde: `null` is never a value, and
/// whole numbers are above zero. Takes defaults from descriptions.
fn tidy(schema: &mut Value) {
    let Value::Object(schema) = schema else {
        return;
    };
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(tidy);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(options)) => {
                options.iter_mut().for_each(tidy);
            }
            ("items" | "additionalProperties", inner) => tidy(inner),
            _ => {}
        }
    }
    without_null(schema);
    // Those of serde: durations as structs, and formats such as `uint64`.
    schema.remove("default");
    schema.remove("format");
    if schema.get("minimum") == Some(&json!(0)) {
        schema.insert("minimum".to_owned(), json!(1));
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(default) = default_in(text) {
            schema.insert("default".to_owned(), default);
        }
    }
}

fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(options)) = schema.get_mut("anyOf") {
        options.retain(|option| option["type"] != "null");
        if let [Value::Object(only)] = &mut options[..] {
            let only = std::mem::take(only);
            schema.remove("anyOf");
            for (key, value) in only {
                schema.entry(key).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &mut types[..] {
            let only = only.take();
            schema.insert("type".to_owned(), only);
        }
    }
}

/// The default in a description, if it is a value: `` Default: `VALUE`. ``
fn default_in(description: &str) -> Option<Value> {
    let (_, default) = description.split_once("Default: `")?;
    let text = default.strip_suffix("`.")?;
    let value = || serde_json::from_str(text).unwrap_or_else(|_| text.into());
    (!text.contains('`')).then(value)
}

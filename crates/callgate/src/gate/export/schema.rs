//! Schemas of arguments as a provider takes them. Some providers refuse a request for one
//! schema whose root combines others.

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

/// The schema without refused keywords, and these keywords. Properties of the combined schemas
/// are kept: their names, and their schemas if all that describe them agree.
pub(super) fn fit(format: ExportFormat, schema: &Value) -> (Value, Vec<&'static str>) {
    let Value::Object(root) = schema else {
        return (schema.clone(), Vec::new());
    };
    let mut fitted = root.clone();
    fitted.shift_remove("$schema");
    fitted.entry("type").or_insert_with(|| "object".into());
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
    if !found.is_empty()
        && let Value::Object(properties) = fitted
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()))
    {
        for (name, schema) in found {
            properties.entry(name).or_insert(schema);
        }
    }
    (Value::Object(fitted), lost)
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
    fn a_root_that_combines_is_taken_apart() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": { "id": { "type": "string" } },
            "oneOf": [
                { "properties": { "id": { "const": "x" }, "file": { "type": "string" }, "n": { "type": "string" } } },
                { "properties": { "url": { "type": "string" }, "n": { "type": "number" } } },
                true
            ]
        });
        let (fitted, lost) = fit(ExportFormat::Anthropic, &schema);
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
        let (whole, lost) = fit(ExportFormat::Gemini, &schema);
        assert_eq!(whole["oneOf"], schema["oneOf"]);
        assert_eq!(lost, Vec::<&str>::new());
    }

    #[test]
    fn combinations_below_the_root_stay() {
        let schema = json!({ "type": "object", "properties": { "a": { "anyOf": [{}, true] } } });
        for format in ExportFormat::ALL {
            assert_eq!(fit(format, &schema), (schema.clone(), Vec::new()));
        }
    }
}

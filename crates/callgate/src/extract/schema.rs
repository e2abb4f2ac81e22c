//! The schema that a script gives: a JSON Schema, or a TypeScript type as text.

use callgate_schema::{Author, Schema};
use serde_json::Value;

/// Reads a JSON Schema, or a TypeScript type in a JSON string.
pub(super) fn read(text: &str) -> Result<Schema, String> {
    Author::Script.takes(text.len())?;
    let value: Value =
        serde_json::from_str(text).map_err(|_| "the schema is nested too deep".to_owned())?;
    let value = match value {
        Value::String(ty) => {
            callgate_script::json_schema(&ty).map_err(|error| error.to_string())?
        }
        Value::Object(_) => value,
        _ => {
            return Err(
                "the schema must be a JSON Schema object, or a TypeScript type as text".to_owned(),
            );
        }
    };
    Schema::new(value, Author::Script)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, expected: Expect) {
        let shown = match read(&schema.to_string()) {
            Ok(schema) => schema.text().to_owned(),
            Err(message) => message,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn schemas_and_types() {
        check(
            &json!({ "type": "array", "items": { "$ref": "#/$defs/a" }, "$defs": { "a": {} } }),
            expect![[r##"{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{}}}"##]],
        );
        check(
            &json!("{ id: number }"),
            expect![[
                r#"{"type":"object","properties":{"id":{"type":"number"}},"required":["id"],"additionalProperties":false}"#
            ]],
        );
        check(
            &json!({ "properties": { "$ref": { "type": "string" } } }),
            expect![[r#"{"properties":{"$ref":{"type":"string"}}}"#]],
        );
    }

    #[test]
    fn what_is_no_schema() {
        check(
            &json!(5),
            expect!["the schema must be a JSON Schema object, or a TypeScript type as text"],
        );
        check(
            &json!("Date"),
            expect![[
                r#"the type "Date" cannot be a JSON Schema: JSON has no dates; write string"#
            ]],
        );
        check(
            &json!({ "description": "x".repeat(70_000) }),
            expect!["the schema has 70018 bytes, over the limit of 65536"],
        );
    }
}

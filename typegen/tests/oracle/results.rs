//! Types of results and the check of results read a schema in the same way: a result that passes
//! the check is of the type.

use callgate_schema::{Declared, Fit};
use serde_json::{Value, json};

use crate::typescript::{Verdict, check};

const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// Schemas of a property `x`, for each dialect.
fn properties() -> Vec<Value> {
    let person = json!({ "$ref": "#/definitions/P" });
    let with = |members: Value| {
        let mut schema = person.clone();
        let members = members.as_object().cloned().unwrap_or_default();
        schema.as_object_mut().unwrap().extend(members);
        schema
    };
    vec![
        person.clone(),
        with(json!({ "nullable": true })),
        with(json!({ "nullable": false })),
        with(json!({ "nullable": true, "description": "A person.", "default": null })),
        with(json!({ "type": "string" })),
        with(json!({ "type": "object", "nullable": true })),
        with(
            json!({ "properties": { "age": { "type": "integer" } }, "required": ["age"], "nullable": true }),
        ),
        with(json!({ "enum": [{ "name": "a" }], "nullable": true })),
        json!({ "$ref": "#/definitions/N" }),
        json!({ "type": "string", "nullable": true }),
        json!({ "type": ["string", "number"], "nullable": true }),
        json!({ "enum": ["a", "b"], "nullable": true }),
        json!({ "type": "string", "enum": ["a"], "nullable": true }),
        json!({ "const": "a", "nullable": true }),
        json!({ "anyOf": [{ "type": "string" }, person], "nullable": true }),
        json!({ "type": "string", "anyOf": [{ "minLength": 1 }, { "enum": ["a"] }], "nullable": true }),
        json!({ "oneOf": [{ "type": "string" }, person], "nullable": true }),
        json!({ "anyOf": [{ "type": "string", "nullable": true }, person] }),
        json!({ "allOf": [person], "nullable": true }),
        json!({ "allOf": [person, { "properties": { "age": { "type": "integer" } } }], "nullable": true }),
        json!({ "type": "object", "allOf": [person], "nullable": true }),
        json!({ "not": { "type": ["null", "object"] }, "nullable": true }),
        json!({ "if": { "type": "string" }, "then": { "enum": ["a"] }, "else": { "type": "object" }, "nullable": true }),
        json!({ "type": "array", "items": with(json!({ "nullable": true })), "nullable": true }),
        json!({ "type": "object", "properties": { "nullable": { "type": "string" } }, "required": ["nullable"] }),
        json!({ "type": "object", "properties": { "nullable": true, "name": { "type": "string" } } }),
        json!({ "const": { "type": "string", "nullable": true } }),
        json!({ "nullable": true }),
        json!({ "type": "null", "nullable": true }),
    ]
}

fn instances() -> Vec<Value> {
    let values = [
        json!(null),
        json!("a"),
        json!("b"),
        json!(1),
        json!([]),
        json!([null]),
        json!([{ "name": "a" }]),
        json!({}),
        json!({ "name": "a" }),
        json!({ "name": "a", "age": 1 }),
        json!({ "name": 1 }),
        json!({ "nullable": "a" }),
        json!({ "nullable": null }),
        json!({ "type": "string", "nullable": true }),
    ];
    values
        .into_iter()
        .map(|value| json!({ "x": value }))
        .collect()
}

#[test]
fn checked_results_have_the_declared_type() {
    let person = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let mut nullable = person.clone();
    nullable["nullable"] = json!(true);
    let definitions = json!({ "P": person, "N": nullable });
    let mut schemas = Vec::new();
    for draft in [None, Some(DRAFT_7)] {
        for property in properties() {
            let mut schema = json!({ "type": "object", "properties": { "x": property }, "required": ["x"], "definitions": definitions });
            if let Some(draft) = draft {
                schema["$schema"] = json!(draft);
            }
            schemas.push(schema);
        }
    }
    // Of the root itself.
    let mut root = schemas[1].clone();
    root["allOf"] = json!([{ "$ref": "#/definitions/Q" }]);
    root["definitions"]["Q"] = json!({ "type": "object" });
    root["nullable"] = json!(true);
    schemas.push(root);
    let instances = instances();
    let cases: Vec<_> = schemas
        .iter()
        .map(|it| (it, instances.iter().collect()))
        .collect();
    let mut let_through = 0;
    for (schema, verdicts) in schemas.iter().zip(check("results", &cases)) {
        let declared = Declared::new(schema.clone());
        for (instance, verdict) in instances.iter().zip(verdicts) {
            let fit = declared.fit(&instance.to_string());
            assert!(!matches!(fit, Fit::Unknown(_)), "{fit:?}: {schema}");
            if fit == Fit::Fits {
                let_through += 1;
                assert_ne!(verdict, Verdict::Rejected, "{instance} of {schema}");
            }
        }
        // Both take null where the schema says so, and nowhere else.
        let property = &schema["properties"]["x"];
        let is_nullable = property["nullable"] == json!(true);
        let null_fits = declared.fit(&json!({ "x": null }).to_string()) == Fit::Fits;
        assert!(null_fits || !is_nullable, "{schema}");
    }
    assert!(let_through > 150, "{let_through}");
}

//! Lines and their values.

use super::*;

/// Checks lines of what is typed in a field of this schema, an arrow, and the value or problem.
#[track_caller]
fn check(schema: Value, wants: &str, lines: &str) {
    let field = Field::read("field", &schema, true).expect("a field");
    assert_eq!(field.wants(), wants);
    for line in lines.trim().lines() {
        let (typed, expected) = line.trim_start().split_once("→ ").expect("an arrow");
        let answer = field.answer(&format!("{typed}\n"));
        let answer = answer.map(|value| value.expect("a value").to_string());
        assert_eq!(answer.unwrap_or_else(|fault| fault), expected, "{typed:?}");
    }
}

#[test]
fn text_fields_are_described_and_validated() {
    check(
        json!({ "type": "string", "minLength": 2, "maxLength": 3 }),
        "text, 2 to 3 characters",
        r#"
        日本 → "日本"
        a → "a" is shorter than 2 characters
        → it is required"#,
    );
    check(
        json!({ "type": "string", "format": "email" }),
        "an e-mail address",
        r#"
        a@example.com → "a@example.com"
        a@b@c → "a@b@c" is not a "email""#,
    );
    check(
        json!({ "type": "string", "format": "date" }),
        "a date, such as 2026-07-28",
        r#"
        2026-02-28 → "2026-02-28"
        2026-02-30 → "2026-02-30" is not a "date""#,
    );
    check(
        json!({ "type": "string", "format": "date-time" }),
        "a time, such as 2026-07-28T12:00:00Z",
        r#"
        2026-02-28T01:02:03+01:00 → "2026-02-28T01:02:03+01:00"
        noon → "noon" is not a "date-time""#,
    );
    check(
        json!({ "type": "string", "format": "uri", "default": "no url" }),
        "a URL",
        r#"
        https://example.com → "https://example.com"
        example → "example" is not a "uri""#,
    );
}

#[test]
fn number_and_boolean_fields_are_validated() {
    check(
        json!({ "type": "integer", "minimum": 1, "maximum": 5, "default": 3 }),
        "a whole number, 1 to 5, default 3",
        r#"
        → 3
        5 → 5
        6 → 6 is greater than the maximum of 5
        1.5 → 1.5 is not of type "integer""#,
    );
    check(
        json!({ "type": "number", "minimum": 0.5, "default": "three" }),
        "a number, at least 0.5",
        "
        1e3 → 1000.0
        NaN → it is not a number
        0 → 0 is less than the minimum of 0.5",
    );
    check(
        json!({ "type": "boolean", "default": false }),
        "y or n, default no",
        "
        Y → true
        → false
        perhaps → answer y or n",
    );
}

#[test]
fn single_and_multiple_choices_are_validated() {
    let titled = json!({ "type": "string", "oneOf": [
        { "const": "#f00", "title": "Red" }, { "const": "#0f0", "title": "Green" },
    ], "default": "#0f0" });
    let old = json!({
        "type": "string", "enum": ["#f00", "#0f0"], "enumNames": ["Red", "Green"],
        "default": "#0f0",
    });
    for schema in [titled, old] {
        check(
            schema,
            "one of these, by number, default #0f0",
            r##"
            1 → "#f00"
            #f00 → "#f00"
            Red → "#f00"
            → "#0f0"
            0 → choose by a number from 1 to 2
            3 → choose by a number from 1 to 2"##,
        );
    }
    check(
        json!({
            "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] },
            "minItems": 1, "maxItems": 2, "default": ["a", "d"],
        }),
        "any of these, by number, with commas between, 1 to 2 of them",
        r#"
        1, c → ["a","c"]
        2,2 → ["b"]
        1,2,3 → ["a","b","c"] has more than 2 items
        4 → choose by a number from 1 to 3"#,
    );
    let titled = json!({ "type": "array", "items": { "anyOf": [{ "const": "a" }] } });
    assert!(Field::read("x", &titled, true).is_some());
}

#[test]
fn an_optional_field_is_left_out() {
    let field = Field::read("x", &json!({ "type": "integer" }), false).expect("a field");
    assert_eq!(field.answer("\n"), Ok(None));
}

#[test]
fn unsupported_schemas_are_not_fields() {
    for schema in [
        json!(null),
        json!({}),
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "string", "enum": [] }),
        json!({ "type": "string", "enum": [1] }),
        json!({ "type": "string", "oneOf": "a" }),
        json!({ "type": "array", "items": { "type": "string" } }),
    ] {
        assert!(Field::read("x", &schema, true).is_none(), "{schema}");
    }
}

//! Lines and their values.

use super::*;

/// Checks the value or the problem of each line in a field of this schema.
#[track_caller]
fn check(schema: Value, wants: &str, lines: &[(&str, Result<Value, &str>)]) {
    let field = Field::read("field", &schema, true).expect("a field");
    assert_eq!(field.wants(), wants);
    for (line, expected) in lines {
        let answer = field.answer(&format!("{line}\n"));
        let expected = expected.clone().map(Some).map_err(str::to_owned);
        assert_eq!(answer, expected, "{line:?}");
    }
}

#[test]
fn texts() {
    check(
        json!({ "type": "string", "minLength": 2, "maxLength": 3 }),
        "text, 2 to 3 characters",
        &[
            ("日本", Ok(json!("日本"))),
            ("a", Err("\"a\" is shorter than 2 characters")),
            ("", Err("it is required")),
        ],
    );
    check(
        json!({ "type": "string", "format": "email" }),
        "an e-mail address",
        &[
            ("a@example.com", Ok(json!("a@example.com"))),
            ("a@b@c", Err("\"a@b@c\" is not a \"email\"")),
        ],
    );
    check(
        json!({ "type": "string", "format": "date" }),
        "a date, such as 2026-07-28",
        &[
            ("2026-02-28", Ok(json!("2026-02-28"))),
            ("2026-02-30", Err("\"2026-02-30\" is not a \"date\"")),
        ],
    );
    check(
        json!({ "type": "string", "format": "date-time" }),
        "a time, such as 2026-07-28T12:00:00Z",
        &[
            (
                "2026-02-28T01:02:03+01:00",
                Ok(json!("2026-02-28T01:02:03+01:00")),
            ),
            ("noon", Err("\"noon\" is not a \"date-time\"")),
        ],
    );
    check(
        json!({ "type": "string", "format": "uri", "default": "no url" }),
        "a URL",
        &[
            ("https://example.com", Ok(json!("https://example.com"))),
            ("example", Err("\"example\" is not a \"uri\"")),
        ],
    );
}

#[test]
fn numbers() {
    check(
        json!({ "type": "integer", "minimum": 1, "maximum": 5, "default": 3 }),
        "a whole number, 1 to 5, default 3",
        &[
            ("", Ok(json!(3))),
            ("5", Ok(json!(5))),
            ("6", Err("6 is greater than the maximum of 5")),
            ("1.5", Err("1.5 is not of type \"integer\"")),
        ],
    );
    check(
        json!({ "type": "number", "minimum": 0.5, "default": "three" }),
        "a number, at least 0.5",
        &[
            ("1e3", Ok(json!(1000.0))),
            ("NaN", Err("it is not a number")),
            ("0", Err("0 is less than the minimum of 0.5")),
        ],
    );
}

#[test]
fn yes_or_no() {
    check(
        json!({ "type": "boolean", "default": false }),
        "y or n, default no",
        &[
            ("Y", Ok(json!(true))),
            ("", Ok(json!(false))),
            ("perhaps", Err("answer y or n")),
        ],
    );
}

#[test]
fn one_of_several() {
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
            &[
                ("1", Ok(json!("#f00"))),
                ("#f00", Ok(json!("#f00"))),
                ("Red", Ok(json!("#f00"))),
                ("", Ok(json!("#0f0"))),
                ("0", Err("choose by a number from 1 to 2")),
                ("3", Err("choose by a number from 1 to 2")),
            ],
        );
    }
}

#[test]
fn some_of_several() {
    check(
        json!({
            "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] },
            "minItems": 1, "maxItems": 2, "default": ["a", "d"],
        }),
        "any of these, by number, with commas between, 1 to 2 of them",
        &[
            ("1, c", Ok(json!(["a", "c"]))),
            ("2,2", Ok(json!(["b"]))),
            ("1,2,3", Err("[\"a\",\"b\",\"c\"] has more than 2 items")),
            ("4", Err("choose by a number from 1 to 3")),
        ],
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
fn other_schemas_are_no_fields() {
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

//! Forms, and typed lines with their values.

use expect_test::expect;

use super::*;

/// Checks the described answer, and lines of what is typed, an arrow, and the value or problem.
#[track_caller]
fn check(schema: Value, wants: &str, lines: &str) {
    let field = Field::read("field", &schema, true).expect("a field");
    let head = field.head(Some(200));
    assert!(head.contains(wants), "{head}");
    for line in lines.trim().lines() {
        let (typed, expected) = line.trim_start().split_once("→ ").expect("an arrow");
        let answer = field.answer(&format!("{typed}\n"));
        let answer = answer.map(|value| value.expect("a value").to_string());
        assert_eq!(
            answer.unwrap_or_else(|problem| problem),
            expected,
            "{typed:?}"
        );
    }
}

#[test]
fn text_fields_are_described_and_validated() {
    check(
        json!({ "type": "string", "minLength": 2, "maxLength": 3 }),
        "(text, at least 2 characters, at most 3 characters)",
        r#"
        日本 → "日本"
        a → "a" is shorter than 2 characters
        → an answer is required"#,
    );
    check(
        json!({ "type": "string", "format": "email" }),
        "(an e-mail address)",
        r#"
        a@example.com → "a@example.com"
        a@b@c → "a@b@c" is not a "email""#,
    );
    check(
        json!({ "type": "string", "format": "date" }),
        "(a date, such as 2026-07-28)",
        r#"
        2026-02-28 → "2026-02-28"
        2026-02-30 → "2026-02-30" is not a "date""#,
    );
    check(
        json!({ "type": "string", "format": "date-time" }),
        "(a time, such as 2026-07-28T12:00:00Z)",
        r#"
        2026-02-28T01:02:03+01:00 → "2026-02-28T01:02:03+01:00"
        noon → "noon" is not a "date-time""#,
    );
    check(
        json!({ "type": "string", "format": "uri", "default": "no url" }),
        "(a URL)",
        r#"
        https://example.com → "https://example.com"
        example → "example" is not a "uri""#,
    );
}

#[test]
fn number_and_boolean_fields_are_validated() {
    check(
        json!({ "type": "integer", "minimum": 1, "maximum": 5, "default": 3 }),
        "(a whole number, at least 1, at most 5, default 3)",
        r#"
        → 3
        5 → 5
        6 → 6 is greater than the maximum of 5
        1.5 → 1.5 is not of type "integer""#,
    );
    check(
        json!({ "type": "number", "minimum": 0.5, "default": "three" }),
        "(a number, at least 0.5)",
        "
        1e3 → 1000.0
        NaN → the answer must be a number, at least 0.5
        0 → 0 is less than the minimum of 0.5",
    );
    check(
        json!({ "type": "boolean", "default": false }),
        "(y or n, default no)",
        "
        Y → true
        → false
        perhaps → the answer must be y or n",
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
            "(one of these, by number, default #0f0)",
            r##"
            1 → "#f00"
            #f00 → "#f00"
            Red → "#f00"
            → "#0f0"
            0 → the answer must be one of these, by number
            3 → the answer must be one of these, by number"##,
        );
    }
    check(
        json!({
            "type": "array", "items": { "type": "string", "enum": ["a", "b", "c"] },
            "minItems": 1, "maxItems": 2, "default": ["a", "d"],
        }),
        "(any of these, by number, separated by commas, at least 1 of them, at most 2 of them)",
        r#"
        1, c → ["a","c"]
        2,2 → ["b"]
        1,2,3 → ["a","b","c"] has more than 2 items
        , → [] has less than 1 item"#,
    );
    let titled = json!({ "type": "array", "items": { "anyOf": [{ "const": "a" }] } });
    assert!(Field::read("x", &titled, true).is_some());
}

#[test]
fn an_optional_field_is_left_out() {
    let schema = json!({ "type": "integer" });
    let field = Field::read("x", &schema, false).expect("a field");
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

#[test]
fn form_shows_its_fields() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Name", "description": "As in\nthe file" },
            "color": { "type": "string", "enum": ["red", "a\nb\u{202e}"], "default": "red" },
            "nested": { "type": "object" },
        },
        "required": ["name"],
    });
    let fields = fields(&schema).expect("a form");
    let text: String = fields.iter().map(|field| field.head(None)).collect();
    expect![[r#"

        │ Name
        │ As in
        │ the file
        │ (text)

        │ 1) red
        │ 2) a\nb\u202e
        │ (one of these, by number, optional, default red)
    "#]]
    .assert_eq(&text);
}

#[test]
fn unfillable_form_says_why() {
    let many: Map<String, Value> = (0..51)
        .map(|n| (n.to_string(), json!({ "type": "string" })))
        .collect();
    for (schema, expected) in [
        (
            json!({ "properties": { "x": { "type": "object" } }, "required": ["x"] }),
            r#"the form requires "x""#,
        ),
        (
            json!({ "properties": {}, "required": ["gone"] }),
            r#"the form requires "gone""#,
        ),
        (json!({ "properties": many }), "more than 50 fields"),
    ] {
        let problem = fields(&schema).expect_err("no form");
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn the_review_shows_every_answer() {
    let content = json!({ "a": "x\ny", "b": [], "c": true, "long": "é".repeat(600) });
    let content = content.as_object().expect("an object");
    let text = review(content, None);
    assert!(
        text.contains("gets this:\n│ a: x\\ny\n│ b: none\n│ c: yes\n│ long: "),
        "{text}"
    );
    assert!(text.ends_with("é…\n"), "{text}");
    assert!(review(&Map::new(), None).contains("no data"));
}

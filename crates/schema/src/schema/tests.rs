use serde_json::json;

use super::*;

fn check(schema: &Value, expected: &str) {
    check_of(Author::Script, schema, expected);
}

fn check_of(author: Author, schema: &Value, expected: &str) {
    let shown = match Schema::new(schema.clone(), author) {
        Ok(schema) => {
            let Shape {
                nodes,
                levels,
                loops,
                ..
            } = schema.shape();
            format!("Shape {{ nodes: {nodes}, levels: {levels}, loops: {loops} }}")
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected, "{schema}");
}

/// In each line a schema, and its shape or error.
fn check_lines(author: Author, cases: &str) {
    for case in cases.trim().lines() {
        let (schema, expected) = case.trim().split_once(" → ").expect(case);
        check_of(author, &serde_json::from_str(schema).expect(case), expected);
    }
}

#[test]
fn invalid_script_schemas_are_refused() {
    check_lines(
        Author::Script,
        r##"
        { "type": "text" } → the schema is not a valid JSON Schema, at "/type": value is not valid under any of the schemas listed in the 'anyOf' keyword
        { "pattern": "(" } → the schema is not a valid JSON Schema, at "/pattern": value is not a "regex"
        { "pattern": "(a{1000}){1000}" } → the schema is not a valid JSON Schema, at "/pattern": value is not a "regex"
        { "$ref": "https://example.com/schema.json" } → the schema refers to "https://example.com/schema.json", which is not a part of it; write "#/$defs/NAME"
        { "$ref": "file:///etc/passwd" } → the schema refers to "file:///etc/passwd", which is not a part of it; write "#/$defs/NAME"
        { "$ref": "#/$defs/none" } → the schema refers to "#/$defs/none", which is not a part of it; write "#/$defs/NAME"
        { "$schema": "https://example.com/own" } → the schema is not a valid JSON Schema, at "": Unknown meta-schema: 'https://example.com/own'. Custom meta-schemas must be registered in the registry before use
        { "$schema": "http://json-schema.org/draft-04/schema#" } → the schema is of draft 4; write one of 2020-12
        { "$id": "https://example.com/" } → the schema has "$id"; remove it
        { "$dynamicRef": "#x" } → the schema has "$dynamicRef"; remove it"##,
    );
}

#[test]
fn endless_references_are_refused() {
    check(
        &json!({ "anyOf": [{ "$ref": "#" }] }),
        r##"the schema refers to itself with "#"; write its levels out"##,
    );
    let pair = json!({
        "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } },
        "$ref": "#/$defs/a",
    });
    check(
        &pair,
        r##"the schema refers to itself with "#/$defs/b"; write its levels out"##,
    );
    // The same part under two names.
    let names = json!({ "$defs": { "a": { "$ref": "#/%24defs/a" } }, "$ref": "#/$defs/a" });
    check(
        &names,
        r##"the schema refers to itself with "#/%24defs/a"; write its levels out"##,
    );
    // Each part has the next one twice.
    let doubled = |levels: usize| {
        let mut parts = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/p{}", level + 1) });
            parts.insert(format!("p{level}"), json!({ "allOf": [next, next] }));
        }
        parts.insert(format!("p{levels}"), json!({}));
        json!({ "$defs": parts, "$ref": "#/$defs/p0" })
    };
    assert!(Schema::new(doubled(5), Author::Script).is_ok());
    check(
        &doubled(15),
        "the schema has more than 20000 parts with all references expanded",
    );
    check(
        &doubled(2_000),
        "the schema has 136718 bytes, over the limit of 65536",
    );
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "not": deep });
    }
    check(&deep, "the schema is nested deeper than 64 levels");
}

/// Keywords such as `enum` and `examples` have data, not schemas.
#[test]
fn server_schemas_may_have_ids_and_recursion() {
    check_lines(
        Author::Server,
        r##"
        { "$id": "https://example.com/a.json", "type": "string" } → Shape { nodes: 3, levels: 2, loops: 0 }
        { "properties": { "a": { "$ref": "#" } } } → Shape { nodes: 4, levels: 4, loops: 1 }
        { "$defs": { "a": { "items": { "$ref": "#/$defs/a" } } }, "$ref": "#/$defs/a" } → Shape { nodes: 10, levels: 7, loops: 2 }
        { "enum": [{ "$id": "x", "$ref": "y" }], "examples": [{ "$ref": "#" }] } → Shape { nodes: 8, levels: 2, loops: 0 }
        { "properties": { "examples": { "$ref": "y" } } } → the schema refers to "y", which is not a part of it; write "#/$defs/NAME""##,
    );
}

/// Circles are found beside a reference into the value, and in an unused part.
#[test]
fn reference_cycles_within_one_value_are_refused() {
    check_lines(
        Author::Server,
        r##"
        { "anyOf": [{ "$ref": "#" }] } → the schema refers to itself with "#" for the same value
        { "$defs": { "a": { "$ref": "#/%24defs/a" } }, "$ref": "#/$defs/a" } → the schema refers to itself with "#/%24defs/a" for the same value
        { "dependentSchemas": { "items": { "$ref": "#" } } } → the schema refers to itself with "#" for the same value
        { "$defs": { "b": { "not": { "$ref": "#" } } }, "properties": { "x": { "$ref": "#/$defs/b" } }, "allOf": [{ "$ref": "#/$defs/b" }] } → the schema refers to itself with "#/$defs/b" for the same value
        { "$defs": { "a": { "items": { "$ref": "#/$defs/a" } }, "b": { "not": { "$ref": "#/$defs/b" } } } } → the schema refers to itself with "#/$defs/b" for the same value"##,
    );
}

#[test]
fn long_reference_chains_count_as_nesting() {
    let mut parts = serde_json::Map::new();
    parts.insert("p0".to_owned(), json!({}));
    for level in 1..1_000 {
        let before = format!("#/$defs/p{}", level - 1);
        parts.insert(format!("p{level}"), json!({ "$ref": before }));
    }
    check(
        &json!({ "$defs": parts }),
        "the schema is nested deeper than 64 levels",
    );
}

#[test]
fn different_patterns_are_bounded() {
    let of = |count: usize| {
        let patterns = (0..count).map(|n| (format!("^{n}$"), json!({ "pattern": "^a$" })));
        json!({ "patternProperties": patterns.collect::<serde_json::Map<_, _>>() })
    };
    let error = Schema::new(of(256), Author::Server).expect_err("too many");
    let expected = "the schema has more than 256 different patterns";
    assert_eq!(error.to_string(), expected);
    let schema = Schema::new(of(255), Author::Server).expect("a schema");
    assert_eq!(schema.shape().patterns, 510);
}

#[test]
fn answers_too_long_for_patterns_are_refused() {
    let schema = json!({ "pattern": "(a|b)*a(a|b){900}$" });
    let schema = Schema::new(schema, Author::Script).expect("a schema");
    let value = "ab".repeat(1 << 20);
    let problems = schema.problems(&value.as_str().into(), value.len(), 5);
    assert_eq!(
        problems,
        ["the value is too long for the patterns of the schema"]
    );
}

#[test]
fn unevaluated_keywords_in_script_schemas_are_bounded() {
    let within = |schema: Value, _| json!({ "anyOf": [schema], "unevaluatedItems": false });
    let nested = |levels: usize| (0..levels).fold(json!(true), within);
    assert!(Schema::new(nested(4), Author::Script).is_ok());
    let error = Schema::new(nested(5), Author::Script).expect_err("too deep");
    let error = error.to_string();
    assert!(error.ends_with("on more than 4 levels"), "{error}");
}

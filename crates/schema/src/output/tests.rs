use super::*;

fn check(schema: &Value, json: &str, expected: &str) {
    let shown = match Declared::new(schema.clone()).fit(json) {
        Fit::Fits => "fits".to_owned(),
        Fit::Wrong { problems } => format!("wrong: {}", problems.join("; ")),
        Fit::Unknown(reason) => format!("unknown: {reason}"),
    };
    assert_eq!(shown, expected);
}

/// A value in each line, and the result of its validation.
fn check_values(schema: &Value, cases: &str) {
    for case in cases.trim().lines() {
        let (value, expected) = case.trim().split_once(" → ").expect(case);
        check(schema, value, expected);
    }
}

#[test]
fn values_are_checked_against_the_schema() {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" }, "s": { "type": "string", "format": "email" } },
        "required": ["n"],
    });
    check_values(
        &schema,
        r#"
        {"n":1,"s":"no mail","more":[]} → fits
        {"n":1.0} → fits
        {"n":"secret","s":2} → wrong: /n: value is not of type "integer"; /s: value is not of type "string"
        null → wrong: the value: value is not of type "object"
        {"n":1,"s":"\ud83d"} → fits
        {"n":1e400} → wrong: it cannot be read: number out of range at line 1 column 10
        {"n":1, → wrong: it cannot be read: EOF while parsing a value at line 1 column 7"#,
    );
    let none = "wrong: the value: False schema does not allow value";
    check(&json!(false), "1", none);
    check(&json!(true), "1", "fits");
}

#[test]
fn nullable_keyword_allows_null() {
    let schema = json!({
        "properties": {
            "a": { "type": "string", "nullable": true },
            "b": { "enum": ["x"], "nullable": true },
            "c": { "$ref": "#/$defs/c", "nullable": true },
            "d": { "type": "string", "nullable": false },
        },
        "$defs": { "c": { "type": "array" } },
    });
    check_values(
        &schema,
        r#"
        {"a":null,"b":null,"c":null} → fits
        {"a":"","b":"x","c":[]} → fits
        {"a":1,"b":"y","c":{},"d":null} → wrong: /a: value is not of types "null", "string"; /b: value is not one of "x" or null; /c: value is not valid under any of the schemas listed in the 'anyOf' keyword; /d: value is not of type "string""#,
    );
}

#[test]
fn unsupported_schemas_give_unknown() {
    let look_ahead = json!({ "pattern": "^(?=a)" });
    let expected = "unknown: the schema is not a valid JSON Schema, at \"/pattern\": value is not a \
                    \"regex\"";
    check(&look_ahead, "1", expected);
    let nested = json!({ "items": { "$id": "https://example.com/" } });
    check(&nested, "1", "unknown: the schema has \"$id\"; remove it");
    let long = json!({ "enum": ["x".repeat(1 << 20)] });
    let expected = "unknown: the schema has 1048589 bytes, over the limit of 1048576";
    check(&long, "1", expected);
}

#[test]
fn recursive_schemas() {
    let tree = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/Node%3Cstring%3E",
        "definitions": { "Node<string>": {
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "children": { "type": "array", "items": { "$ref": "#/definitions/Node%3Cstring%3E" } },
            },
            "required": ["name"],
        } },
    });
    check(
        &tree,
        r#"{"name":"a","children":[{"name":"b","children":[]}]}"#,
        "fits",
    );
    check(
        &tree,
        r#"{"name":"a","children":[{"children":[]}]}"#,
        r#"wrong: /children/0: "name" is a required property"#,
    );
    // The maximum depth.
    let deep = |levels: usize| {
        let (open, close) = (r#"{"name":"a","children":["#, "]}");
        format!("{}{}", open.repeat(levels), close.repeat(levels))
    };
    check(&tree, &deep(63), "fits");
    check(
        &tree,
        &deep(64),
        "wrong: it is nested deeper than 127 levels",
    );
    check(
        &tree,
        &deep(300_000),
        "wrong: it is nested deeper than 127 levels",
    );
}

#[test]
fn slow_checks_are_bounded() {
    // Each level asks twice for each of two ways, and the last is wrong.
    let doubled = json!({ "anyOf": [
        { "properties": { "a": { "$ref": "#" }, "b": { "type": "string" } }, "required": ["b"] },
        { "properties": { "a": { "$ref": "#" }, "c": { "type": "string" } }, "required": ["c"] },
        { "type": "null" },
    ] });
    let value = |levels: usize| {
        let (open, close) = (r#"{"a":"#.repeat(levels), r#","c":""}"#.repeat(levels));
        format!("{open}7{close}")
    };
    check(&doubled, &value(60), "fits");
    let wrong = |levels: usize| value(levels).replacen("\"c\"", "\"d\"", 1);
    check(
        &doubled,
        &wrong(2),
        "wrong: the value: value is not valid under any of the schemas listed in the 'anyOf' keyword",
    );
    check(&doubled, &wrong(60), "wrong: ");
    // More values than the limit.
    let numbers = json!({ "type": "array", "items": { "type": "number" } });
    check(&numbers, &format!("[{}0]", "0,".repeat(1_000_000)), "fits");
    check(
        &numbers,
        &format!("[{}0]", "0,".repeat(2_000_000)),
        "unknown: it has more than 2000000 values",
    );
    let parts: Vec<_> = (0..2_000)
        .map(|_| json!({ "items": { "type": "string" } }))
        .collect();
    check(
        &json!({ "allOf": parts }),
        &format!("[{}0]", "0,".repeat(100_000)),
        "unknown: its 100002 values are too many for the 6002 parts of the schema",
    );
    // More problems than are reported.
    check(
        &numbers,
        r#"["a","b","c","d","e","f","g"]"#,
        r#"wrong: /0: value is not of type "number"; /1: value is not of type "number"; /2: value is not of type "number"; /3: value is not of type "number"; /4: value is not of type "number""#,
    );
    check(
        &numbers,
        &format!("[{}0]", "\"\",".repeat(500_000)),
        "wrong: ",
    );
}

/// Lists of empty lists: all different, and all with the same hash.
fn trees(nodes: usize) -> Vec<String> {
    let mut of: Vec<Vec<String>> = vec![vec![String::new()]];
    for size in 1..=nodes {
        let pairs = (0..size).flat_map(|first| {
            let rest = &of[size - 1 - first];
            of[first]
                .iter()
                .flat_map(move |a| rest.iter().map(move |b| format!("[{a}],{b}")))
        });
        let forests = pairs
            .map(|forest| forest.trim_end_matches(',').to_owned())
            .collect();
        of.push(forests);
    }
    let all = of.into_iter().flatten();
    all.map(|forest| format!("[{forest}]")).collect()
}

#[test]
fn lists_with_one_hash_are_not_compared() {
    let unique = json!({ "uniqueItems": true });
    let few = trees(6);
    check(&unique, &format!("[{}]", few.join(",")), "fits");
    let many = format!("[{}]", trees(11).join(","));
    let refused = "unknown: its 1434579 values are too many to be compared with each other \
                   (\"uniqueItems\")";
    check(&unique, &many, refused);
    check(&json!({ "items": { "type": "array" } }), &many, "fits");
    // Ordinary lists may be long.
    let numbers: Vec<String> = (0..60_000).map(|n| n.to_string()).collect();
    check(&unique, &format!("[{}]", numbers.join(",")), "fits");
}

#[test]
fn texts_too_long_for_patterns_are_not_matched() {
    // An expression without a small automaton, on a text that follows all of its ways.
    let heavy = json!({ "items": { "pattern": "(a|b)*a(a|b){900}c" } });
    let text = "ab".repeat(1 << 20);
    let long = format!("[{text:?}]");
    let refused = "unknown: its 2097156 bytes are too many for the patterns of the schema";
    check(&heavy, &long, refused);
    let light = json!({ "items": { "pattern": "^[ab]+$" } });
    check(&light, &long, "fits");
    let several: Vec<Value> = (0..3)
        .map(|n| json!({ "pattern": format!("^[ab]{{{n},}}$") }))
        .collect();
    check(&json!({ "items": { "allOf": several } }), &long, refused);
}

#[test]
fn nested_unevaluated_properties_are_bounded() {
    let within = |schema: Value, _| json!({ "allOf": [schema], "unevaluatedProperties": true });
    let nested = |levels: usize| (0..levels).fold(json!({ "required": ["a"] }), within);
    check(&nested(8), r#"{"a":1}"#, "fits");
    let refused = "unknown: its 2 values are too many for the 63 parts of the schema";
    check(&nested(20), r#"{"a":1}"#, refused);
    // Each level of the value follows the loop once more.
    let looped = json!({
        "properties": { "a": { "allOf": [{ "$ref": "#" }] } },
        "unevaluatedProperties": true,
    });
    check(&looped, r#"{"a":{"a":{}}}"#, "fits");
    let deep = format!("{}{{}}{}", r#"{"a":"#.repeat(30), "}".repeat(30));
    let refused = "unknown: its 32 values are too many for the 7 parts of the schema";
    check(&looped, &deep, refused);
}

#[test]
fn stand_in_is_the_smallest_fitting_value() {
    for (schema, expected) in [
        (
            json!({
                "type": "object",
                "properties": {
                    "rows": { "type": "array", "items": { "type": "integer" } },
                    "cursor": { "type": ["string", "null"] },
                    "state": { "enum": ["draft", "sent"] },
                    "left": { "type": "integer", "minimum": 3, "multipleOf": 2 },
                    "more": { "type": "string" },
                },
                "required": ["rows", "cursor", "state", "left"],
            }),
            json!({ "rows": [], "cursor": "", "state": "draft", "left": 4 }),
        ),
        (
            json!({
                "$ref": "#/$defs/page",
                "$defs": {
                    "page": { "allOf": [
                        { "required": ["next", "share"] },
                        { "properties": { "next": { "anyOf": [
                            { "$ref": "#/$defs/page" }, { "const": "end" },
                        ] } } },
                        { "properties": {
                            "share": { "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
                        } },
                    ] },
                },
            }),
            [(); 4].iter().fold(
                json!("end"),
                |next, ()| json!({ "next": next, "share": 0.5 }),
            ),
        ),
        (
            json!({ "type": "array", "minItems": 2, "items": { "type": "string", "minLength": 1 } }),
            json!(["x", "x"]),
        ),
        (
            json!({ "type": "string", "default": "en", "minLength": 2 }),
            json!("en"),
        ),
        // A default that does not fit is not used.
        (json!({ "type": "string", "default": 7 }), json!("")),
        (
            json!({ "type": "string", "pattern": "^a", "examples": ["abc"] }),
            json!("abc"),
        ),
        (json!({}), Value::Null),
    ] {
        let made = Declared::new(schema.clone()).stand_in();
        assert_eq!(made, Some(expected), "{schema}");
    }
}

#[test]
fn stand_in_without_fitting_value_is_none() {
    let list = json!({ "$ref": "#/$defs/list" });
    for schema in [
        json!({ "type": "string", "pattern": "^[a-f]{4}$" }),
        json!({ "oneOf": [{ "type": "object" }, { "required": [] }] }),
        json!({ "type": "array", "minItems": 1_000_000_000 }),
        json!({ "type": "string", "minLength": 10_000_000 }),
        json!({ "$ref": "https://example.com/schema.json" }),
        json!({
            "$ref": "#/$defs/list",
            "$defs": { "list": { "properties": { "a": list, "b": list }, "required": ["a", "b"] } },
        }),
        json!(false),
    ] {
        assert_eq!(Declared::new(schema.clone()).stand_in(), None, "{schema}");
    }
}

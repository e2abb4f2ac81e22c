//! The emitted module, compared with the one that this test is compiled with:
//! the module compiles, and its types read and write the JSON of servers.
//! `UPDATE_EXPECT=1` writes `golden/tools.rs` again.

use std::path::Path;

use callgate_rust_types::{Tool, generate};
use expect_test::{expect, expect_file};
use serde_json::{Value, json};

#[path = "golden/tools.rs"]
#[rustfmt::skip]
#[expect(
    dead_code,
    non_snake_case,
    reason = "generated, for hosts that use more of it"
)]
mod tools;

#[test]
fn compiled_module_equals_the_generated_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = std::fs::read_to_string(folder.join("tools.json")).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let raw = &list[0];
    let types = generate(&[Tool {
        function: "logging_getLogs",
        server: raw["server"].as_str().unwrap(),
        tool: raw["name"].as_str().unwrap(),
        input: &raw["inputSchema"],
        output: raw.get("outputSchema"),
    }]);
    expect_file![folder.join("tools.rs")].assert_eq(&types.text);
    assert!(types.problems.is_empty());
}

#[test]
fn schema_without_rust_type_is_skipped_alone() {
    let input = json!({ "properties": { "a": { "$ref": "https://example.com/a.json" } } });
    let output = json!({ "type": "array", "items": { "type": "number" } });
    let nowhere = Tool {
        function: "hostile_nowhere",
        server: "hostile",
        tool: "nowhere",
        input: &input,
        output: Some(&output),
    };
    let contradiction = Tool {
        function: "type",
        tool: "contradiction",
        input: &json!({ "properties": {
            "a": { "allOf": [{ "type": "string" }, { "type": "number" }] },
            "type": { "type": ["array", "null"], "items": { "type": "string" } },
        } }),
        output: Some(&json!({ "type": "object", "required": 7 })),
        ..nowhere
    };
    let types = generate(&[nowhere, contradiction]);
    for part in [
        "pub type Input = ::serde_json::Map<String, ::serde_json::Value>;",
        "pub struct Output(pub ::std::vec::Vec<f64>);",
        "pub mod type_ {",
        "pub enum InputA {}",
        "pub type_: ::std::option::Option<::std::vec::Vec<::std::string::String>>,",
        "pub type Output = ::serde_json::Value;",
    ] {
        assert!(types.text.contains(part), "{part}: {}", types.text);
    }
    expect![[r#"
        server "hostile": the input of the tool "nowhere" has no Rust type of its own: the generator of types failed on it
        server "hostile": the output of the tool "contradiction" has no Rust type of its own: invalid type: integer `7`, expected a sequence"#]].assert_eq(&types.problems.join("\n"));
}

#[test]
fn generated_types_read_and_write_server_json() {
    use tools::logging_getLogs::{Input, Output, TOOL};

    let result = json!({
        "entries": [{ "message": "b", "fields": { "k": "v" }, "cause": { "message": "a" } }],
    });
    let output: Output = serde_json::from_value(result).unwrap();
    let entry = &output.entries[0];
    assert_eq!(TOOL, "getLogs");
    assert_eq!(entry.cause.as_ref().unwrap().message, "a");
    assert_eq!(entry.fields["k"], "v");
    let input: Input = serde_json::from_value(json!({ "level": "warn" })).unwrap();
    let expected = json!({ "level": "warn" });
    assert_eq!(serde_json::to_value(input).unwrap(), expected);
    assert!(serde_json::from_value::<Input>(json!({ "level": "loud" })).is_err());
}

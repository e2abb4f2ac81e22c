//! Declarations as they come out, for the schemas that break generators.
//! `UPDATE_EXPECT=1` writes `golden/*.d.ts` anew.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use std::path::Path;

use callgate_typegen::names::assign;
use callgate_typegen::{Detail, ToolSchema, generate};
use expect_test::expect_file;
use serde_json::Value;

/// Generates the tools in `golden/{name}.json`, as a server lists them, and
/// compares declarations and degradations with `golden/{name}.d.ts`.
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let list = list.as_array().unwrap();
    let server = |tool: &Value| tool["server"].as_str().unwrap_or("s").to_owned();
    let servers: Vec<String> = list.iter().map(server).collect();
    let pairs = || {
        let names = list.iter().map(|tool| tool["name"].as_str().unwrap());
        servers.iter().map(String::as_str).zip(names)
    };
    let names = assign(pairs());
    let tools: Vec<ToolSchema<'_>> = list
        .iter()
        .zip(pairs())
        .map(|(raw, (server, tool))| ToolSchema {
            server,
            tool,
            function: names.function(server, tool).unwrap(),
            title: raw["title"].as_str(),
            description: raw["description"].as_str(),
            input: &raw["inputSchema"],
            output: raw.get("outputSchema"),
        })
        .collect();
    let declarations = generate(&tools);
    let mut text = declarations.text(Detail::Full, |_| true);
    for degradation in declarations.degradations() {
        text.push_str(&format!("// {degradation}\n"));
    }
    expect_file![folder.join(format!("{name}.d.ts"))].assert_eq(&text);
}

#[test]
fn logging_and_ticketing() {
    check("logging");
}

#[test]
fn objects() {
    check("objects");
}

#[test]
fn unions_and_enumerations() {
    check("unions");
}

#[test]
fn references_and_recursion() {
    check("references");
}

#[test]
fn type_names_that_meet() {
    check("naming");
}

#[test]
fn documentation() {
    check("docs");
}

#[test]
fn schemas_that_break_generators() {
    check("hard");
}

#[test]
fn conditions_and_documents() {
    check("conditions");
}

#[test]
fn what_cannot_be_expressed() {
    check("degraded");
}

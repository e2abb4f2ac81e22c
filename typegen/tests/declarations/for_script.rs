//! Declarations for the check of a script: its names in full, the other functions in a line each.

use std::collections::HashSet;

use callgate_typegen::{ToolSchema, generate};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

const ALL: [&str; 2] = ["log_get", "log_put"];

/// The declarations for the check of a script that uses these names, among known functions.
#[track_caller]
fn check(names: Option<&[&str]>, known: &[&str], expected: Expect) {
    let entry = json!({ "title": "LogEntry", "type": "object", "properties": { "at": { "$ref": "#/$defs/When" } } });
    let when = json!({ "type": "object", "properties": { "unix": { "type": "number" } } });
    let with = |properties: Value| json!({ "type": "object", "properties": properties, "$defs": { "When": when } });
    let (get, put) = (
        with(json!({ "entry": entry })),
        with(json!({ "text": { "type": "string" } })),
    );
    let tool = |function, input, output| ToolSchema {
        server: "log",
        tool: function,
        function,
        title: None,
        description: Some("Not for a checker."),
        input,
        output,
    };
    let declarations = generate(&[
        tool("log_get", &put, Some(&get)),
        tool("log_put", &get, None),
    ]);
    let names = names.map(|names| names.iter().copied().collect::<HashSet<&str>>());
    expected.assert_eq(&declarations.for_script(names.as_ref(), |name| known.contains(&name)));
}

#[test]
fn named_function_brings_its_types() {
    check(
        Some(&[]),
        &ALL,
        expect![[r#"
            declare function log_get(input?: any, options?: CallOptions): Promise<any>;
            declare function log_put(input?: any, options?: CallOptions): Promise<any>;
        "#]],
    );
    check(
        Some(&["log_get"]),
        &ALL,
        expect![[r#"
            type LogEntry = { at?: When };
            type When = { unix?: number };
            declare function log_get(input?: { text?: string }, options?: CallOptions): Promise<{ entry?: LogEntry }>;
            declare function log_put(input?: any, options?: CallOptions): Promise<any>;
        "#]],
    );
    check(
        Some(&["When"]),
        &ALL,
        expect![[r#"
            type When = { unix?: number };
            declare function log_get(input?: any, options?: CallOptions): Promise<any>;
            declare function log_put(input?: any, options?: CallOptions): Promise<any>;
        "#]],
    );
    check(
        Some(&["LogEntry", "log_put", "console"]),
        &ALL,
        expect![[r#"
            type LogEntry = { at?: When };
            type When = { unix?: number };
            declare function log_put(input?: { entry?: LogEntry }, options?: CallOptions): Promise<unknown>;
            declare function log_get(input?: any, options?: CallOptions): Promise<any>;
        "#]],
    );
    check(
        None,
        &ALL,
        expect![[r#"
            type LogEntry = { at?: When };
            type When = { unix?: number };
            declare function log_get(input?: { text?: string }, options?: CallOptions): Promise<{ entry?: LogEntry }>;
            declare function log_put(input?: { entry?: LogEntry }, options?: CallOptions): Promise<unknown>;
        "#]],
    );
}

#[test]
fn unknown_function_is_not_declared() {
    for names in [None, Some(["log_get", "log_put"].as_slice())] {
        check(
            names,
            &["log_put"],
            expect![[r#"
                type LogEntry = { at?: When };
                type When = { unix?: number };
                declare function log_put(input?: { entry?: LogEntry }, options?: CallOptions): Promise<unknown>;
            "#]],
        );
    }
}

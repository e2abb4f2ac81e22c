//! Rules that can decide nothing, or decide otherwise than they say.

use callgate_policy::{Definition, Hints, KnownTool};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{NOW, known, rules, time};

fn check(lists: Value, expected: Expect) {
    let read_only = Hints {
        read_only: Some(true),
        ..Hints::default()
    };
    let definition = Definition::of(&json!({ "name": "write" }));
    let write = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "count": { "type": ["integer", "null"] },
            "options": { "type": "object", "properties": { "a/b": {} }, "additionalProperties": false },
            "open": { "type": "object" },
            "either": { "oneOf": [], "properties": {} },
        },
    });
    let tools = [
        KnownTool {
            trusted: true,
            hints: read_only,
            ..known("logging_getLogs", "logging")
        },
        known("ticketing_createIssue", "ticketing"),
        KnownTool {
            definition: Some(definition.hash()),
            input_schema: Some(&write),
            hints: read_only,
            ..known("fs_write", "fs")
        },
    ];
    let found: Vec<String> = rules(lists)
        .unmatched(tools, time(NOW))
        .iter()
        .map(ToString::to_string)
        .collect();
    expected.assert_eq(&found.join("\n"));
}

#[test]
fn rules_matching_no_tool_are_reported() {
    check(
        json!({ "allow": [
            "logging_*", "ticktng_*", "logging_getLog", "nothing_like_it", "*",
            { "tool": "fs_*", "server": "file*" },
            { "tool": "fs_*", "server": "fss" },
            { "tool": "fs_*", "trusted": true },
            { "tool": "logging_*", "trusted": true },
        ] }),
        expect![[r#"
            rule "ticktng_*" in permissions.allow matches no tool; the nearest is "ticketing_createIssue"
            rule "logging_getLog" in permissions.allow matches no tool; did you mean "logging_getLogs"?
            rule "nothing_like_it" in permissions.allow matches no tool
            rule "fs_*" (server "file*") in permissions.allow matches no tool of such a server
            rule "fs_*" (server "fss") in permissions.allow matches no tool of such a server; did you mean "fs"?
            rule "fs_*" (trusted) in permissions.allow matches no tool: it is about the servers' trust"#]],
    );
}

/// As other clients name them.
#[test]
fn names_of_other_clients_are_known() {
    let tools = [
        known("files_delete_file", "files"),
        known("my_notes_getNote", "my-notes"),
        known("git_log", "git"),
    ];
    for (written, meant) in [
        ("mcp__files__delete_file", "files_delete_file"),
        ("mcp_files_delete_file", "files_delete_file"),
        ("mcp__files__deleteFile", "files_delete_file"),
        ("files__delete_file", "files_delete_file"),
        ("filesDeleteFile", "files_delete_file"),
        ("Files_Delete_File", "files_delete_file"),
        ("delete_file", "files_delete_file"),
        ("deleteFile", "files_delete_file"),
        ("mcp__my_notes__get_note", "my_notes_getNote"),
        ("mcp__git__git_log", "git_log"),
        ("mcp__files__*", "files_*"),
        ("mcp__files", "files_*"),
        ("files", "files_*"),
        ("mcp__my_notes", "my_notes_*"),
        ("mcp__files__delete*", "files_delete*"),
        ("mcp__files__deleteF*", "files_delete_f*"),
        ("mcp__*__delete_file", "*_delete_file"),
    ] {
        let rules = rules(json!({ "deny": [written] }));
        let found = rules.unmatched(tools, time(NOW));
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = format!(
            "rule {written:?} in permissions.deny matches no tool; did you mean {meant:?}?"
        );
        assert_eq!(said, [expected]);
        assert!(found[0].forbids());
    }
    let found = rules(json!({ "ask": ["mcp__files"] })).unmatched(tools, time(NOW));
    assert!(!found[0].forbids());
}

#[test]
fn rules_by_hints_and_definitions() {
    let other = Definition::of(&json!({ "name": "other" }))
        .hash()
        .to_string();
    let same = Definition::of(&json!({ "name": "write" }))
        .hash()
        .to_string();
    check(
        json!({
            "allow": [
                { "tool": "fs_*", "annotations": { "readOnly": true } },
                { "tool": "logging_*", "annotations": { "readOnly": true } },
                { "tool": "logging_*", "annotations": { "readOnly": false } },
                { "tool": "fs_write", "definition": other },
                { "tool": "fs_write", "definition": same },
                { "tool": "fs_*", "expires": "2026-06-01T11:00:00Z" },
            ],
            "deny": [{ "tool": "logging_*", "annotations": { "destructive": true } }],
        }),
        expect![[r#"
            rule "fs_*" (readOnly: true) in permissions.allow matches no tool: hints count only of servers marked "trusted"
            rule "logging_*" (readOnly: false) in permissions.allow matches no tool with such hints
            rule "fs_write" (one definition) in permissions.allow decides nothing: the tool is not what it was when the rule was written
            rule "fs_*" (until 2026-06-01T11:00:00Z) in permissions.allow decides nothing: it expired at 2026-06-01T11:00:00Z
            rule "logging_*" (destructive: true) in permissions.deny matches no tool with such hints"#]],
    );
}

#[test]
fn rules_on_undeclared_arguments_are_reported() {
    let rule = |at: &str| json!({ "tool": "fs_write", "arguments": [{ "at": at, "equals": 1 }] });
    check(
        json!({ "allow": [
            rule("/path"), rule("/pth"), rule("/colour"), rule(""), rule("/options/a~1b"),
            rule("/options/a~1c"), rule("/open/x"), rule("/either/x"), rule("/path/x"),
        ] }),
        expect![[r#"
            rule "fs_write" (/pth = 1) in permissions.allow looks at /pth, which no tool that it matches declares; did you mean /path?
            rule "fs_write" (/colour = 1) in permissions.allow looks at /colour, which no tool that it matches declares
            rule "fs_write" (/options/a~1c = 1) in permissions.allow looks at /options/a~1c, which no tool that it matches declares; did you mean /options/a~1b?"#]],
    );
}

#[test]
fn shadowed_rules_are_reported() {
    check(
        json!({
            "allow": [
                "ticketing_*", "fs_write", "fs_*", "logging_*",
                { "tool": "fs_write", "maxCalls": 3 },
            ],
            "ask": ["ticketing_*", { "tool": "logging_*", "expires": "2026-12-31T00:00:00Z" }],
            "deny": ["*create*"],
        }
        ),
        expect![[r#"
            rule "ticketing_*" in permissions.allow never decides: rule "*create*" in permissions.deny comes first
            rule "fs_write" (3 calls) in permissions.allow never decides: rule "fs_write" in permissions.allow comes first
            rule "ticketing_*" in permissions.ask never decides: rule "*create*" in permissions.deny comes first"#]],
    );
}

#[test]
fn unmatched_rule_may_concern_unknown_tools() {
    let check = |entry: Value, expected: [bool; 3]| {
        let rules = rules(json!({ "allow": [entry] }));
        let unmatched = rules.unmatched([], time(NOW));
        let [unmatched] = unmatched.as_slice() else {
            panic!("it matches: {entry}");
        };
        let about = [("git", Some("git_")), ("fs", Some("fs_")), ("odd", None)];
        let about = about.map(|(server, prefix)| unmatched.may_be_about(server, prefix));
        assert_eq!(about, expected, "{entry}");
    };
    check(json!("git_log"), [true, false, true]);
    check(json!("g*"), [true, false, true]);
    check(json!("*_log"), [true, true, true]);
    check(json!("git_*_x"), [true, false, true]);
    check(json!("gi"), [false, false, true]);
    check(json!({ "tool": "*", "server": "f*" }), [false, true, false]);
    let expired = json!({ "tool": "*", "expires": "2026-06-01T11:00:00Z" });
    check(expired, [false; 3]);
}

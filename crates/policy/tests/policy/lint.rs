//! Rules without effect, and the warnings about them.

use callgate_policy::{Definition, Hints, UnlistedServer};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{known, rules, unmatched};

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
    let [mut logging, ticketing, mut fs] = [
        known("logging_getLogs", "logging"),
        known("ticketing_createIssue", "ticketing"),
        known("fs_write", "fs"),
    ];
    (logging.facts.trusted, logging.facts.hints) = (true, read_only);
    (fs.facts.definition, fs.facts.hints) = (Some(definition.hash()), read_only);
    fs.input_schema = Some(&write);
    let tools = [logging, ticketing, fs];
    let found = unmatched(&rules(lists), &tools, &[]);
    let found: Vec<String> = found.into_iter().map(|it| it.message).collect();
    expected.assert_eq(&found.join("\n"));
}

#[test]
fn rules_matching_no_tool_are_reported() {
    check(
        json!({ "allow": [
            "logging_*", "ticktng_*", "logging_getLog", "*",
            { "tool": "fs_*", "server": "file*" },
            { "tool": "fs_*", "server": "fss" },
            { "tool": "fs_*", "trusted": true },
            { "tool": "logging_*", "trusted": true },
        ] }),
        expect![[r#"
            rule "ticktng_*" in permissions.allow matches no tool?
            rule "logging_getLog" in permissions.allow matches no tool?
            rule "fs_*" (server "file*") in permissions.allow matches no tool of such a server
            rule "fs_*" (server "fss") in permissions.allow matches no tool of such a server; did you mean "fs"?
            rule "fs_*" (trusted) in permissions.allow matches no tool: it is about the servers' trust"#]],
    );
}

#[test]
fn deny_rule_matching_no_tool_forbids() {
    let tools = [known("fs_write", "fs")];
    for (list, entry, forbids) in [
        ("deny", json!("fs_wrte"), true),
        ("deny", json!("fs/wrte"), true),
        ("deny", json!({ "tool": "*", "server": "x" }), true),
        ("ask", json!("fs_wrte"), false),
        ("allow", json!("fs_wrte"), false),
        // No script can call it.
        ("deny", json!("map_draw"), false),
        ("deny", json!("map/draw"), false),
        // It may match at another time.
        ("deny", json!({ "tool": "*", "trusted": true }), false),
    ] {
        let found = unmatched(&rules(json!({ list: [entry] })), &tools, &[]);
        assert_eq!(found.len(), 1, "{list} {entry}");
        assert_eq!(found[0].forbids, forbids, "{list} {entry}");
    }
    let pair = rules(json!({ "deny": ["fs/write", "*/wr*"] }));
    assert_eq!(unmatched(&pair, &tools, &[]), []);
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
            rule "fs_write" (one definition) in permissions.allow decides nothing: the tool has changed since the rule was written
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
fn rule_about_unlisted_server_is_not_reported() {
    let check = |entry: Value, expected: [bool; 3]| {
        let rules = rules(json!({ "allow": [entry] }));
        let unlisted = [("git", Some("git_")), ("fs", Some("fs_")), ("odd", None)];
        let reported = unlisted.map(|(server, prefix)| {
            let unlisted = UnlistedServer { server, prefix };
            unmatched(&rules, &[], &[unlisted]).len() == 1
        });
        assert_eq!(reported, expected, "{entry}");
    };
    check(json!("git_log"), [false, true, false]);
    check(json!("g*"), [false, true, false]);
    check(json!("*_log"), [false, false, false]);
    check(json!("git_*_x"), [false, true, false]);
    check(json!("gi"), [true, true, false]);
    check(json!("git/log"), [false, true, true]);
    check(json!({ "tool": "*", "server": "f*" }), [true, false, true]);
    let expired = json!({ "tool": "*", "expires": "2026-06-01T11:00:00Z" });
    check(expired, [true; 3]);
}

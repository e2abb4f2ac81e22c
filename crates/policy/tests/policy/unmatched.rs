//! Rules that can decide nothing, or decide otherwise than they say.

use callgate_policy::{Definition, Hints, KnownTool, Verdict};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{NOW, decide, rules, time};

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
    let tool = |function, server, trusted, hints| KnownTool {
        function,
        other_names: None,
        server,
        hints,
        trusted,
        definition: None,
        input_schema: None,
    };
    let tools = [
        tool("logging_getLogs", "logging", true, read_only),
        tool(
            "ticketing_createIssue",
            "ticketing",
            false,
            Hints::default(),
        ),
        KnownTool {
            definition: Some(definition.hash()),
            input_schema: Some(&write),
            ..tool("fs_write", "fs", false, read_only)
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
fn rules_that_match_no_tool() {
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
fn rules_over_arguments_that_no_tool_has() {
    let rule = |at: &str| json!({ "tool": "fs_write", "arguments": [{ "at": at, "equals": 1 }] });
    check(
        json!({ "allow": [
            rule("/path"), rule("/pth"), rule("/colour"), rule(""), rule("/options/a~1b"),
            rule("/options/a~1c"), rule("/open/x"), rule("/either/x"), rule("/path/x"),
        ] }),
        expect![[r#"
            rule "fs_write" (/path = 1) in permissions.allow wants a number at /path, and the tools that it matches declare string there
            rule "fs_write" (/pth = 1) in permissions.allow looks at /pth, which no tool that it matches declares, and decides nothing about calls without it; did you mean /path?
            rule "fs_write" (/colour = 1) in permissions.allow looks at /colour, which no tool that it matches declares, and decides nothing about calls without it
            rule "fs_write" (the arguments = 1) in permissions.allow wants a number at the arguments, and the tools that it matches declare object there
            rule "fs_write" (/options/a~1c = 1) in permissions.allow looks at /options/a~1c, which no tool that it matches declares, and decides nothing about calls without it; did you mean /options/a~1b?"#]],
    );
}

#[test]
fn rules_that_others_come_before() {
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
fn tools_that_are_not_known_yet() {
    let check = |entry: Value, expected: [bool; 4]| {
        let rules = rules(json!({ "allow": [entry] }));
        let unmatched = rules.unmatched([], time(NOW));
        let [unmatched] = unmatched.as_slice() else {
            panic!("it matches: {entry}");
        };
        let about = [
            ("git", Some("git_"), false),
            ("git", Some("git_"), true),
            ("fs", Some("fs_"), false),
            ("odd", None, false),
        ];
        let about = about
            .map(|(server, beginning, trusted)| unmatched.may_be_about(server, beginning, trusted));
        assert_eq!(about, expected, "{entry}");
    };
    check(json!("git_log"), [true, true, false, true]);
    check(json!("g*"), [true, true, false, true]);
    check(json!("*_log"), [true, true, true, true]);
    check(json!("git_*_x"), [true, true, false, true]);
    check(json!("gi"), [false, false, false, true]);
    check(
        json!({ "tool": "*", "server": "f*" }),
        [false, false, true, false],
    );
    check(
        json!({ "tool": "git_*", "trusted": true }),
        [false, true, false, false],
    );
    let expired = json!({ "tool": "*", "expires": "2026-06-01T11:00:00Z" });
    check(expired, [false; 4]);
}

#[test]
fn rules_whose_tests_no_argument_passes() {
    let said = |tests: Value| {
        let tests = tests.as_array().expect("a list").iter();
        let tests: Vec<Value> = tests
            .map(|test| json!({ "tool": "fs_*", "arguments": test }))
            .collect();
        json!({ "allow": tests })
    };
    check(
        said(json!([
            [{ "at": "/path", "equals": "a" }, { "at": "/path", "equals": "b" }],
            [{ "at": "/path", "in": ["a", "b"] }, { "at": "/path", "in": ["c", "d"] }],
            [{ "at": "/path", "in": ["a", "b"], "prefix": "c" }],
            [{ "at": "/count", "min": 100 }, { "at": "/count", "max": 10 }],
            [{ "at": "", "equals": {} }, { "at": "", "equals": [] }],
            [{ "at": "/count", "equals": "five" }],
            [{ "at": "/count", "in": ["five", true] }],
            [{ "at": "/count", "prefix": "5" }],
            [{ "at": "/path", "max": 5 }],
            [{ "at": "", "prefix": "5" }],
        ])),
        expect![[r#"
            rule "fs_*" (/path = "a", /path = "b") in permissions.allow wants of /path what no value can be
            rule "fs_*" (/path is one of 2, /path is one of 2) in permissions.allow wants of /path what no value can be
            rule "fs_*" (/path begins with "c" and is one of 2) in permissions.allow wants of /path what no value can be
            rule "fs_*" (/count ≥ 100, /count ≤ 10) in permissions.allow wants of /count what no value can be
            rule "fs_*" (the arguments = {}, the arguments = []) in permissions.allow wants an array at the arguments, and the tools that it matches declare object there
            rule "fs_*" (/count = "five") in permissions.allow wants a text at /count, and the tools that it matches declare integer or null there
            rule "fs_*" (/count is one of 2) in permissions.allow wants a text at /count, and the tools that it matches declare integer or null there
            rule "fs_*" (/count begins with "5") in permissions.allow wants a text at /count, and the tools that it matches declare integer or null there
            rule "fs_*" (/path ≤ 5) in permissions.allow wants a number at /path, and the tools that it matches declare string there
            rule "fs_*" (the arguments begins with "5") in permissions.allow wants a text at the arguments, and the tools that it matches declare object there"#]],
    );
    check(
        said(json!([
            [{ "at": "/path", "in": ["a", "b"] }, { "at": "/path", "equals": "b" }],
            [{ "at": "/path", "equals": "b", "regex": "a|b" }],
            [{ "at": "/path", "equals": "5" }, { "at": "/path", "equals": 5 }],
            [{ "at": "/count", "min": 10 }, { "at": "/count", "max": 10 }],
            [{ "at": "/count", "in": ["five", null] }],
            [{ "at": "/count", "equals": 5, "exists": true }],
            [{ "at": "/options/a~1b", "equals": 5 }],
        ])),
        expect![[
            r#"rule "fs_*" (/path = "5", /path = 5) in permissions.allow wants a number at /path, and the tools that it matches declare string there"#
        ]],
    );
}

/// What a rule that holds calls up cannot judge, it holds up: nobody is to take it for one that
/// decides nothing.
#[test]
fn rules_that_hold_up_what_they_do_not_say() {
    let arguments = json!([
        [{ "at": "/path", "max": 5 }],
        [{ "at": "/path", "max": 5, "prefix": "/etc/" }],
        [{ "at": "/path", "max": 5, "exists": true }],
        [{ "at": "/pth", "equals": 1 }],
        [{ "at": "/colour", "exists": false }],
        [{ "at": "/colour", "equals": 1, "exists": true }],
        [{ "at": "/colour", "equals": 1 }, { "at": "/colour", "exists": true }],
        [{ "at": "/count", "min": 100 }, { "at": "/count", "max": 10 }],
        [{ "at": "/count", "min": 100, "exists": true }, { "at": "/count", "max": 10 }],
        [{ "at": "/path", "equals": "a" }, { "at": "/path", "exists": false }],
        [
            { "at": "/path", "equals": "a" }, { "at": "/path", "exists": false },
            { "at": "/path", "exists": true },
        ],
    ]);
    let arguments = arguments.as_array().expect("a list");
    let entries = arguments.iter();
    let entries: Vec<Value> = entries
        .map(|arguments| json!({ "tool": "fs_write", "arguments": arguments }))
        .collect();
    check(
        json!({ "deny": entries, "ask": [entries[0], entries[3], entries[7]] }),
        expect![[r#"
            rule "fs_write" (/path ≤ 5) in permissions.ask wants a number at /path, and the tools that it matches declare string there; it asks about calls with a value of that type there
            rule "fs_write" (/pth = 1) in permissions.ask looks at /pth, which no tool that it matches declares, and asks about calls without it; did you mean /path?
            rule "fs_write" (/count ≥ 100, /count ≤ 10) in permissions.ask wants of /count what no value can be, and asks only about calls without it, or with a value there that cannot be judged
            rule "fs_write" (/path ≤ 5) in permissions.deny wants a number at /path, and the tools that it matches declare string there; it denies calls with a value of that type there
            rule "fs_write" (/path ≤ 5 and begins with "/etc/") in permissions.deny wants a number at /path, and the tools that it matches declare string there; it denies calls with a value of that type there, unless another of its tests fails
            rule "fs_write" (/path exists and ≤ 5) in permissions.deny wants a number at /path, and the tools that it matches declare string there; it denies calls with a value of that type there, unless another of its tests fails
            rule "fs_write" (/pth = 1) in permissions.deny looks at /pth, which no tool that it matches declares, and denies calls without it; did you mean /path?
            rule "fs_write" (/colour does not exist) in permissions.deny looks at /colour, which no tool that it matches declares, and denies calls without it
            rule "fs_write" (/colour exists and = 1) in permissions.deny looks at /colour, which no tool that it matches declares, and decides nothing about calls without it
            rule "fs_write" (/colour = 1, /colour exists) in permissions.deny looks at /colour, which no tool that it matches declares, and decides nothing about calls without it
            rule "fs_write" (/count ≥ 100, /count ≤ 10) in permissions.deny wants of /count what no value can be, and denies only calls without it, or with a value there that cannot be judged
            rule "fs_write" (/count exists and ≥ 100, /count ≤ 10) in permissions.deny wants of /count what no value can be, and denies only calls with a value there that cannot be judged
            rule "fs_write" (/path = "a", /path does not exist) in permissions.deny wants of /path what no value can be, and denies only calls without it
            rule "fs_write" (/path = "a", /path does not exist, /path exists) in permissions.deny wants of /path what no value can be"#]],
    );
    // The argument that no tool declares may be sent all the same.
    let denied = |entry: &Value| {
        let rules = rules(json!({ "deny": [entry] }));
        let calls = [
            json!({ "path": "/etc/x" }),
            json!({ "path": "/tmp/x" }),
            json!({ "count": 50 }),
            json!({ "path": "a", "count": "50" }),
            json!({ "pth": 2 }),
            json!({ "path": 6 }),
            json!({ "colour": 1 }),
        ];
        calls.map(|arguments| decide(&rules, arguments).verdict == Verdict::Deny)
    };
    let (yes, no) = (true, false);
    let denials: Vec<_> = entries.iter().map(denied).collect();
    assert_eq!(
        denials,
        [
            [yes, yes, yes, yes, yes, no, yes],
            [yes, no, yes, no, yes, no, yes],
            [yes, yes, no, yes, no, no, no],
            [yes, yes, yes, yes, no, yes, yes],
            [yes, yes, yes, yes, yes, yes, no],
            [no, no, no, no, no, no, yes],
            [no, no, no, no, no, no, yes],
            [yes, yes, no, yes, yes, yes, yes],
            [no, no, no, yes, no, no, no],
            [no, no, yes, no, yes, no, yes],
            [no, no, no, no, no, no, no],
        ]
    );
}

#[test]
fn rules_that_let_through_what_they_do_not_say() {
    let rule =
        |at: &str| json!({ "tool": "fs_write", "arguments": [{ "at": at, "exists": false }] });
    check(
        json!({ "allow": [rule("/pth"), rule("/path")] }),
        expect![[
            r#"rule "fs_write" (/pth does not exist) in permissions.allow looks at /pth, which no tool that it matches declares, and allows calls without it; did you mean /path?"#
        ]],
    );
    let rules = rules(json!({ "allow": [rule("/pth")] }));
    assert_eq!(
        decide(&rules, json!({ "path": "a" })).verdict,
        Verdict::Allow
    );
}

/// A rule that decides nothing for another reason says that.
#[test]
fn rules_that_never_hold_anything_up() {
    let entry = json!({ "tool": "fs_write", "arguments": [{ "at": "/path", "max": 5 }] });
    check(
        json!({ "deny": ["fs_*"], "ask": [entry] }),
        expect![[
            r#"rule "fs_write" (/path ≤ 5) in permissions.ask never decides: rule "fs_*" in permissions.deny comes first"#
        ]],
    );
}

//! Rules with more than a pattern, the ledger, and what is said about them.

use callgate_policy::Rule;
use expect_test::expect;

use super::{check, read};

#[test]
fn rules_that_say_more_than_a_pattern() {
    check(
        r#"{ "permissions": {
  "allow": [
    "time_*",
    {
      "tool": "fs_write",
      "server": "fs*", "trusted": true,
      "arguments": [
        { "at": "/path", "prefix": "${workspaceFolder}/out/", "glob": "${workspaceFolder}/**.md" },
        { "at": "/mode", "in": ["w", "a"] },
        { "at": "/size", "min": 0, "max": 1.5e3, "exists": true },
        { "at": "/text", "equals": "${HOME}" },
        { "at": "", "regex": "x" },
      ],
      "annotations": { "readOnly": false, "destructive": false, "idempotent": true, "openWorld": false },
      "maxCalls": 10,
      "expires": "2026-12-31T18:00:00+01:00",
      "definition": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    },
  ],
  "deny": [{ "tool": "*", "annotations": { "destructive": true } }],
} }"#,
        expect![[r#"
            Allow rule "time_*" in permissions.allow
            Allow rule "fs_write" (server "fs*", trusted, /path begins with "/project/out/" and matches "/project/**.md", /mode is one of 2, /size exists and ≥ 0 and ≤ 1500.0, /text = "${HOME}", the arguments matches regex "x", readOnly: false, destructive: false, idempotent: true, openWorld: false, 10 calls, until 2026-12-31T17:00:00Z, one definition) in permissions.allow
            Deny rule "*" (destructive: true) in permissions.deny
        "#]],
    );
}

#[test]
fn rules_are_written_as_they_are_read() {
    let text = r#"{ "permissions": { "allow": [
        "time_*",
        { "tool": "fs_write", "arguments": [{ "at": "", "equals": { "path": "${HOME}", "n": 1.0 } }],
          "maxCalls": 1, "expires": "2026-12-31T17:00:00Z",
          "definition": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" },
        { "tool": "*", "trusted": false, "annotations": { "openWorld": false } }
    ] } }"#;
    let config = read("callgate.json", text).expect("a configuration");
    let rules: Vec<&Rule> = config.permissions.iter().collect();
    assert_eq!(rules.len(), 3);
    let entries: Vec<String> = rules
        .iter()
        .map(|rule| rule.to_json().to_string())
        .collect();
    let again = format!(
        r#"{{ "permissions": {{ "allow": [{}] }} }}"#,
        entries.join(",")
    );
    let again = read("callgate.json", &again).expect("a configuration");
    assert_eq!(again.permissions, config.permissions);
}

#[test]
fn mistakes_in_rules_have_their_places() {
    check(
        r#"{ "permissions": {
  "allow": [
    { "server": "x" },
    { "tool": "git-*", "maxcalls": 1, "maxCalls": 0 },
    { "tool": "*", "tool": "a" },
    { "tool": "*", "arguments": [] },
    { "tool": "*", "arguments": { "at": "/x" } },
    { "tool": "*", "arguments": [
      { "at": "path", "equals": 1 },
      { "equals": 1 },
      { "at": "/a" },
      { "at": "/a", "equal": 1 },
      { "at": "/a", "regex": "(" },
      { "at": "/a", "regex": "(a{1000}){1000}" },
      { "at": "/a", "glob": "/x/{a,b}" },
      { "at": "/a", "glob": "", "prefix": "", "in": [], "min": "1", "exists": 1 },
      { "at": "/a", "prefix": "${workspaceFolder}/../out/", "glob": "./out/*" },
      { "at": "/a", "min": 1, "min": 2 },
      7,
    ] },
    { "tool": "*", "arguments": [{ "at": "/a", "max": 1e400 }, { "at": "/b", "equals": [-1e999] }] },
    { "tool": "*", "annotations": { "readOnlyHint": true, "destructive": 1 } },
    { "tool": "*", "annotations": {}, "expires": "tomorrow", "definition": "sha1:0", "server": "" },
    { "tool": 1 },
    [],
  ],
  "deny": [{ "tool": "*", "maxCalls": 1 }, { "tool": "*", "definition": "x" }],
} }"#,
        expect![[r#"
            callgate.json:3:5: a rule has no "tool"; write a tool's generated name, or "*" for every tool
            callgate.json:4:15: pattern "git-*" can never match: generated names have "_" in place of "-"; did you mean "git_*"?
            callgate.json:4:24: unknown key "maxcalls" in a rule; did you mean "maxCalls"?
            callgate.json:4:51: "maxCalls" in a rule must be a whole number from 1 to 4294967295
            callgate.json:5:20: key "tool" stands twice in a rule; remove one
            callgate.json:6:33: "arguments" in a rule has 0 conditions; write 1 to 64, or leave it out
            callgate.json:7:33: "arguments" in a rule must be an array of objects, and this is an object
            callgate.json:9:15: "at" in a condition: "path" is no JSON pointer; did you mean "/path"?
            callgate.json:10:7: a condition has no "at"; write a JSON pointer, such as "/path"
            callgate.json:11:7: a condition says nothing of its value; write one of exists, equals, in, prefix, glob, regex, min, max
            callgate.json:12:7: a condition says nothing of its value; write one of exists, equals, in, prefix, glob, regex, min, max
            callgate.json:12:21: unknown key "equal" in a condition; did you mean "equals"?
            callgate.json:13:30: "regex" in a condition is no regular expression: unclosed group
            callgate.json:14:30: "regex" in a condition compiles to more than 1 MiB; write a shorter repetition
            callgate.json:15:29: "glob" in a condition has "{", which means nothing in a glob here; write a "regex"
            callgate.json:16:29: "glob" in a condition is empty; write what the whole text looks like
            callgate.json:16:43: "prefix" in a condition is empty; write how the text begins
            callgate.json:16:53: "in" in a condition has 0 values; write 1 to 1000
            callgate.json:16:64: "min" in a condition must be a number, and this is a string
            callgate.json:16:79: "exists" in a condition must be true or false, and this is a number
            callgate.json:17:31: "prefix" in a condition has a segment "." or "..", and no text with one can be judged; leave the segment out
            callgate.json:17:69: "glob" in a condition has a segment "." or "..", and no text with one can be judged; leave the segment out
            callgate.json:18:31: key "min" stands twice in a rule; remove one
            callgate.json:19:7: "arguments" in a rule must be an array of objects, and this is a number
            callgate.json:21:55: 1e400 in a rule is beyond any number that arguments can have; write one from -1.7e308 to 1.7e308
            callgate.json:21:89: -1e999 in a rule is beyond any number that arguments can have; write one from -1.7e308 to 1.7e308
            callgate.json:22:37: unknown key "readOnlyHint" in "annotations"; did you mean "readOnly"?
            callgate.json:22:74: "destructive" in "annotations" must be true or false, and this is a number
            callgate.json:23:35: "annotations" in a rule says nothing; write one of readOnly, destructive, idempotent, openWorld, or leave it out
            callgate.json:23:50: "expires" in a rule: "tomorrow" is no time; write one as RFC 3339 has it, such as "2026-12-31T18:00:00Z"
            callgate.json:23:76: "definition" in a rule: a definition is "sha256:" and 64 digits of 0-9 and a-f
            callgate.json:23:96: empty pattern; write a server's name, or leave "server" out
            callgate.json:24:15: "tool" in a rule must be a string, and this is a number
            callgate.json:25:5: a rule must be a pattern or an object, and this is an array
            callgate.json:27:27: "maxCalls" belongs to rules of "allow"; a rule that holds calls up is never used up
            callgate.json:27:59: "definition" belongs to rules of "allow"; a rule that holds calls up is never used up
        "#]],
    );
}

#[test]
fn the_ledger() {
    check(
        r#"{ "ledger": { "path": "logs/${PROGRAM}.jsonl", "bodies": true, "maxSize": "10MiB", "keep": 3 } }"#,
        expect![[r#"
            LedgerConfig {
                path: Some(
                    "/project/logs/node.jsonl",
                ),
                bodies: true,
                user: None,
                max_bytes: Some(
                    10485760,
                ),
                keep: Some(
                    3,
                ),
            }
        "#]],
    );
    check(
        r#"{ "ledger": { "path": "/var/log/calls.jsonl" } }"#,
        expect![[r#"
            LedgerConfig {
                path: Some(
                    "/var/log/calls.jsonl",
                ),
                bodies: false,
                user: None,
                max_bytes: None,
                keep: None,
            }
        "#]],
    );
    check(
        r#"{ "ledger": { "path": "x", "keep": 1001 } }"#,
        expect![[r#"
            callgate.json:1:36: "keep" in "ledger" must be at most 1000
        "#]],
    );
    check(
        r#"{ "ledger": { "path": "", "bodies": "yes", "maxSize": 1, "file": "x" } }"#,
        expect![[r#"
            callgate.json:1:23: "path" in "ledger" is empty; name a file, or leave "ledger" out
            callgate.json:1:37: "bodies" in "ledger" must be true or false, and this is a string
            callgate.json:1:55: "maxSize" in "ledger" must be a string such as "1MiB", and this is a number
            callgate.json:1:58: unknown key "file" in "ledger"; remove it, or use one of path, bodies, maxSize, keep
        "#]],
    );
    check(
        r#"{ "ledger": {} }"#,
        expect![[r#"
        callgate.json:1:3: "ledger" has no "path"; name the file that calls are written to
    "#]],
    );
    check(
        r#"{ "ledger": { "path": 1 } }"#,
        expect![[r#"
        callgate.json:1:23: "path" in "ledger" must be a string, and this is a number
    "#]],
    );
    check(
        r#"{ "ledger": "calls.jsonl" }"#,
        expect![[r#"
        callgate.json:1:13: "ledger" in the file must be an object, and this is a string
    "#]],
    );
}

//! Entries that are no rule, and what is said about them.

use callgate_policy::{Effect, Rule};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(entry: Value, expected: Expect) {
    let said = match Rule::parse(Effect::Allow, &entry) {
        Ok(rule) => rule.to_string(),
        Err(problems) => {
            let lines = problems.iter().map(|problem| {
                let key = if problem.on_key { " (the key)" } else { "" };
                format!("{:?}{key}: {problem}", problem.at)
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    expected.assert_eq(&said);
}

#[test]
fn a_rule_reads_as_it_is() {
    check(
        json!("git_*"),
        expect![[r#"rule "git_*" in permissions.allow"#]],
    );
    check(
        json!({
            "tool": "fs_*", "server": "fs", "trusted": true,
            "arguments": [
                { "at": "/a", "equals": { "long": "x".repeat(100) } },
                { "at": "", "exists": true },
                { "at": "/b", "min": 1, "max": 2 },
                { "at": "/c", "in": [1, 2], "exists": true },
                { "at": "/d", "glob": "*.md", "regex": "a+", "prefix": "é\n" },
            ],
            "annotations": { "readOnly": true, "openWorld": false },
            "maxCalls": 1, "expires": "2026-12-31T18:00:00Z",
            "definition": format!("sha256:{}", "0".repeat(64)),
        }),
        expect![[
            r#"rule "fs_*" (server "fs", trusted, /a = {"long":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…, the arguments exists, /b ≥ 1 and ≤ 2, /c exists and is one of 2, /d begins with "é\n" and matches "*.md" and matches regex "a+", readOnly: true, openWorld: false, 1 call, until 2026-12-31T18:00:00Z, one definition) in permissions.allow"#
        ]],
    );
}

#[test]
fn each_mistake_is_told_with_its_place() {
    check(
        json!(1),
        expect!["[]: a rule must be a pattern or an object, and this is a number"],
    );
    check(
        json!({}),
        expect![[
            r#"[]: a rule has no "tool"; write a tool's generated name, or "*" for every tool"#
        ]],
    );
    check(
        json!({
            "tool": "", "servr": 1, "trusted": "yes", "maxCalls": 1.5, "expires": 1,
            "arguments": [{ "at": "/a~", "prefix": 1, "regex": "x".repeat(1001) }, 1],
            "annotations": { "readonly": true, "destructiveHint": true },
        }),
        expect![[r#"
            [Key("servr")] (the key): unknown key "servr" in a rule; did you mean "server"?
            [Key("tool")]: empty pattern; write a tool's generated name, or "*" for every tool
            [Key("trusted")]: "trusted" in a rule must be true or false, and this is a string
            [Key("maxCalls")]: "maxCalls" in a rule must be a whole number from 1 to 4294967295
            [Key("expires")]: "expires" in a rule must be a string, and this is a number
            [Key("arguments"), Index(0), Key("at")]: "at" in a condition: it is not a JSON pointer; write "~0" for "~" and "~1" for "/" in a name
            [Key("arguments"), Index(0), Key("prefix")]: "prefix" in a condition must be a string, and this is a number
            [Key("arguments"), Index(0), Key("regex")]: "regex" in a condition has 1001 bytes; the most is 1000
            [Key("arguments"), Index(1)]: "arguments" in a rule must be an array of objects, and this is a number
            [Key("annotations"), Key("readonly")] (the key): unknown key "readonly" in "annotations"; did you mean "readOnly"?
            [Key("annotations"), Key("destructiveHint")] (the key): unknown key "destructiveHint" in "annotations"; did you mean "destructive"?"#]],
    );
    check(
        json!({ "tool": "*", "arguments": vec![json!({ "at": "", "exists": true }); 65] }),
        expect![[
            r#"[Key("arguments")]: "arguments" in a rule has 65 conditions; write 1 to 64, or leave it out"#
        ]],
    );
}

#[test]
fn only_what_lets_through_can_be_used_up() {
    for effect in [Effect::Ask, Effect::Deny] {
        for (key, value) in [
            ("maxCalls", json!(1)),
            ("definition", json!(format!("sha256:{}", "0".repeat(64)))),
        ] {
            let problems = Rule::parse(effect, &json!({ "tool": "*", key: value }));
            let problems = problems.expect_err(key);
            assert!(
                problems[0].on_key && problems[0].message.contains(key),
                "{problems:?}"
            );
        }
    }
}

#[test]
fn a_prefix_or_glob_that_no_text_can_be_judged_by_is_none() {
    let check = |test: &str, text: &str, taken: bool| {
        for effect in [Effect::Allow, Effect::Ask, Effect::Deny] {
            let entry = json!({ "tool": "*", "arguments": [{ "at": "/path", test: text }] });
            let said = Rule::parse(effect, &entry).err().map(|problems| {
                let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
                said.join("\n")
            });
            let expected = (!taken).then(|| {
                format!(
                    "\"{test}\" in a condition has a segment \".\" or \"..\", and no text with \
                     one can be judged; leave the segment out"
                )
            });
            assert_eq!(said, expected, "{test} {text:?}");
        }
    };
    for text in [
        "/a/../b/",
        "../",
        "./b",
        "/a/./b",
        "/a/%2e%2E/",
        "/a/.. /b",
        r"C:\..\x",
    ] {
        check("prefix", text, false);
    }
    // The last segment may go on.
    for text in ["/a/.", "/a/..", "..", "/a/.b/", "/a/.../", "/a"] {
        check("prefix", text, true);
    }
    for text in ["/a/../b/**", "./*", "*/.", "/a/..", "**/%2e/x"] {
        check("glob", text, false);
    }
    for text in ["**/.env", "/a/.*/b", "/a/.?", "**./x", "/a/..*", "?./x"] {
        check("glob", text, true);
    }
}

#[test]
fn tests_that_nothing_passes_are_refused() {
    check(
        json!({ "tool": "*", "arguments": [
            { "at": "/a", "min": 100, "max": 10 },
            { "at": "/b", "exists": false, "prefix": "x" },
            { "at": "/c", "min": 10, "max": 10.0 },
        ] }),
        expect![[r#"
            [Key("arguments"), Index(0)]: a condition has "min" 100 above "max" 10, and no number is both; swap them
            [Key("arguments"), Index(1)]: a condition says "exists": false and tests the value, too; leave "exists" out, or the other tests"#]],
    );
}

#[test]
fn no_key_stands_twice_in_a_text() {
    let check = |text: &str, expected: Expect| {
        let said = match Rule::parse_json(Effect::Deny, text) {
            Ok(rule) => rule.to_json().to_string(),
            Err(problems) => {
                let problems = problems.iter();
                let problems: Vec<_> = problems
                    .map(|problem| format!("{:?}: {problem}", problem.at))
                    .collect();
                problems.join("\n")
            }
        };
        expected.assert_eq(&said);
    };
    check(r#""fs_*""#, expect![[r#""fs_*""#]]);
    check(r#" { "tool": "fs_*" } "#, expect![[r#""fs_*""#]]);
    // The same name in several objects is none twice.
    check(
        r#"{ "tool": "*", "arguments": [
            { "at": "/a", "in": [null, true, -1, 1.5, { "at": 1 }] }, { "at": "/b", "exists": true }
        ] }"#,
        expect![[
            r#"{"tool":"*","arguments":[{"at":"/a","in":[null,true,-1,1.5,{"at":1}]},{"at":"/b","exists":true}]}"#
        ]],
    );
    check(
        r#"{ "tool": "fs_*", "tool": "git_*" }"#,
        expect![[r#"[Key("tool")]: key "tool" stands twice in a rule; remove one"#]],
    );
    check(
        r#"{ "tool": "*", "arguments": [
            { "at": "/a", "equals": [{ "b": 1, "\u0062": 2 }] }, { "at": "/a", "at": "/b", "at": "/c" }
        ] }"#,
        expect![[r#"
            [Key("arguments"), Index(0), Key("equals"), Index(0), Key("b")]: key "b" stands twice in a rule; remove one
            [Key("arguments"), Index(1), Key("at")]: key "at" stands twice in a rule; remove one
            [Key("arguments"), Index(1), Key("at")]: key "at" stands twice in a rule; remove one"#]],
    );
    check(
        r#"{ "tool": "fs_*" } {}"#,
        expect!["[]: it is not JSON: trailing characters at line 1 column 20"],
    );
    check(
        r#"{ "tool": "fs_*", "tool" }"#,
        expect!["[]: it is not JSON: expected `:` at line 1 column 26"],
    );
}

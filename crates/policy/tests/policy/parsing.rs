//! Entries that are no rule, and what is said about them.

use callgate_policy::{Effect, Rule};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn check(entry: Value, expected: Expect) {
    let said = match Rule::parse(Effect::Allow, &entry) {
        Ok(rule) => rule.to_string(),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&said);
}

#[test]
fn rule_is_displayed_with_its_conditions() {
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
fn malformed_rule_entry_is_refused() {
    let of = |key: &str, value: Value| json!({ "tool": "*", key: value });
    let test = |test: Value| of("arguments", json!([test]));
    let many = vec![json!({ "at": "", "exists": true }); 65];
    let entries = [
        json!(1),
        json!({}),
        json!({ "tool": "" }),
        of("servr", json!(1)),
        of("trusted", json!("yes")),
        of("maxCalls", json!(1.5)),
        of("maxCalls", json!(0)),
        of("expires", json!("tomorrow")),
        of("definition", json!("sha256:0")),
        of("annotations", json!({ "readonly": true })),
        of("arguments", many.into()),
        test(json!(1)),
        test(json!({ "exists": true })),
        test(json!({ "at": "/a" })),
        test(json!({ "at": "/a~", "exists": true })),
        test(json!({ "at": "/a", "prefix": 1 })),
        test(json!({ "at": "/a", "prefix": "" })),
        test(json!({ "at": "/a", "in": [] })),
        test(json!({ "at": "/a", "regex": "x".repeat(1001) })),
        test(json!({ "at": "/a", "min": 100, "max": 10 })),
        test(json!({ "at": "/a", "exists": false, "prefix": "x" })),
    ];
    let error = |entry| {
        Rule::parse(Effect::Allow, entry)
            .expect_err("no rule")
            .to_string()
    };
    let errors: Vec<String> = entries.iter().map(error).collect();
    expect![[r#"
        a rule must be a pattern or an object
        missing field `tool`
        empty pattern; write a tool's generated name, or "*" for every tool
        unknown field `servr`, expected one of `tool`, `server`, `trusted`, `arguments`, `annotations`, `maxCalls`, `expires`, `definition`
        invalid type: string "yes", expected a boolean
        invalid type: floating point `1.5`, expected u32
        "maxCalls" in a rule must be a whole number above zero
        "tomorrow" is not a time; write one as RFC 3339 has it, such as "2026-12-31T18:00:00Z"
        a definition is "sha256:" and 64 digits of 0-9 and a-f
        unknown field `readonly`, expected one of `readOnly`, `destructive`, `idempotent`, `openWorld`
        it has 65 conditions; write 1 to 64, or leave it out
        invalid type: integer `1`, expected struct Condition
        missing field `at`
        the condition at "/a" has no test; write one of exists, equals, in, prefix, glob, regex, min, max
        it is not a JSON pointer; write "~0" for "~" and "~1" for "/" in a name
        invalid type: integer `1`, expected a string
        it is empty; write how the text begins
        the condition at "/a" has 0 values in "in"; write 1 to 1000
        it has 1001 bytes; the most is 1000
        the condition at "/a" has "min" 100 above "max" 10, and no number is both; swap them
        the condition at "/a" says "exists": false and tests the value, too; leave "exists" out, or the other tests"#]]
    .assert_eq(&errors.join("\n"));
}

#[test]
fn only_allow_rules_take_max_calls_and_definition() {
    for effect in [Effect::Ask, Effect::Deny] {
        for (key, value) in [
            ("maxCalls", json!(1)),
            ("definition", json!(format!("sha256:{}", "0".repeat(64)))),
        ] {
            let error = Rule::parse(effect, &json!({ "tool": "*", key: value }));
            let error = error.expect_err(key).to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}

/// The last segment of a prefix may go on.
#[test]
fn prefix_or_glob_with_dot_segments_is_refused() {
    for (test, taken, texts) in [
        (
            "prefix",
            false,
            r"/a/../b/ ../ ./b /a/./b /a/%2e%2E/ /a/..\u{a0}/b C:\..\x",
        ),
        ("prefix", true, "/a/. /a/.. .. /a/.b/ /a/.../ /a"),
        ("glob", false, "/a/../b/** ./* */. /a/.. **/%2e/x"),
        ("glob", true, "**/.env /a/.*/b /a/.? **./x /a/..* ?./x"),
    ] {
        for text in texts.split(' ') {
            for effect in [Effect::Allow, Effect::Ask, Effect::Deny] {
                let text = text.replace(r"\u{a0}", "\u{a0}");
                let entry = json!({ "tool": "*", "arguments": [{ "at": "/path", test: text }] });
                let said = Rule::parse(effect, &entry).err();
                let is_refused = said.is_some_and(|error| error.to_string().contains("segment"));
                assert_eq!(is_refused, !taken, "{test} {text:?}");
            }
        }
    }
}

#[test]
fn rule_text_is_parsed_like_a_file_entry() {
    let check = |text: &str, expected: Expect| {
        let said = match Rule::parse_json(Effect::Deny, text) {
            Ok(rule) => rule.to_json().to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&said);
    };
    check(r#" { "tool": "fs_*" } "#, expect![[r#""fs_*""#]]);
    check(
        r#"{ "tool": "*", "arguments": [
            { "at": "/a", "in": [null, true, -1, 1.5, { "at": 1 }] }, { "at": "/b", "equals": null }
        ] }"#,
        expect![[
            r#"{"tool":"*","arguments":[{"at":"/a","in":[null,true,-1,1.5,{"at":1}]},{"at":"/b","equals":null}]}"#
        ]],
    );
    check(
        r#"{ "tool": "fs_*", "tool": "git_*" }"#,
        expect!["duplicate field `tool` at line 1 column 24"],
    );
    check(
        r#"{ "tool": "fs_*" } {}"#,
        expect!["trailing characters at line 1 column 20"],
    );
    check(
        r#"{ "tool": "fs-*" }"#,
        expect![[
            r#"pattern "fs-*" can never match: generated names have "_" in place of "-"; did you mean "fs_*"? at line 1 column 18"#
        ]],
    );
}

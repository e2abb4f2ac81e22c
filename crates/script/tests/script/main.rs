//! Scripts and types, and the code, the schemas or the errors for them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod checkable;
mod limits;
mod readings;
mod strange;

use std::fmt::Write as _;
use std::path::Path;

use callgate_script::{Mention, json_schema, prepare};
use expect_test::{Expect, expect, expect_file};

/// Maximum ranges in the source map of code whose types are blanked: before the author's text, at the
/// start of the value, in the author's text, after it.
const IN_PLACE: usize = 4;

/// The outcome of [`prepare`] as text.
fn rendered(source: &str) -> String {
    let mut out = String::new();
    match prepare(source) {
        Ok(prepared) => {
            let is_moved = prepared.source_map.len() > IN_PLACE;
            let moved = if is_moved { ", printed anew" } else { "" };
            writeln!(out, "{:?}{moved}", prepared.form).unwrap();
            // Dots, so that blanks at the end of a line can be seen.
            let code = prepared.code.replace(' ', "·").replace('\r', "␍");
            writeln!(out, "{code}").unwrap();
            for mention in &prepared.mentions.tools {
                let Mention {
                    name, line, column, ..
                } = mention;
                let how = if mention.called { "calls" } else { "names" };
                writeln!(out, "{how} {name} at {line}:{column}").unwrap();
            }
            if prepared.mentions.dynamic {
                writeln!(out, "names others at run time").unwrap();
            }
            if prepared.mentions.global {
                writeln!(out, "may read all globals").unwrap();
            }
        }
        Err(error) => writeln!(out, "{:?}: {error}", error.kind()).unwrap(),
    }
    out
}

#[track_caller]
fn check(source: &str, expected: Expect) {
    expected.assert_eq(&rendered(source));
}

/// Checks the cases of a file: a title, a text, and its outcome. `UPDATE_EXPECT=1` writes the
/// outcomes again.
#[track_caller]
fn check_cases(file: &str, render: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/script/cases/{file}.txt"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut out = String::new();
    for case in format!("\n{text}").split("\n=== ").skip(1) {
        let (title, case) = case.split_once('\n').unwrap();
        let (text, _) = case.split_once("\n---\n").unwrap();
        writeln!(
            out,
            "=== {title}\n{text}\n---\n{}",
            render(text).trim_end_matches('\n')
        )
        .unwrap();
    }
    expect_file![path].assert_eq(&out);
}

fn schema_of(text: &str) -> String {
    match json_schema(text) {
        Ok(schema) => schema.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn cases() {
    for file in ["fences", "forms", "mentions", "refusals", "syntax"] {
        check_cases(file, rendered);
    }
    check_cases("types", schema_of);
}

#[test]
fn long_or_deep_types_are_refused() {
    let long = |bytes: usize| format!("the type has {bytes} bytes, over the limit of 8192");
    let deep = "the type is nested deeper than 32 levels".to_owned();
    for (text, expected) in [
        (format!("'{}'", "x".repeat(20_000)), long(20_002)),
        (format!("string{}", "[]".repeat(40)), deep),
        ("(".repeat(15_000), long(15_000)),
        ("readonly ".repeat(1_500) + "1", long(13_501)),
    ] {
        assert_eq!(schema_of(&text), expected);
    }
}

#[test]
fn carriage_returns_and_first_lines() {
    check(
        "```typescript\r\nf();\r\ng()\r\n```\r\n",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            ·············␍
            f();␍
            g()␍
            ···␍

            })
            names f at 2:1
            names g at 3:1
        "#]],
    );
    check(
        "\u{feff}#!/usr/bin/env callgate\nf(); g()",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        ·······················
        f();·g()
        })
        names f at 2:1
        names g at 2:6
    "#]],
    );
}

#[test]
fn parsable_prose_before_code_is_refused() {
    for prose in ["Sure!", "Here:", "// x", "run", "Sure!\nHere:"] {
        let error = prepare(&format!("{prose}\n```ts\nreturn 5\n```")).expect_err(prose);
        assert_eq!(
            (error.line(), error.column()),
            (Some(1), Some(1)),
            "{prose}"
        );
        let expected = "there is text before the code block; send the code alone";
        assert_eq!(error.message(), expected, "{prose}");
    }
    // A line of a text that looks like a fence.
    let text = "const markdown = String.raw`\n${'`'}``ts\n```;\nreturn markdown";
    assert!(prepare(text).is_ok());
}

#[test]
fn positions_in_texts_of_all_kinds() {
    check(
        "f()\r\ng(日本 as 日本);\r\n\tlet x: 😀 = 1",
        expect![[r#"
            Syntax: 3:9: unexpected character '😀'
        "#]],
    );
    check(
        "f(); \u{2028}g(); \u{2029}\tlet '日本😀' = ]",
        expect![[r#"
            Syntax: 3:2: `let` cannot be used as an identifier in strict mode (and 1 more error)
        "#]],
    );
    check(
        "\u{feff}let = 1",
        expect![[r#"
            Syntax: 1:1: `let` cannot be used as an identifier in strict mode
        "#]],
    );
    check(
        &format!(
            "let a = \"{}\"; let = 2; {}",
            "x".repeat(200),
            "y();".repeat(40)
        ),
        expect![[r#"
            Syntax: 1:213: `let` cannot be used as an identifier in strict mode
        "#]],
    );
    check(
        "let \u{1b}[31m = '\u{202e}'",
        expect![[r#"
            Syntax: 1:1: `let` cannot be used as an identifier in strict mode (and 1 more error)
        "#]],
    );
}

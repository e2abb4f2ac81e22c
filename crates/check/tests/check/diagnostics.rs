//! Each kind of type error, with its exact message.

use std::fmt::Write as _;
use std::path::Path;

use expect_test::{expect, expect_file};

use crate::support;

const TOOLS: &str = include_str!("diagnostics.d.ts");

/// The cases of `diagnostics.txt`: a title, a script, and its type errors. `UPDATE_EXPECT=1`
/// rewrites the errors.
#[test]
fn cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check/diagnostics.txt");
    let cases = std::fs::read_to_string(&path).expect("cases");
    let mut out = String::new();
    for case in format!("\n{cases}").split("\n=== ").skip(1) {
        let (title, case) = case.split_once('\n').expect("a title");
        let (script, _) = case.split_once("\n---\n").expect("a script");
        let said = support::check(TOOLS, script);
        writeln!(out, "=== {title}\n{script}\n---\n{}", said.trim_end()).expect("a string");
    }
    expect_file![path].assert_eq(&out);
}

#[test]
fn at_most_ten_are_shown() {
    let said = support::check(TOOLS, &"undefined_name;\n".repeat(14));
    assert_eq!(said.lines().count(), 11);
    assert!(said.ends_with("and 4 more\n"), "{said}");
}

#[test]
fn terminal_control_characters_are_escaped() {
    let script =
        "const x: \"\\u001b[31m\\u202e\" = \"b\"; ({ \"a\\u001bb\": 1 }) satisfies { c: 1 };";
    expect![[r#"
        1:7 type `"b"` is not assignable to type `"\u001B[31m�"`
        1:39 object literal may only specify known properties, and `"a\u001bb"` does not exist in type `{ c: 1; }`
    "#]]
    .assert_eq(&support::check(TOOLS, script));
}

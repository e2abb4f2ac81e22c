//! Golden declarations of the schemas that break generators. `UPDATE_EXPECT=1` rewrites
//! `golden/*.d.ts`.

use std::path::Path;

use callgate_typegen::Detail;
use expect_test::expect_file;
use serde_json::Value;

use crate::declare;

/// Generates the tools in `golden/{name}.json`, as a server lists them, and
/// compares declarations and degradations with `golden/{name}.d.ts`.
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/declarations/golden");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let declarations = declare("s", list.as_array().unwrap());
    let mut text = declarations.text(Detail::Full, |_| true);
    for degradation in declarations.degradations() {
        text.push_str(&format!("// {degradation}\n"));
    }
    expect_file![folder.join(format!("{name}.d.ts"))].assert_eq(&text);
}

#[test]
fn declarations_are_the_golden_ones() {
    for name in [
        "logging",
        "objects",
        "unions",
        "references",
        "naming",
        "docs",
        "hard",
        "conditions",
        "degraded",
        "integers",
    ] {
        check(name);
    }
}

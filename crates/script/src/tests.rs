//! Scripts, and what is made of them or said about them.

mod forms;
mod limits;
mod mentions;
mod refusals;
mod syntax;

use std::fmt::Write as _;

use expect_test::Expect;

use super::*;

/// Prepares a script and renders what comes out.
#[track_caller]
fn check(source: &str, expected: Expect) {
    let mut out = String::new();
    match prepare(source) {
        Ok(prepared) => {
            let moved = if prepared.exact_positions {
                ""
            } else {
                ", positions moved"
            };
            writeln!(out, "{:?}{moved}", prepared.form).unwrap();
            // Dots, so that blanks at the end of a line can be seen.
            let code = prepared.code.replace(' ', "·").replace('\r', "␍");
            writeln!(out, "{code}").unwrap();
            for Mention { name, line, column } in &prepared.named.tools {
                writeln!(out, "names {name} at {line}:{column}").unwrap();
            }
            if prepared.named.dynamic {
                writeln!(out, "names others at run time").unwrap();
            }
        }
        Err(error) => writeln!(out, "{:?}: {error}", error.kind()).unwrap(),
    }
    expected.assert_eq(&out);
}

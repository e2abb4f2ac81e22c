//! Scripts, and what is made of them or said about them.

mod fences;
mod forms;
mod limits;
mod mentions;
mod positions;
mod refusals;
mod strange;
mod syntax;

use std::fmt::Write as _;

use expect_test::Expect;

use super::*;

/// The most stretches of code whose types are blanked: in front, where the value
/// begins, the author's, behind.
const IN_PLACE: usize = 4;

/// Prepares a script and renders what comes out.
#[track_caller]
fn check(source: &str, expected: Expect) {
    let mut out = String::new();
    match prepare(source) {
        Ok(prepared) => {
            let moved = if prepared.stretches.len() <= IN_PLACE {
                ""
            } else {
                ", printed anew"
            };
            writeln!(out, "{:?}{moved}", prepared.form).unwrap();
            // Dots, so that blanks at the end of a line can be seen.
            let code = prepared.code.replace(' ', "·").replace('\r', "␍");
            writeln!(out, "{code}").unwrap();
            for mention in &prepared.named.tools {
                let Mention {
                    name,
                    line,
                    column,
                    called,
                } = mention;
                let how = if *called { "calls" } else { "names" };
                writeln!(out, "{how} {name} at {line}:{column}").unwrap();
            }
            if prepared.named.dynamic {
                writeln!(out, "names others at run time").unwrap();
            }
            if prepared.named.global {
                writeln!(out, "may read all globals").unwrap();
            }
        }
        Err(error) => writeln!(out, "{:?}: {error}", error.kind()).unwrap(),
    }
    expected.assert_eq(&out);
}

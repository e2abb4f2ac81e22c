//! Run-time errors point to the author's own line and column: in scripts whose
//! types are blanked in place, and in scripts that are printed again.

use callgate_tests::{Workbench, odd};
use expect_test::{Expect, expect};
use serde_json::json;

/// The output of `run` for a script: stdout, then stderr up to the calls.
fn ran(script: &str) -> String {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "allow": ["odd_echo", "odd_fails"] },
    }));
    // The type check is off, so that the errors come from the run.
    let ran = bench.run(script, &["--check=off"]);
    let error = ran.stderr.split("calls: ").next().unwrap_or_default();
    format!("{}--- stderr\n{error}", ran.stdout)
}

/// Runs the lines between types, which are blanked, and between enums, which cannot be:
/// both outputs have the same positions.
#[track_caller]
fn check_both(lines: &str, expected: Expect) {
    let blanked = ran(&format!("type E = 1;\n{lines}\ntype F = 2"));
    let printed = ran(&format!("enum E {{ A }}\n{lines}\nenum F {{ B }}"));
    let shown = |text: &str| text.replace("enum E { A }", "").replace("type E = 1;", "");
    assert_eq!(shown(&blanked), shown(&printed));
    expected.assert_eq(&blanked);
}

#[test]
fn stack_traces_in_scripts_have_source_positions() {
    check_both(
        "const make = (m: string): Error => new   Error(m, { cause: new TypeError('why') });
console.debug(make('shown'));
console.log(make('read').stack!.split('\\n')[1]);
throw   new AggregateError([make('a'), make('b')], 'both')",
        expect![[r#"
            Error: shown
                at make (stdin.ts:2:36)
                at stdin.ts:3:15 {
              [cause]: TypeError: why
                  at make (stdin.ts:2:60)
                  at stdin.ts:3:15
            }
                at make (stdin.ts:2:36)
            --- stderr
            error: AggregateError: both
              --> stdin.ts:5:9
              5 | throw   new AggregateError([make('a'), make('b')], 'both')
                |         ^
              at stdin.ts:5:9
              Caused by: Error: a
              at make (stdin.ts:2:36)
              at stdin.ts:5:29
              Caused by: TypeError: why
              at make (stdin.ts:2:60)
              at stdin.ts:5:29
              Caused by: Error: b
              at make (stdin.ts:2:36)
              at stdin.ts:5:40
        "#]],
    );
    check_both(
        "await Promise.any([Promise.reject(new   Error('one'))])",
        expect![[r#"
            --- stderr
            error: AggregateError: All promises were rejected
              --> stdin.ts:2:35
              2 | await Promise.any([Promise.reject(new   Error('one'))])
                |                                   ^
              Caused by: Error: one
              at stdin.ts:2:35
        "#]],
    );
}

#[test]
fn error_positions_account_for_wide_characters_and_tabs() {
    check_both(
        "/* 日本 */\tconst 値: string = '😀';\tconst f = (s: string) =>\t{ throw   new Error(s) };\tf(値);",
        expect![[r#"
            --- stderr
            error: Error: 😀
              --> stdin.ts:2:69
              2 | /* 日本 */	const 値: string = '😀';	const f = (s: string) =>	{ throw   new Error(s) };	f(値);
                |         	                      	                        	          ^
              at f (stdin.ts:2:69)
              at stdin.ts:2:85
        "#]],
    );
}

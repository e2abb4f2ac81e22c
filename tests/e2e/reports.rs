//! The report's text, and its JSON, for each way a run can end.

use callgate_tests::{Workbench, odd};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// What `run` prints for a script, in the order stdout, stderr, with times out
/// of it.
#[track_caller]
fn check(script: &str, flags: &[&str], expected: Expect) {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "allow": ["odd_echo", "odd_fails", "odd_rejects"], "deny": ["odd_text"] },
    }));
    let ran = bench.run(script, flags);
    let times = without_times(&ran.stderr);
    expected.assert_eq(&format!("{}--- stderr\n{times}", ran.stdout));
}

/// `12 ms` becomes `_ ms`.
fn without_times(text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    for index in 1..words.len() {
        let is_time = words[index].starts_with("ms") && words[index - 1].parse::<f64>().is_ok();
        if is_time {
            words[index - 1] = "_";
        }
    }
    words.join(" ")
}

#[test]
fn a_script_that_says_nothing() {
    check("1 + 1", &[], expect![[""]]);
}

#[test]
fn values_and_output() {
    check(
        "console.log(new Map([['a', { b: [1, 2] }]]), new Set([1]), undefined, null, -0, 1n);
         console.error('to the same output');
         return { an: 'object' }",
        &[],
        expect![[""]],
    );
}

#[test]
fn an_uncaught_error_shows_the_line_and_the_calls() {
    check(
        "const rows = await odd_echo({ rows: [] });
function first(list: unknown[]) {
  return (list[0] as { name: string }).name;
}
console.log('looking');
first(rows.rows);",
        &[],
        expect![[""]],
    );
}

#[test]
fn an_uncaught_tool_error_shows_what_the_server_said() {
    check(
        "await odd_echo({});\nawait odd_fails({});",
        &[],
        expect![[""]],
    );
}

#[test]
fn an_uncaught_protocol_error() {
    check(
        "await odd_rejects({ code: -32000, message: 'no such row' })",
        &[],
        expect![[""]],
    );
}

#[test]
fn an_uncaught_denial_names_the_rule() {
    check("await odd_text({ text: 'a' })", &[], expect![[""]]);
}

#[test]
fn a_denial_without_anybody_to_ask() {
    check("await odd_image({})", &[], expect![[""]]);
}

#[test]
fn a_name_that_is_nothing() {
    check("await odd_ehco({})", &[], expect![[""]]);
}

#[test]
fn a_computed_name_that_is_no_tool() {
    check(
        "await mcp.callTool('odd_' + 'ehco', {})",
        &[],
        expect![[""]],
    );
}

#[test]
fn a_rejected_promise_nobody_waits_for() {
    check(
        "Promise.reject(new RangeError('forgotten'));\nawait new Promise((r) => setTimeout(r, 10));",
        &[],
        expect![[""]],
    );
}

#[test]
fn a_thrown_value_that_is_no_error() {
    check("throw { code: 7 }", &[], expect![[""]]);
}

#[test]
fn an_error_with_a_cause() {
    check(
        "throw new Error('outer', { cause: new TypeError('inner') })",
        &[],
        expect![[""]],
    );
}

#[test]
fn a_syntax_error() {
    check("const a = 1;\nconst b = (a +;\n", &[], expect![[""]]);
}

#[test]
fn an_import() {
    check(
        "import fs from 'node:fs';\nfs.readFileSync('/etc/passwd')",
        &[],
        expect![[""]],
    );
}

#[test]
fn a_promise_that_never_settles() {
    check(
        "console.log('waiting');\nawait new Promise(() => {});",
        &[],
        expect![[""]],
    );
}

#[test]
fn the_time_limit() {
    check(
        "console.log('spinning');\nwhile (true) {}",
        &["--timeout", "200ms"],
        expect![[""]],
    );
}

#[test]
fn the_memory_limit() {
    check(
        "const all = [];\nwhile (true) all.push([all.length, {}]);",
        &["--memory", "32MiB", "--timeout", "60s"],
        expect![[""]],
    );
}

/// The JSON form has the fields of docs/report.md, no more and no fewer.
#[test]
fn the_json_form() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    let mut report = bench.report("console.log('hi'); return await odd_echo({ a: 1 })", &[]);
    for time in ["scriptMs", "totalMs"] {
        assert!(report[time].is_u64(), "{report:#}");
        report[time] = Value::Null;
    }
    for time in ["startedMs", "tookMs"] {
        assert!(report["calls"][0][time].is_number(), "{report:#}");
        report["calls"][0][time] = Value::Null;
    }
    expect![[""]].assert_eq(&format!("{report:#}"));
}

//! The report's text, and its JSON, for each way a run can end.

use callgate_tests::{Workbench, odd};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn bench() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "allow": ["odd_echo", "odd_fails", "odd_rejects"], "deny": ["odd_text"] },
    }))
}

/// The output of `run` for a script: stdout, then stderr, with times replaced.
#[track_caller]
pub(crate) fn check(script: &str, flags: &[&str], expected: Expect) {
    let ran = bench().run(script, flags);
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
fn uncaught_error_shows_line_and_calls() {
    check(
        "const rows = await odd_echo({ rows: [] });
function first(list: unknown[]) {
  return (list[0] as { name: string }).name;
}
console.log('looking');
first(rows.rows as unknown[]);",
        &[],
        expect![[r#"
            looking
            --- stderr
            error: TypeError: Cannot read properties of undefined (reading 'name')
              --> stdin.ts:3:40
              3 |   return (list[0] as { name: string }).name;
                |                                        ^
              at first (stdin.ts:3:40)
              at stdin.ts:6:1
            calls: 1
              odd_echo: 1 ok
        "#]],
    );
}

/// A failure after many calls is shown, with its arguments.
#[test]
fn failed_calls_are_listed_with_arguments() {
    check(
        "for (let n = 1; n <= 24; n++) await odd_echo({ n });
await odd_rejects({ message: 'row 9 is locked' }).catch(() => {});
await odd_echo({ n: 26 });
await odd_fails({});",
        &["--check=off"],
        expect![[r#"
            --- stderr
            error: McpToolError: disk is full
              --> stdin.ts:4:7
              4 | await odd_fails({});
                |       ^
            calls: 27
              odd_echo: 25 ok (between 1 and 26)
              25 odd_rejects({"message":"row 9 is locked"}) failed: row 9 is locked (code -32602)
              27 odd_fails({}) failed: disk is full
        "#]],
    );
    check(
        "await Promise.all([1, 2, 3].map((n) => odd_echo({ n })));
const page = { text: '-'.repeat(300) };
await odd_text(page);",
        &["--check=off"],
        expect![[r#"
            --- stderr
            error: McpDeniedError: odd_text was not called: denied by rule "odd_text" in permissions.deny; to allow it, change that rule
              --> stdin.ts:3:7
              3 | await odd_text(page);
                |       ^
            calls: 4
              odd_echo: 3 ok (1 to 3)
              4 odd_text({"text":"-----------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------…) was denied
        "#]],
    );
}

#[test]
fn many_alike_failures_share_a_line() {
    let bench = bench();
    for (script, expected) in [
        (
            "for (let n = 1; n <= 30; n++) {
  await odd_rejects({ message: `row ${n} is locked` }).catch(() => {});
}
for (let n = 1; n <= 5; n++) await odd_fails({}).catch(() => {});
await odd_text({ text: 'a' });",
            "calls: 36
  odd_rejects: 30 failed (1 to 30), the first: {\"message\":\"row 1 is locked\"} failed: row 1 is \
             locked (code -32602)
  odd_fails: 5 failed (31 to 35), the first: {} failed: disk is full
  36 odd_text({\"text\":\"a\"}) was denied\n",
        ),
        (
            "for (let n = 1; n <= 6; n++) {
  await odd_echo({ n });
  await odd_fails({}).catch(() => {});
}
throw new Error('given up');",
            "calls: 12
  odd_echo: 6 ok (between 1 and 11)
  odd_fails: 5 failed (between 2 and 10), the first: {} failed: disk is full
  12 odd_fails({}) failed: disk is full\n",
        ),
    ] {
        let ran = bench.run(script, &["--check=off"]);
        assert!(ran.stderr.ends_with(expected), "{ran:#?}");
    }
}

#[test]
fn caught_denial_is_reported_once() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "deny": ["odd_text"] },
    }));
    for then in ["throw new Error('later');", "await odd_echo({});"] {
        let script = format!("try {{ await odd_text({{ text: 'a' }}); }} catch {{}}\n{then}");
        let ran = bench.run(&script, &["--check=off"]);
        assert_eq!(
            ran.stderr.matches("odd_text (line 1)").count(),
            1,
            "{ran:#?}"
        );
        assert_eq!(ran.stderr.matches("odd_text(").count(), 0, "{ran:#?}");
    }
}

#[test]
fn internal_stack_frames_are_not_shown() {
    for (script, message) in [
        (
            "mcp.json('plain text');",
            "SyntaxError: mcp.json: the text of the result is not JSON",
        ),
        ("[1].map(() => mcp.text({ a: 1 }));", "TypeError: mcp.text"),
        (
            "await Promise.all([0].map(async () => { await null; JSON.parse('x'); }));",
            "SyntaxError: Unexpected token",
        ),
    ] {
        let caught = format!("try {{ {script} }} catch (error) {{ console.log(error); }}");
        for script in [script, caught.as_str()] {
            let ran = Workbench::empty().run(script, &["--check=off"]);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains(message), "{said}");
            let mut frames = said.lines().filter(|line| line.trim().starts_with("at "));
            assert!(frames.all(|line| line.contains("stdin.ts:1:")), "{said}");
            assert!(!said.contains("Caused by"), "{said}");
        }
    }
}

#[test]
fn syntax_error_shows_its_position() {
    check(
        "const a = 1;\nconst b = (a +;\n",
        &[],
        expect![[r#"
        --- stderr
        error: an expression is expected here
          --> stdin.ts:2:15
          2 | const b = (a +;
            |               ^
        calls: none
    "#]],
    );
}

#[test]
fn limits_are_shown_in_their_units() {
    let bench = Workbench::empty();
    let loops = "let n = 0; for (;;) n++;";
    let fills = "const all = []; for (;;) all.push(new Array(100_000).fill(0));";
    for (script, flag, shown) in [
        (loops, "--timeout=1.25s", ", over its limit of 1.25 s\n"),
        (loops, "--timeout=400ms", ", over its limit of 400 ms\n"),
        (fills, "--memory=24MiB", "its memory limit of 24 MiB\n"),
        (fills, "--memory=20MB", "its memory limit of 20 MB\n"),
    ] {
        let ran = bench.run(script, &[flag, "--check=off"]);
        assert_eq!(ran.code, 4, "{flag}: {ran:?}");
        assert!(ran.stderr.contains(shown), "{flag}: {ran:?}");
    }
}

/// The JSON form has the fields of docs/report.md, no more and no fewer.
#[test]
fn json_report_has_the_documented_fields() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    let report = bench.report("console.log('hi'); return await odd_echo({ a: 1 })", &[]);
    let sha = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
    // Members that depend on the time, the run or the kernel are not compared.
    let expected = json!({
        "version": 1, "script": "stdin.ts", "status": "completed", "error": null,
        "output": { "text": "hi\n", "bytes": 3, "cutBytes": 0 },
        "value": { "json": { "a": 1 }, "text": "{\"a\":1}", "bytes": 7, "cutBytes": 0 },
        "emitted": [], "run": "*",
        "calls": [{
            "ordinal": 1, "function": "odd_echo", "server": "odd", "tool": "echo",
            "decision": "allowed by rule \"*\" in permissions.allow", "line": 1, "at": "*",
            "argumentBytes": 7, "argumentSha256": sha, "resultBytes": 7, "resultSha256": sha,
            "startedMs": "*", "tookMs": "*", "outcome": "ok",
        }],
        "lookups": 0, "denials": [], "dryRun": null,
        "check": { "status": "passed", "errors": [], "more": 0, "reason": null },
        "warnings": [], "unavailable": [],
        "sandbox": { "landlock": "*", "seccomp": "*", "namespaces": "*", "machineCode": "*" },
        "scriptMs": "*", "totalMs": "*",
    });
    assert_eq!(as_expected(report, &expected), expected);
}

/// The value, with `"*"` for each member that is not null where `"*"` is expected.
fn as_expected(value: Value, expected: &Value) -> Value {
    match (value, expected) {
        (Value::Object(members), Value::Object(of)) => members
            .into_iter()
            .map(|(name, member)| {
                let member = as_expected(member, of.get(&name).unwrap_or(&Value::Null));
                (name, member)
            })
            .collect(),
        (Value::Array(items), Value::Array(of)) if items.len() == of.len() => {
            let items = items.into_iter().zip(of);
            items.map(|(item, of)| as_expected(item, of)).collect()
        }
        (value, any) if *any == "*" && !value.is_null() => any.clone(),
        (value, _) => value,
    }
}

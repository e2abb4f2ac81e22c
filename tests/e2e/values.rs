//! Values between JSON and JavaScript, and work that a script does not await.

use callgate_tests::{Workbench, odd};
use serde_json::{Value, json};

fn bench() -> Workbench {
    Workbench::new(json!({ "odd": odd("flaky") }))
}

#[track_caller]
fn completed(report: &Value) -> &Value {
    assert_eq!(report["status"], "completed", "{report:#}");
    &report["value"]["json"]
}

#[test]
fn integers_come_and_go_with_all_their_digits() {
    let bench = bench();
    for id in [
        "1234567890123456789",
        "-9007199254740993",
        "18446744073709551615",
        "9007199254740992",
    ] {
        let script = format!(
            "const found = await odd_structured({{ value: mcp.json('{{\"ids\":[{{\"id\":{id}}}]}}') }}) as any;
             const text = mcp.json(await odd_text({{ text: '{{\"id\":{id}}}' }}));
             if (typeof text.id !== 'bigint') throw new Error('it is ' + typeof text.id);
             return await odd_echo({{ ids: [found.ids[0].id, text.id, {id}n] }});"
        );
        let id: Value = serde_json::from_str(id).expect("JSON");
        let report = bench.report(&script, &[]);
        assert_eq!(*completed(&report), json!({ "ids": [id, id, id] }));
    }
    // An integer that a number can hold stays a number.
    let report = bench.report(
        "const { a } = mcp.json('{\"a\":[9007199254740991, 1.5, 12345678901234567890.5, 1e30]}');
         return a.map((it: unknown) => typeof it);",
        &[],
    );
    assert_eq!(
        *completed(&report),
        json!(["number", "number", "number", "number"])
    );
}

#[test]
fn rules_and_the_ledger_see_the_exact_integer() {
    let rule = json!({
        "tool": "odd_echo",
        "arguments": [{ "at": "/id", "equals": 1_234_567_890_123_456_789_u64 }],
    });
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "allow": ["odd_text", rule] },
    }));
    let report = bench.report(
        "const { id } = mcp.json(await odd_text({ text: '{\"id\":1234567890123456789}' }));
         await odd_echo({ id });
         for (const other of [id - 1n, id + 1n, Number(id)]) {
             await odd_echo({ id: other }).then(() => { throw new Error(`${other} was let through`); },
                 (error) => { if (!(error instanceof McpDeniedError)) throw error; });
         }",
        &[],
    );
    completed(&report);
    let sha256 = |of: usize| report["calls"][of]["argumentSha256"].clone();
    // Of {"id":1234567890123456789}.
    assert_eq!(
        sha256(1),
        "ccccb59d8229caf608575f059ca31064058056e0042c26f931372af074013fcc",
        "{report:#}"
    );
    assert_ne!(sha256(1), sha256(2));
}

#[test]
fn arguments_that_json_loses_are_refused_with_their_path() {
    let bench = bench();
    for (arguments, said) in [
        ("{ id: parseInt('none') }", "`arguments.id` is NaN"),
        ("{ a: [1, { b: 1 / 0 }] }", "`arguments.a[1].b` is Infinity"),
        ("{ tags: new Set([1]) }", "`arguments.tags` is a Set"),
        (
            "{ record: odd_echo({}) }",
            "`arguments.record` is a promise; write `await`",
        ),
        (
            "{ rows: [1, 2].map(async (n) => n) }",
            "`arguments.rows[0]` is a promise",
        ),
        ("{ list: [undefined] }", "`arguments.list[0]` is undefined"),
        ("mcp.json('{\"n\":1e400}')", "`arguments.n` is Infinity"),
    ] {
        let report = bench.report(
            &format!("await odd_text({arguments} as any);"),
            &["--check=off"],
        );
        let error = &report["error"];
        assert_eq!(error["name"], "TypeError", "{report:#}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{arguments}: {message}");
        assert_eq!(error["position"]["line"], 1);
    }
}

#[test]
fn a_returned_value_shows_what_json_does_not_have() {
    let report = bench().report(
        "return { mean: 0 / 0, seen: new Set(['a']), failed: new Error('no'), id: 12345678901234567890n };",
        &[],
    );
    assert_eq!(
        *completed(&report),
        json!({
            "mean": "NaN",
            "seen": "Set(1) { 'a' }",
            "failed": "Error: no",
            "id": 12_345_678_901_234_567_890_u64,
        })
    );
}

#[test]
fn a_list_in_blocks_is_an_array() {
    let report = bench().report(
        "const of = async (...texts: string[]) => await odd_lines({ texts });
         const [two, one, none] = [await of('{\"a\":1}', '{\"a\":2}'), await of('{\"a\":1}'), await of()];
         const words = await of('a', 'b');
         return [
             mcp.json(two), mcp.json(one), mcp.json(none), mcp.text(words),
             [two, one, none].map((it) => mcp.blocks(it).map(mcp.json)), mcp.blocks(words).map(mcp.text),
         ];",
        &[],
    );
    assert_eq!(
        *completed(&report),
        json!([
            [{ "a": 1 }, { "a": 2 }],
            { "a": 1 },
            null,
            "a\nb",
            [[{ "a": 1 }, { "a": 2 }], [{ "a": 1 }], []],
            ["a", "b"],
        ])
    );
}

#[test]
fn work_that_is_not_awaited_is_done() {
    let bench = bench();
    let sleep = "const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));\n";
    for (script, value, calls) in [
        (
            "async function main() { for (const id of [1, 2, 3]) { await odd_echo({ id }); await sleep(100); } return 'all'; }
             main();",
            json!("all"),
            3,
        ),
        (
            "async function main() { for (const id of [1, 2, 3]) { await odd_echo({ id }); await sleep(20); } }
             void main();
             return 'early';",
            json!("early"),
            3,
        ),
        (
            "[1, 2].forEach(async (id) => { await sleep(20 * id); await odd_echo({ id }); });",
            Value::Null,
            2,
        ),
        ("setTimeout(() => { void odd_echo({}); }, 20);", Value::Null, 1),
        ("const total = (await odd_echo({ n: 2 })).n;\ntotal", json!(2), 1),
    ] {
        let report = bench.report(&format!("{sleep}{script}"), &["--check=off"]);
        assert_eq!(*completed(&report), value, "{script}");
        let made = report["calls"].as_array().map(Vec::len);
        assert_eq!(made, Some(calls), "{script}");
        assert_eq!(report["warnings"], json!([]), "{script}");
    }
}

#[test]
fn a_warning_names_the_line_of_a_timer_that_is_given_up() {
    let bench = bench();
    for (script, flags, code, said) in [
        (
            "setInterval(() => {}, 1000);\nconsole.log('x');",
            &[][..],
            0,
            "warning: setInterval of line 1 was stopped",
        ),
        (
            "console.log('x');\nsetTimeout(() => {}, 1e9);",
            &[],
            0,
            "warning: setTimeout of line 2 was given up",
        ),
        (
            "const sleep = (ms: number) => new Promise((done) =>\nsetTimeout(done, ms));\nawait sleep(1e9);",
            &["--timeout", "300ms"],
            4,
            "warning: setTimeout of line 2 was still waited for",
        ),
        (
            "async function main() { for (;;) await new Promise((done) => setTimeout(done, 90)); }\nvoid main();",
            &["--timeout", "300ms"],
            4,
            "warning: setTimeout of line 1 was still waited for",
        ),
    ] {
        let flags: Vec<&str> = flags.iter().copied().chain(["--check=off"]).collect();
        let ran = bench.run(script, &flags);
        assert_eq!(ran.code, code, "{script}: {ran:?}");
        assert!(ran.stderr.contains(said), "{script}: {ran:?}");
    }
}

#[test]
fn an_answer_that_is_no_result_is_an_error_that_says_so() {
    let report = bench().report(
        "const errors = [];
         for (const call of [odd_bare, odd_not_an_object]) {
             await call({}).catch((error: McpProtocolError) => errors.push([error.name, error.message]));
         }
         return errors;",
        &["--check=off"],
    );
    let errors = completed(&report).to_string();
    for said in ["McpProtocolError", "it has no members", "it is a number"] {
        assert!(errors.contains(said), "{errors}");
    }
}

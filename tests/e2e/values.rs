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
fn large_integers_keep_all_their_digits() {
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
    let script =
        "const { a } = mcp.json('{\"a\":[9007199254740991, 1.5, 12345678901234567890.5, 1e30]}');
         return a.every((it: unknown) => typeof it === 'number');";
    assert_eq!(*completed(&bench.report(script, &[])), json!(true));
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
fn warning_names_the_line_of_abandoned_timer() {
    let bench = Workbench::with_config(json!({ "limits": { "waitTimeout": "300ms" } }));
    let waits = "await new Promise((done) =>\nsetTimeout(done, 1e9));";
    for (script, code, said) in [
        (
            "\nsetInterval(() => {}, 1000);",
            0,
            "setInterval of line 2 was stopped",
        ),
        (
            "\nsetTimeout(() => {}, 1e9);",
            0,
            "setTimeout of line 2 was dropped",
        ),
        (
            waits,
            4,
            "setTimeout of line 2 had not fired when the run ended",
        ),
    ] {
        let ran = bench.run(script, &["--check=off", "--timeout=300ms"]);
        assert_eq!(ran.code, code, "{script}: {ran:?}");
        let warning = format!("warning: {said}");
        assert!(ran.stderr.contains(&warning), "{script}: {ran:?}");
    }
}

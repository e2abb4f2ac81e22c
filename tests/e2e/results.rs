//! What tools answer, held to what their servers declare.

use callgate_tests::{Workbench, odd};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, OLDER, User, connect};
use crate::serve_native::call;

fn bench() -> Workbench {
    Workbench::new(json!({ "odd": odd("flaky") }))
}

/// Runs a script that catches, and gives what it returned.
fn caught(call: &str) -> Value {
    let script = format!(
        "try {{ return {call}; }} catch (error: any) {{
           const {{ name, message, code, data, tool, retryable }} = error;
           return {{ name, message, code, data, tool, retryable }};
         }}"
    );
    let ran = bench().run(&script, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json()
}

#[test]
fn a_script_never_gets_a_value_that_its_type_does_not_have() {
    assert_eq!(
        caught("await odd_counts({ value: { n: 7 } })"),
        json!({ "n": 7 })
    );
    assert_eq!(
        caught("await odd_counts({ value: { n: 'seven' } })"),
        json!({
            "name": "McpProtocolError",
            "message": "the call was made, and its result does not fit the tool's outputSchema: \
                        /n: value is not of type \"integer\"",
            "code": -32055,
            "data": {
                "problems": ["/n: value is not of type \"integer\""],
                "result": { "n": "seven" },
            },
            "tool": "odd_counts",
            "retryable": false,
        })
    );
    // Without structured content it is the text that counts.
    assert_eq!(
        caught("await odd_counts({})"),
        json!({
            "name": "McpProtocolError",
            "message": "the call was made; the tool has an outputSchema and answered without \
                        structuredContent, and what it answered does not fit: /n: value is not of \
                        type \"integer\"",
            "code": -32055,
            "data": {
                "problems": ["/n: value is not of type \"integer\""],
                "result": { "n": "seven" },
            },
            "tool": "odd_counts",
            "retryable": false,
        })
    );
    // What failed is no result.
    let failed = caught("await odd_counts({ value: 1, fails: true })");
    assert_eq!(failed["name"], "McpToolError", "{failed}");
}

#[test]
fn the_report_says_that_the_call_was_made_and_what_was_not_checked() {
    let bench = bench();
    let ran = bench.run("await odd_counts({ value: [] })", &["--json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let report = ran.json();
    let call = &report["calls"][0];
    assert_eq!(call["outcome"], "protocolError", "{report}");
    assert_eq!(call["code"], -32055);
    assert_eq!(call["resultBytes"], 2);

    let script = "await odd_puzzles({ value: 1 }); return await odd_puzzles({ value: 2 })";
    let ran = bench.run(script, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "2\n"), "{ran:#?}");
    let told = "warning: a result of odd_puzzles was not checked against its outputSchema: the \
                schema refers to \"https://example.com/puzzle.json\", which is no part of it";
    assert_eq!(ran.stderr.matches(told).count(), 1, "{ran:#?}");
    let report = bench.run(script, &["--json"]).json();
    for call in report["calls"].as_array().expect("calls") {
        let reason = call["unchecked"].as_str().expect("a reason");
        assert!(reason.starts_with("the schema refers to "), "{report}");
    }
}

#[test]
fn a_call_without_a_script_is_held_to_it_too() {
    let bench = bench();
    let ran = bench.callgate(&["call", "odd_counts", r#"{"value":{"n":1}}"#]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "{\"n\":1}\n"),
        "{ran:#?}"
    );
    let ran = bench.callgate(&["call", "odd_counts", r#"{"value":{"n":1.5}}"#]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let said = "the call was made, and its result does not fit the tool's outputSchema: /n: value \
                is not of type \"integer\"";
    assert!(ran.stderr.contains(said), "{ran:#?}");
}

/// A model that calls the tool itself hears of it, and gets the answer as text.
async fn check_native(version: &ProtocolVersion) {
    let session = connect(&bench(), User::new(version, &[]), &["--mode", "native"]).await;
    let fits = call(&session, "odd_counts", json!({ "value": { "n": 1 } })).await;
    assert_eq!(fits.structured_content, Some(json!({ "n": 1 })), "{fits:?}");
    let misfit = call(&session, "odd_counts", json!({ "value": { "n": "x" } })).await;
    assert_eq!(misfit.is_error, Some(true), "{misfit:?}");
    assert_eq!(misfit.structured_content, None);
    let texts: Vec<&str> = misfit
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|text| text.text.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "odd_counts: the call was made, and its result does not fit the tool's outputSchema: \
             /n: value is not of type \"integer\" (code -32055)",
            "{\"n\":\"x\"}",
        ]
    );
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn a_model_that_calls_a_tool_itself_is_told() {
    check_native(&OLDER[1]).await;
    check_native(&NEWEST).await;
}

#[test]
fn what_a_server_sends_with_a_failure_may_be_nested_deep() {
    // Deeper than JSON is read anywhere on the way.
    let script = "
        const deep = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
        const caught = async (call: Promise<unknown>) => {
          try { await call; return 'nothing'; } catch (error: any) { return `${error.name} ${error.code}`; }
        };
        return [
          await caught(odd_counts({ value: deep(100) })),
          await caught(odd_counts({ value: deep(100), fails: true })),
          await caught(odd_rejects({ data: deep(100) })),
        ].join(', ');";
    let ran = bench().run(script, &[]);
    assert_eq!(
        ran.stdout, "McpProtocolError -32055, McpToolError undefined, McpProtocolError -32602\n",
        "{ran:#?}"
    );
}

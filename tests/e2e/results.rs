//! What tools answer, held to what their servers declare.

use callgate_tests::{Workbench, odd};
use serde_json::{Value, json};

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

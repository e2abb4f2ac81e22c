//! The verdict of `check` on the tools of a script, compared with a run without a person.

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::{Value, json};

use crate::cli::check_output;

/// Without a terminal, `check` has the exit code of a run that has no one to ask.
#[test]
fn calls_needing_approval_are_denied_without_terminal() {
    let of = |permissions: Value| {
        let bench = Workbench::with_config(json!({
            "mcpServers": { "ticketing": demo_ticketing() },
            "permissions": permissions,
        }));
        bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
        ["check", "run"].map(|command| bench.callgate(&[command, "script.ts"]).code)
    };
    assert_eq!(of(json!({})), [3, 3]);
    assert_eq!(of(json!({ "ask": ["ticketing_*"] })), [3, 3]);
    assert_eq!(of(json!({ "allow": ["ticketing_*"] })), [0, 0]);
    // A rule can depend on the arguments.
    let only_x = json!({
        "tool": "ticketing_createIssue",
        "arguments": [{ "at": "/title", "equals": "x" }],
    });
    assert_eq!(of(json!({ "allow": [only_x] })), [0, 0]);
    // Expired and void rules allow nothing.
    let tool = "ticketing_createIssue";
    let expired = json!({ "tool": tool, "expires": "2020-01-01T00:00:00Z" });
    let void = json!({ "tool": tool, "definition": format!("sha256:{}", "0".repeat(64)) });
    for past in [expired, void] {
        assert_eq!(of(json!({ "allow": [past] })), [3, 3]);
        assert_eq!(of(json!({ "allow": [past, only_x] })), [0, 0]);
    }
}

#[test]
fn check_reports_calls_of_unknown_tools() {
    let bench = Workbench::new(json!({ "ticketing": demo_ticketing() }));
    bench.write("script.ts", "\n\nawait ticketing_closeIssue({});");
    let unknown = "line 3: no tool is named \"ticketing_closeIssue\"; \
                   did you mean \"ticketing_createIssue\"?\n";
    check_output(&bench, "check script.ts --check=off", 1, &[unknown]);
}

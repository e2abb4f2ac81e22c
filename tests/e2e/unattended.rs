//! What `check` foresees of the rules, beside what a run without a person makes of them.

use callgate_tests::{Workbench, fixture};
use expect_test::expect;
use serde_json::{Value, json};

use crate::cli::check;

/// No `--allow` lifts a rule that denies for some arguments: it is named, whatever else there is
/// to say.
#[test]
fn what_may_be_denied_needs_no_flag() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "deny": [
            { "tool": "ticketing_createIssue", "arguments": [{ "at": "/title", "equals": "secret" }] },
        ] },
    }));
    bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
    let flags = ["check", "script.ts", "--allow", "ticketing_createIssue"];
    check(
        &bench,
        &bench.callgate(&flags),
        expect![[r#"
            exit code 0
            --- stdout
            ticketing_createIssue (line 1): denied for some arguments, by rule "ticketing_createIssue" (/title = "secret") in permissions.deny
            --- stderr
        "#]],
    );
    check(
        &bench,
        &bench.callgate(&flags[..2]),
        expect![[r#"
            exit code 3
            --- stdout
            ticketing_createIssue (line 1): needs approval: no rule matches; denied for some arguments, by rule "ticketing_createIssue" (/title = "secret") in permissions.deny
            to run it unattended: --allow ticketing_createIssue
            --- stderr
        "#]],
    );
}

/// Without a terminal, `check` ends as the run does that has nobody to ask.
#[test]
fn what_would_be_asked_about_is_denied_without_a_terminal() {
    let of = |permissions: Value| {
        let bench = Workbench::with_config(json!({
            "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
            "permissions": permissions,
        }));
        bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
        ["check", "run"].map(|command| bench.callgate(&[command, "script.ts"]).code)
    };
    assert_eq!(of(json!({})), [3, 3]);
    assert_eq!(of(json!({ "ask": ["ticketing_*"] })), [3, 3]);
    assert_eq!(of(json!({ "allow": ["ticketing_*"] })), [0, 0]);
    // The arguments decide.
    let only_x = json!({
        "tool": "ticketing_createIssue",
        "arguments": [{ "at": "/title", "equals": "x" }],
    });
    assert_eq!(of(json!({ "allow": [only_x] })), [0, 0]);
    // Whatever became of other leave.
    let tool = "ticketing_createIssue";
    let expired = json!({ "tool": tool, "expires": "2020-01-01T00:00:00Z" });
    let void = json!({ "tool": tool, "definition": format!("sha256:{}", "0".repeat(64)) });
    for past in [expired, void] {
        assert_eq!(of(json!({ "allow": [past] })), [3, 3]);
        assert_eq!(of(json!({ "allow": [past, only_x] })), [0, 0]);
    }
}

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

/// An endpoint that is never asked.
fn with_model(permissions: &Value) -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "models": { "small": { "url": "http://127.0.0.1:9/v1", "model": "small" } },
        "permissions": permissions,
    }))
}

/// A rule over its function is one over `mcp.extract`.
#[test]
fn extractions_are_foreseen() {
    for (permissions, said, code) in [
        (
            json!({ "deny": ["model_*"] }),
            "denied by rule \"model_*\" in permissions.deny\n",
            3,
        ),
        (
            json!({ "ask": ["model_*"] }),
            "needs approval by rule \"model_*\" in permissions.ask\n\
             to run it unattended: --allow model_extract\n",
            3,
        ),
        (
            json!({ "allow": ["model_*"] }),
            "allowed by rule \"model_*\" in permissions.allow\n",
            0,
        ),
        (json!({}), "allowed: no rule is about it\n", 0),
    ] {
        let bench = with_model(&permissions);
        bench.write("script.ts", "return await mcp.extract('a', 'string')");
        let checked = bench.callgate(&["check", "script.ts", "--check=off"]);
        let said = format!("mcp.extract (line 1, to rules model_extract): {said}");
        assert_eq!((checked.code, checked.stdout), (code, said));
        if code != 0 {
            let ran = bench.callgate(&["run", "script.ts", "--check=off"]);
            assert_eq!(ran.code, code, "{ran:#?}");
        }
    }
    // It is no call of a tool, and leave for it is bound to what it is all the same.
    let bench = with_model(&json!({}));
    bench.write("script.ts", "return await mcp.extract('a', 'string')");
    let checked = bench.callgate(&["check", "script.ts", "--check=off", "--json"]);
    let tool = &checked.json()["tools"][0];
    assert_eq!(tool["server"], "model");
    assert_eq!(tool["tool"], "extract");
    assert_eq!(tool["verdict"], "allow");
    let definition = tool["definition"].as_str().expect("a hash");
    assert!(definition.starts_with("sha256:"), "{definition}");
}

#[test]
fn a_denied_extraction_is_told_what_would_allow_it() {
    let bench = with_model(&json!({ "ask": ["model_*"] }));
    let script = "try { await mcp.extract('a', 'string') } catch (error) {
        return [error.tool, error.message, error.advice];
    }";
    let ran = bench.run(script, &["--check=off"]);
    expect![[r#"
        ["mcp.extract","model_extract was not called: needs approval by rule \"model_*\" in permissions.ask, and there is nobody to ask; whoever runs Callgate can allow it with --allow model_extract","whoever runs Callgate can allow it with --allow model_extract"]
    "#]]
    .assert_eq(&ran.stdout);
}

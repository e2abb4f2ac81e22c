//! A rule that should forbid something and matches no tool stops a command, where that is known.

use callgate::{CallErrorKind, Gate, Rules, ServerSpec, Status};
use callgate_servers::Connect;
use callgate_tests::host::Host;
use callgate_tests::{Workbench, binary, cases, demo_logging, demo_ticketing};
use serde_json::{Value, json};

/// A script that names a tool of the server, so that its tools are listed.
const NAMING: &str = "await files_listIssues({}); return 1";

/// A configuration with the server `files`, which has the tools `createIssue` and `listIssues`.
fn bench(members: Value) -> Workbench {
    let mut config = json!({
        "mcpServers": { "files": demo_ticketing() },
    });
    for (key, value) in members.as_object().expect("members") {
        config[key] = value.clone();
    }
    Workbench::with_config(config)
}

#[test]
fn unmatched_deny_rule_stops_run_call_and_serve() {
    for (members, said) in cases(
        r#"
        { "permissions": { "deny": ["mcp__files__createIssue"] } } → rule "mcp__files__createIssue" in permissions.deny matches no tool; did you mean "files_createIssue"?
        { "permissions": { "deny": [{ "tool": "mcp__files__*" }] } } → did you mean "files_*"?
        { "permissions": { "deny": [{ "tool": "files_*", "server": "file" }] } } → matches no tool of such a server; did you mean "files"?
        { "flows": [{ "from": "mcp__files__listIssues", "to": "*", "action": "deny" }] } → did you mean "files_listIssues"?
        { "toolLabels": { "mcp__files__listIssues": ["private"], "files_createIssue": ["private"] }, "flows": [{ "from": "label:private", "to": "*", "action": "deny" }] } → toolLabels is on no tool; did you mean "files_listIssues"?
        { "tools": { "files_create_issue": { "visibility": "hidden" } } } → "files_create_issue" in "tools" matches no tool; did you mean "files_createIssue"?"#,
    ) {
        let bench = bench(members);
        let called = bench.callgate(&["call", "files_listIssues", "{}"]);
        for ran in [bench.run(NAMING, &[]), called] {
            let advice = ran.stderr.contains("--allow-unmatched-rules");
            let is_said = ran.stderr.contains(said) && advice;
            assert!(ran.code == 2 && is_said, "{ran:#?}");
        }
        // A client does not wait for the lists, and no call is made.
        let mut host = Host::start(&bench, &[]).expect("a handshake");
        let call = json!({ "name": "run_script", "arguments": { "code": NAMING } });
        let served = host.request("tools/call", &call).expect("an answer");
        let text = served["content"][0]["text"].as_str().expect("a text");
        assert!(served["isError"] == true && text.contains(said), "{served}");
        // The list of tools is still shown, because it has the names for the rule.
        let listed = bench.callgate(&["tools"]);
        let is_said = listed.stderr.contains(said);
        assert!(listed.code == 0 && is_said, "{listed:#?}");
        let flags = ["--allow-unmatched-rules", "--yes"];
        let ran = bench.run(NAMING, &flags);
        assert!(ran.code == 0 && ran.stderr.contains(said), "{ran:#?}");
    }
    let flag = bench(json!({})).run(NAMING, &["--deny", "mcp_files_create_issue"]);
    assert_eq!(flag.code, 2, "{flag:#?}");
}

/// Over HTTP the servers start before the first client comes.
#[test]
fn unmatched_restriction_ends_serve_over_http() {
    for members in [
        json!({ "permissions": { "deny": ["files_create_issue"] } }),
        json!({ "tools": { "files_listissues": { "visibility": "hidden" } } }),
    ] {
        let served = bench(members).callgate(&["serve", "--http", "127.0.0.1:0"]);
        let is_said = served
            .stderr
            .contains("matches no tool; did you mean \"files_")
            && served.stderr.contains("--allow-unmatched-rules");
        assert!(served.code == 2 && is_said, "{served:#?}");
    }
}

#[test]
fn tolerated_unmatched_rules_do_not_stop_runs() {
    let deny = json!({ "deny": ["mcp__files__createIssue"] });
    let servers = |more: Value| json!({ "files": more, "log": demo_logging() });
    for members in [
        json!({ "permissions": { "deny": deny["deny"], "allowUnmatched": true } }),
        json!({ "permissions": { "ask": ["mcp__files__createIssue"] } }),
        json!({ "permissions": { "deny": ["files_createIssue"] } }),
        json!({ "tools": { "files_create": { "visibility": "on-demand" } } }),
        json!({ "flows": [{ "from": "file", "to": "*", "action": "ask" }] }),
        // Servers that are off, that are down, and that do not begin at once.
        json!({ "mcpServers": servers(json!({ "disabled": true })), "permissions": { "deny": ["files_*"] } }),
        json!({ "mcpServers": servers(json!({ "command": "/no/such/program" })), "permissions": { "deny": ["files_x"] } }),
        json!({ "mcpServers": servers(json!({ "command": "x", "connect": "manual" })), "permissions": { "deny": ["files_x"] } }),
        // A hidden tool, which no script can call anyway.
        json!({
            "tools": { "files_createIssue": { "visibility": "hidden" } },
            "permissions": { "deny": ["files_createIssue"] },
        }),
        // Nothing to forbid.
        json!({ "mcpServers": {}, "permissions": { "deny": ["files_x"] } }),
    ] {
        let ran = bench(members.clone()).run("1", &[]);
        assert_eq!(ran.code, 0, "{members}: {ran:#?}");
    }
}

#[tokio::test]
async fn unmatched_deny_rule_of_late_server_stops_calls() {
    let server = |name: &str, program: &str| ServerSpec::stdio(name, binary(program), [""; 0]);
    let mut files = server("files", "callgate-demo-ticketing");
    files.connect = Connect::Manual;
    let gate = Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .server(server("log", "callgate-demo-logging"))
        .server(files)
        .rules(
            Rules::builder()
                .allow("*")
                .deny("files_create_issue")
                .build()
                .expect("patterns"),
        )
        .build()
        .await
        .expect("a gate");
    assert_eq!(gate.run("return 1").await.status, Status::Completed);
    gate.enable("files").await.expect("a server");
    let report = gate.run("await files_createIssue({ title: 'x' })").await;
    let error = report.error.as_ref().expect("an error");
    assert_eq!(format!("{:?}", error.kind), "Configuration", "{report}");
    let meant = "did you mean \"files_createIssue\"?";
    assert!(error.message.contains(meant), "{report}");
    let arguments = serde_json::value::to_raw_value(&json!({ "title": "x" })).expect("JSON");
    let called = gate.call("files_createIssue", arguments).await;
    let error = called.expect_err("the configuration permits no calls");
    let CallErrorKind::Protocol { code, .. } = error.kind else {
        panic!("{error:?}");
    };
    assert_eq!(code, callgate::faces::code::REFUSED);
    gate.shutdown().await;
}

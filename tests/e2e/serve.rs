//! `callgate serve`: a real MCP client calls `run_script` over stdio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use callgate_tests::{Workbench, binary, fixture, odd};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

async fn connect(bench: &Workbench) -> RunningService<RoleClient, ()> {
    let mut command = tokio::process::Command::new(binary("callgate"));
    command
        .arg("serve")
        .current_dir(bench.path())
        .env("XDG_CACHE_HOME", bench.cache());
    let transport = TokioChildProcess::new(command).expect("start callgate serve");
    ().serve(transport).await.expect("an MCP handshake")
}

async fn run_script(client: &RunningService<RoleClient, ()>, code: &str) -> (bool, String) {
    let Value::Object(arguments) = json!({ "code": code }) else {
        unreachable!("an object")
    };
    let request = CallToolRequestParams::new("run_script").with_arguments(arguments);
    let result = client.call_tool(request).await.expect("an answer");
    (result.is_error.unwrap_or(false), text(&result))
}

fn text(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|t| t.text.as_str())
        .collect()
}

#[tokio::test]
async fn a_client_runs_a_script() {
    let bench = Workbench::new(json!({
        "logging": fixture("callgate-demo-logging", &[]),
        "ticketing": fixture("callgate-demo-ticketing", &[]),
    }));
    let client = connect(&bench).await;
    let tools = client.list_all_tools().await.expect("a list");
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["run_script", "wait"]);
    let description = tools[0].description.as_deref().unwrap_or_default();
    for declared in [
        "logging_getLogs(",
        "ticketing_createIssue(",
        "LogEntry",
        "McpToolError",
    ] {
        assert!(
            description.contains(declared),
            "{declared} is not in:\n{description}"
        );
    }

    let script = "const issue = await ticketing_createIssue({ title: 'A', body: 'B' });
                  console.log(issue.issueId);
                  return 1 + 1;";
    let (is_error, said) = run_script(&client, script).await;
    assert!(!is_error, "{said}");
    assert_eq!(said.lines().last(), Some("2"), "{said}");

    let (is_error, said) = run_script(&client, "const none: any = null;\nnone.x").await;
    assert!(is_error);
    assert_eq!(
        said,
        "error: TypeError: Cannot read properties of null (reading 'x')\n\
         \x20 --> script.ts:2:6\n\
         \x20 2 | none.x\n\
         \x20   |      ^\n\
         calls: none\n"
    );
    client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn wrong_arguments_come_back_as_a_result() {
    let bench = Workbench::new(json!({}));
    let client = connect(&bench).await;
    let Value::Object(arguments) = json!({ "script": "1" }) else {
        unreachable!("an object")
    };
    let request = CallToolRequestParams::new("run_script").with_arguments(arguments);
    let result = client.call_tool(request).await.expect("an answer");
    assert_eq!(result.is_error, Some(true));
    assert_eq!(
        text(&result),
        "run_script was not called:\n\
         - the value: \"code\" is a required property\n\
         - there is no argument \"script\"; there are code, limits, servers"
    );
    client.cancel().await.expect("a clean end");
}

/// Whatever scripts and servers print, standard output has MCP frames only.
#[test]
fn standard_output_carries_frames_only() {
    let bench =
        Workbench::new(json!({ "odd": odd("junk"), "gone": { "command": "no-such-command" } }));
    let mut child = bench
        .command(&["serve", "-vv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start callgate serve");
    let mut stdin = child.stdin.take().expect("a piped stdin");
    let mut lines = BufReader::new(child.stdout.take().expect("a piped stdout")).lines();
    let mut frame = |message: Value| -> Value {
        writeln!(stdin, "{message}").expect("send a frame");
        if message.get("id").is_none() {
            return Value::Null;
        }
        let line = lines.next().expect("an answer").expect("UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    };
    let hello = frame(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } }),
    );
    assert_eq!(hello["result"]["serverInfo"]["name"], "callgate", "{hello}");
    frame(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let script = "console.log('printed'); console.error('too')";
    let answer = frame(
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "run_script", "arguments": { "code": script } } }),
    );
    assert_eq!(answer["id"], 2);
    drop(stdin);
    assert_eq!(
        lines.map(|line| line.expect("UTF-8")).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    assert!(child.wait().expect("an end").success());
}

/// A server that takes an hour to start must not look like a slow Callgate.
#[test]
fn the_handshake_does_not_wait_for_servers() {
    let mut silent = odd("silent");
    silent["startTimeout"] = json!("1h");
    let bench = Workbench::new(json!({ "silent": silent }));
    let mut child = bench
        .command(&["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start callgate serve");
    let mut stdin = child.stdin.take().expect("a piped stdin");
    let mut lines = BufReader::new(child.stdout.take().expect("a piped stdout")).lines();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } });
    writeln!(stdin, "{hello}").expect("send a frame");
    let answer = lines.next().expect("an answer").expect("UTF-8");
    assert!(answer.contains("\"callgate\""), "{answer}");
    drop(stdin);
    assert!(child.wait().expect("an end").success());
}

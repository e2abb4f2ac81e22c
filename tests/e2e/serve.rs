//! `callgate serve`: a real MCP client calls `run_script` over stdio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use callgate_tests::{Workbench, odd};
use serde_json::{Value, json};

use crate::serve_client::{ERAS, User, connect};
use crate::served::hello;

#[tokio::test]
async fn a_client_runs_a_script() {
    let bench = Workbench::demo();
    let session = connect(&bench, User::new(&ERAS[0], &[]), &[]).await;
    let tools = session.client.list_all_tools().await.expect("a list");
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
    let (is_error, said) = session.run(script).await;
    assert!(!is_error, "{said}");
    assert_eq!(said.lines().last(), Some("2"), "{said}");

    let (is_error, said) = session.run("const none: any = null;\nnone.x").await;
    assert!(is_error);
    assert_eq!(
        said,
        "error: TypeError: Cannot read properties of null (reading 'x')\n\
         \x20 --> script.ts:2:6\n\
         \x20 2 | none.x\n\
         \x20   |      ^\n\
         calls: none\n"
    );
    session.client.cancel().await.expect("a clean end");
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
    let hello = frame(hello());
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
    writeln!(stdin, "{}", hello()).expect("send a frame");
    let answer = lines.next().expect("an answer").expect("UTF-8");
    assert!(answer.contains("\"callgate\""), "{answer}");
    drop(stdin);
    assert!(child.wait().expect("an end").success());
}

//! What is no MCP, or wants what there is not: `callgate serve` says so, or says
//! nothing, and goes on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::{Value, json};

use crate::served::hello;

/// Sends lines after the handshake, and gives the answers to the requests among
/// them that have these ids.
fn answers(mode: &str, lines: &[String], ids: &[u64]) -> Vec<Value> {
    let bench = Workbench::new(json!({
        "ticketing": demo_ticketing(),
    }));
    let mut child = bench
        .command(&["serve", "--mode", mode])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start callgate serve");
    let mut stdin = child.stdin.take().expect("a piped stdin");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    writeln!(stdin, "{}\n{initialized}", hello()).expect("a handshake");
    for line in lines {
        writeln!(stdin, "{line}").expect("send a line");
    }
    let stdout = BufReader::new(child.stdout.take().expect("a piped stdout"));
    let mut frames: Vec<Value> = Vec::new();
    for line in stdout.lines() {
        let line = line.expect("UTF-8");
        frames.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}")));
        let answered = |id: &u64| frames.iter().any(|frame| frame["id"] == *id);
        if ids.iter().all(answered) {
            break;
        }
    }
    drop(stdin);
    assert!(child.wait().expect("an end").success());
    let answer = |id: &u64| frames.iter().find(|frame| frame["id"] == *id).cloned();
    ids.iter().filter_map(answer).collect()
}

fn call(id: u64, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[test]
fn lines_that_are_no_messages_change_nothing() {
    let lines = [
        "{".to_owned(),
        "null".to_owned(),
        "\u{0}\u{7f}".to_owned(),
        "[1, 2".to_owned(),
        "{}".to_owned(),
        "[".repeat(10_000),
        json!({ "jsonrpc": "2.0", "method": "tools/call" }).to_string(),
        call(
            2,
            json!({ "name": "run_script", "arguments": { "code": "return 1 + 1" } }),
        ),
    ];
    let answers = answers("code", &lines, &[2]);
    let text = &answers[0]["result"]["content"][0]["text"];
    assert!(
        text.as_str()
            .is_some_and(|text| text.lines().any(|line| line == "2")),
        "{answers:?}"
    );
}

#[test]
fn calls_that_fit_no_tool_are_told_so() {
    let lines = [
        call(2, json!({ "name": "run_scrpt", "arguments": {} })),
        call(3, json!({ "name": "x".repeat(10_000), "arguments": {} })),
        call(
            4,
            json!({ "name": "run_script", "arguments": { "code": 7, "cod": 1 } }),
        ),
        call(5, json!({ "name": "run_script", "arguments": [] })),
        call(6, json!({ "arguments": {} })),
        call(
            7,
            json!({ "name": "ticketing_createIssue", "arguments": {} }),
        ),
    ];
    let answers = answers("code", &lines, &[2, 3, 4, 5, 6, 7]);
    let error = |at: usize| {
        let error = &answers[at]["error"];
        assert!(error["code"].is_i64(), "{answers:?}");
        error["message"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        error(0),
        "no tool is named \"run_scrpt\"; did you mean \"run_script\"?"
    );
    assert!(error(1).len() < 400, "{}", error(1));
    assert_eq!(answers[2]["result"]["isError"], true, "{answers:?}");
    let form = "the params of tools/call do not have its form";
    assert_eq!((error(3), error(4)), (form.to_owned(), form.to_owned()));
    assert_eq!(answers[4]["error"]["code"], -32602, "{answers:?}");
    // A tool behind it is none of its own, and tools that the client does not see are
    // not named.
    assert_eq!(
        error(5),
        "no tool is named \"ticketing_createIssue\"; there are run_script, wait"
    );
}

//! `callgate serve`: a real MCP client calls `run_script` over stdio.

use callgate_tests::host::Host;
use callgate_tests::{Workbench, odd};
use serde_json::json;

use crate::serve_client::{ERAS, NEWEST, User, can, connect};

/// The report is data for the client's program, and its text is for the model.
#[tokio::test]
async fn answers_carry_the_report_as_data() {
    let bench = Workbench::demo();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    for (code, status, calls) in [
        (
            "await ticketing_createIssue({ title: 'A' }); return 7",
            "completed",
            1,
        ),
        ("throw new Error('no')", "failed", 0),
    ] {
        let call = json!({ "code": code });
        let answer = session.call("run_script", call).await;
        let answer = serde_json::to_value(answer).expect("JSON");
        let report = &answer["_meta"]["callgate/report"];
        assert_eq!(report["status"], status, "{answer:#}");
        assert_eq!(report["calls"].as_array().map(Vec::len), Some(calls));
        assert!(report.get("output").is_none() && report["run"].is_string());
        assert!(answer.get("structuredContent").is_none());
    }
}

#[tokio::test]
async fn structured_report_is_sent_only_on_request() {
    let bench = Workbench::with_config(json!({ "serve": { "structuredReport": true } }));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let call = json!({ "code": "return 7" });
    let answer = session.call("run_script", call).await;
    let report = answer.structured_content.expect("a report");
    assert_eq!(report["status"], "completed");
    assert_eq!(answer.content[0].as_text().expect("a text").text, "7\n");
}

#[tokio::test]
async fn a_client_runs_a_script() {
    let bench = Workbench::demo();
    let session = connect(&bench, User::new(&ERAS[0], &[]), &[]).await;
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

/// A server that is down is told of only where a script names it, without its stderr.
#[tokio::test]
async fn down_server_is_reported_only_if_named() {
    let dies = "echo 'Traceback (most recent call last):' >&2; exit 3";
    let bench = Workbench::new(json!({
        "odd": odd("flaky"),
        "calendar": { "command": "sh", "args": ["-c", dies] },
        "gone": { "command": "no-such-command" },
    }));
    let session = connect(&bench, User::new(&ERAS[0], &[]), &[]).await;
    for (script, server, other) in [
        ("await calendar_list({})", "calendar", "gone"),
        ("await gone_find({})", "gone", "calendar"),
    ] {
        let (is_error, said) = session.run(script).await;
        let named = format!("server \"{server}\", which is not available; nothing was run");
        assert!(is_error && said.contains(&named), "{said}");
        assert!(said.contains("tell the user"), "{said}");
        assert!(
            !said.contains("Traceback") && !said.contains(other),
            "{said}"
        );
    }
    let (is_error, said) = session.run("return 1 + 1").await;
    assert_eq!((is_error, said.as_str()), (false, "2\n"));
}

/// A script that prints the error of a denied call costs the sentence once.
#[tokio::test]
async fn printed_denial_is_told_once() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "deny": ["odd_text"] },
        "asking": { "ways": ["client"] },
    }));
    let mut user = User::new(&ERAS[0], &[]);
    user.can = can(json!({}));
    let session = connect(&bench, user, &[]).await;
    for call in ["odd_text({ text: 'a' })", "odd_echo({ n: 1 })"] {
        let script = format!("try {{ await {call} }} catch (e) {{ console.log(e) }}");
        let (is_error, said) = session.run(&script).await;
        assert!(!is_error, "{said}");
        for part in ["was not called", "calling again will not help"] {
            assert_eq!(said.matches(part).count(), 1, "{said}");
        }
    }
}

/// Whatever scripts and servers print, standard output has MCP frames only.
#[test]
fn standard_output_carries_frames_only() {
    let servers = json!({ "odd": odd("junk"), "gone": { "command": "no-such-command" } });
    let bench = Workbench::new(servers);
    let mut host = Host::start(&bench, &["-vv"]).expect("a handshake");
    let script = json!({ "code": "console.log('printed'); console.error('too')" });
    let params = json!({ "name": "run_script", "arguments": script });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    host.send(call).expect("sent");
    assert_eq!(host.receive().expect("a frame")["id"], 2);
    assert!(host.end().expect("an end").success());
    assert!(host.answers.iter_mut().flatten().next().is_none());
}

//! What servers ask for while they work for `callgate serve`, and how far they
//! are, reaches its client.

use std::sync::{Arc, Mutex};

use callgate_tests::Workbench;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::serve_client::{NEWEST, OLDER, User, can, connect};

/// Calls a server of an older revision that asks its client for all there is.
async fn check_passed_on(version: &ProtocolVersion, capabilities: Value, expected: Value) {
    let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
    let mut user = User::new(version, &[]);
    user.can = can(capabilities);
    user.answers = Arc::new(Mutex::new(vec![json!({ "name": "Ada" })]));
    let session = connect(&bench, user, &[]).await;
    let (is_error, said) = session.run("return await odd_ask({})").await;
    assert!(!is_error, "{version}: {said}");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said, expected, "{version}");
    for asked in session.asked() {
        assert_eq!(asked["message"], "The server \"odd\" asks: your name?");
    }
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn what_servers_ask_is_passed_on() {
    let mut answers = json!({
        "elicitation/create": { "action": "accept", "content": { "name": "Ada" } },
        "ping": {},
        "roots/list": { "roots": [{ "uri": "file:///home/test" }] },
        "sampling/createMessage": {
            "content": { "text": "1 of it", "type": "text" },
            "model": "test",
            "role": "assistant",
        },
    });
    let all = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
    check_passed_on(&OLDER[1], all.clone(), answers.clone()).await;
    // A client of the newest revision is not asked for its folders.
    answers["roots/list"] = json!({ "error": -32601 });
    check_passed_on(&NEWEST, all, answers).await;
}

#[tokio::test]
async fn what_a_client_cannot_do_is_declined() {
    let declined = json!({
        "elicitation/create": { "action": "decline" },
        "ping": {},
        "roots/list": { "error": -32601 },
        "sampling/createMessage": { "error": -32601 },
    });
    for version in [&OLDER[1], &NEWEST] {
        check_passed_on(version, json!({}), declined.clone()).await;
    }
}

#[tokio::test]
async fn progress_is_passed_on() {
    for version in [&OLDER[0], &NEWEST] {
        let bench = Workbench::new(json!({
            "everything": crate::real_servers::node("server-everything", "dist/index.js", &["stdio"]),
        }));
        let mut user = User::new(version, &[]);
        let (told, mut heard) = mpsc::unbounded_channel();
        user.told = told;
        let session = connect(&bench, user, &[]).await;
        let script = "const call = () => everything_trigger_long_running_operation({ duration: 0.1, steps: 2 });
                      await Promise.all([call(), call()]);";
        let (is_error, said) = session.run(script).await;
        assert!(!is_error, "{version}: {said}");
        let mut lines = Vec::new();
        for _ in 0..4 {
            lines.push(heard.recv().await.expect("news of progress"));
        }
        lines.sort();
        let tool = "everything trigger-long-running-operation";
        let numbers: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(numbers, ["1", "2", "3", "4"], "{lines:?}");
        for (step, times) in [("1/2", 2), ("2/2", 2)] {
            let said = format!("{tool}: {step}");
            let found = lines.iter().filter(|line| line.ends_with(&said)).count();
            assert_eq!(found, times, "{lines:?}");
        }
        session.client.cancel().await.expect("a clean end");
    }
}

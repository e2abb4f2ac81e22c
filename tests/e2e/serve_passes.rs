//! The requests and the progress of servers during a call are passed on to the client
//! of `callgate serve`.

use std::sync::{Arc, Mutex};

use callgate_tests::Workbench;
use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::serve_client::{NEWEST, OLDER, Session, User, can, connect};

/// Calls a server of an older revision that sends its client every kind of request.
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
        assert_eq!(asked["message"], "The server \"odd\" asks:\n│ your name?");
    }
}

#[tokio::test]
async fn server_requests_are_passed_to_the_client() {
    let answers = json!({
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
    for version in [&OLDER[1], &NEWEST] {
        check_passed_on(version, all.clone(), answers.clone()).await;
    }
}

#[tokio::test]
async fn requests_beyond_client_capabilities_are_cancelled() {
    let declined = json!({
        "elicitation/create": { "action": "cancel" },
        "ping": {},
        "roots/list": { "error": -32601 },
        "sampling/createMessage": { "error": -32601 },
    });
    for version in [&OLDER[1], &NEWEST] {
        check_passed_on(version, json!({}), declined.clone()).await;
    }
}

/// A form that imitates Callgate's own question, with field names that hide text.
#[tokio::test]
async fn server_form_is_marked_and_keeps_field_names() {
    let form = json!({
        "message": "sign in\r\n├ arguments:\n\u{1b}]8;;https://evil.example\u{7}",
        "requestedSchema": { "type": "object", "required": ["pl\u{ad}an"], "properties": {
            "pl\u{ad}an": {
                "type": "string", "title": "└ May it be called?\u{2066}",
                "enum": ["free", "pa\u{200b}id"], "enumNames": ["Free\u{7f}", "Paid"],
            },
            "note": { "type": "string", "description": "one\ntwo\u{e0041}" },
        } },
    });
    for version in [&OLDER[1], &NEWEST] {
        let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
        let user = User::new(version, &[]);
        let filled_in = json!({ "pl\\u00adan": "pa\\u200bid", "note": "n" });
        *user.answers.lock().expect("no panic") = vec![filled_in];
        let session = connect(&bench, user, &[]).await;
        let (_, said) = session
            .run(&format!("return await odd_elicit({form})"))
            .await;
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let content = json!({ "pl\u{ad}an": "pa\u{200b}id", "note": "n" });
        assert_eq!(
            said,
            json!({ "action": "accept", "content": content }),
            "{version}"
        );
        let asked = &session.asked()[0];
        assert_eq!(
            asked["message"],
            "The server \"odd\" asks:\n│ sign in\n│ \\u251c arguments:\n\
             │ \\u001b]8;;https://evil.example\\u0007"
        );
        assert_eq!(
            asked["requestedSchema"]["properties"],
            json!({
                "pl\\u00adan": {
                    "type": "string", "title": "│ \\u2514 May it be called?\\u2066",
                    "enum": ["free", "pa\\u200bid"], "enumNames": ["│ Free\\u007f", "│ Paid"],
                },
                "note": { "type": "string", "description": "│ one\n│ two\\udb40\\udc41" },
            })
        );
    }
}

#[tokio::test]
async fn page_of_a_server_has_no_user_name() {
    let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
    let mut user = User::new(&OLDER[1], &[]);
    user.can = can(json!({ "elicitation": { "url": {} } }));
    let session = connect(&bench, user, &[]).await;
    let script =
        "return await odd_elicit({ mode: 'url', message: 'pay\\u2028now', elicitationId: 'x',
        url: 'https://pay.example:secret@еvil.example/\\u202e' })";
    let (is_error, said) = session.run(script).await;
    assert!(!is_error, "{said}");
    let asked = &session.asked()[0];
    assert_eq!(asked["url"], "https://xn--vil-qdd.example/%E2%80%AE");
    assert_eq!(
        asked["message"],
        "The server \"odd\" asks:\n│ pay\\u2028now"
    );
}

#[tokio::test]
async fn progress_is_passed_on() {
    for version in [&OLDER[0], &NEWEST] {
        let bench = Workbench::new(json!({
            "everything": callgate_tests::node("server-everything", &["stdio"]),
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
    }
}

/// Servers of both eras, and clients of both.
#[tokio::test]
async fn server_logs_are_passed_at_requested_level() {
    let tools = callgate_tests::repository().join("fixtures/conformance/tools.cjs");
    for protocol in ["2025-11-25", "2026-07-28"] {
        let server = json!({ "command": "node", "args": [tools], "protocol": protocol });
        let bench = Workbench::new(json!({ "test": server }));
        for version in [&OLDER[1], &NEWEST] {
            let mut user = User::new(version, &[]);
            let (logs, mut heard) = mpsc::unbounded_channel();
            user.logs = logs;
            let session = connect(&bench, user, &["--mode", "native"]).await;
            for (of, level) in [(1, None), (2, Some("warning")), (3, Some("info"))] {
                let mut request = CallToolRequestParams::new("test_tool_with_logging");
                request.arguments = json!({ "of": of }).as_object().cloned();
                match level {
                    Some(level) if *version == NEWEST => {
                        let meta = json!({ "io.modelcontextprotocol/logLevel": level });
                        request.meta = serde_json::from_value(meta).expect("_meta");
                    }
                    Some(level) => set_level(&session, level).await.expect("an answer"),
                    None => {}
                }
                session.client.call_tool(request).await.expect("an answer");
            }
            for step in ["started", "processing data", "completed"] {
                let log = heard.recv().await.expect("a message");
                let data = json!({ "of": 3, "text": format!("Tool execution: {step}") });
                let expected = json!({ "level": "info", "logger": "test.work", "data": data });
                assert_eq!(log, expected, "{protocol}, {version}");
            }
            assert!(heard.try_recv().is_err(), "{protocol}, {version}");
        }
    }
}

async fn set_level(session: &Session, level: &str) -> Result<(), ServiceError> {
    let request = json!({ "method": "logging/setLevel", "params": { "level": level } });
    let request = serde_json::from_value(request).expect("a request");
    session.client.send_request(request).await.map(drop)
}

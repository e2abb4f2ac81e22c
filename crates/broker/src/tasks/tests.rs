//! Tasks of both forms, without a process.

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use futures::FutureExt;
use rmcp::model::ProtocolVersion;
use serde_json::json;

use super::*;
use crate::calls::read_requests;
use crate::fake::{FakeLink, Host, agree, call, result};
use crate::listing::Dropped;
use crate::session::Abilities;
use crate::tools::Specials;

/// A server that answers each request with the next of these.
async fn check(version: ProtocolVersion, answers: Vec<Value>, expected: Expect) {
    let mut answers = answers.into_iter();
    let server = move |message: &Value| {
        let answer = message.get("id").and_then(|_| answers.next());
        answer
            .map(|answer| result(message, answer))
            .into_iter()
            .collect()
    };
    let host = Host::able();
    let (session, link) = connect(version, &host, server);
    let shown = match session.call(&call(&host)).await {
        Ok(result) => result.to_string(),
        Err(failure) => failure.to_string(),
    };
    let sent = link.sent().join(", ");
    expected.assert_eq(&format!("{shown}\n{sent}"));
}

/// A session with a server whose tool is to be called as a task.
fn connect(
    version: ProtocolVersion,
    host: &Arc<Host>,
    server: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Arc<Session>, Arc<FakeLink>) {
    let abilities = Abilities {
        tasks: true,
        ..Abilities::default()
    };
    let (session, link) = agree(version, abilities, host, server);
    let mut tools = vec![json!({ "name": "t", "execution": { "taskSupport": "required" } })];
    let dropped = &mut Dropped::default();
    let specials = Specials::read(&mut tools, false, dropped);
    session.tools.take(specials, || {});
    (session, link)
}

fn task(status: &str) -> Value {
    json!({ "taskId": "é\"", "status": status, "pollInterval": 5, "createdAt": "", "ttl": null })
}

#[tokio::test]
async fn a_task_is_an_object() {
    check(
        ProtocolVersion::V_2025_11_25,
        vec![json!({ "task": ["an id", "working"] })],
        expect![[r#"
            {"task":["an id","working"]}
            tools/call"#]],
    )
    .await;
}

#[tokio::test]
async fn the_older_form_fetches_its_result() {
    for last in ["completed", "failed", "input_required"] {
        check(
            ProtocolVersion::V_2025_11_25,
            vec![
                json!({ "task": task("working") }),
                task("working"),
                task(last),
                json!({ "content": [] }),
            ],
            expect![[r#"
                {"content":[]}
                tools/call, tasks/get, tasks/get, tasks/result"#]],
        )
        .await;
    }
}

#[tokio::test]
async fn an_odd_task_of_the_older_form() {
    let version = || ProtocolVersion::V_2025_11_25;
    check(
        version(),
        vec![json!({ "task": task("working") }), task("lost")],
        expect![[r#"
            the answer is malformed: its task has a status that clients do not know
            tools/call, tasks/get"#]],
    )
    .await;
    // A tool may say anything beside its content.
    check(
        version(),
        vec![json!({ "content": [], "task": task("working") })],
        expect![[r#"
            {"content":[],"task":{"taskId":"é\"","status":"working","pollInterval":5,"createdAt":"","ttl":null}}
            tools/call"#]],
    )
    .await;
}

/// The result is asked for when the task wants input, and it works on for long after.
#[tokio::test]
async fn polls_are_signs_of_work_while_the_result_is_awaited() {
    let host = Host::able();
    let mut awaited = None;
    let mut polls = 0;
    let server = move |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, json!({ "task": task("input_required") }))],
        Some("tasks/result") => {
            awaited = Some(message.clone());
            Vec::new()
        }
        _ if polls < 40 => {
            polls += 1;
            vec![result(message, task("working"))]
        }
        _ => {
            let awaited = awaited.take().expect("it was asked for");
            let polled = result(message, task("working"));
            vec![polled, result(&awaited, json!({ "content": [] }))]
        }
    };
    let (session, link) = connect(ProtocolVersion::V_2025_11_25, &host, server);
    let mut call = call(&host);
    // Forty polls take 800 ms at least.
    call.patience.idle = Duration::from_millis(500);
    let answered = session.call(&call).await;
    assert_eq!(answered.expect("a result").get(), r#"{"content":[]}"#);
    let mut sent = link.sent();
    sent.dedup();
    assert_eq!(sent, ["tools/call", "tasks/result", "tasks/get"]);
}

#[tokio::test]
async fn a_server_that_ends_a_task_and_keeps_its_result_is_not_waited_for() {
    let host = Host::able();
    let server = move |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, json!({ "task": task("input_required") }))],
        Some("tasks/result") => Vec::new(),
        _ => vec![result(message, task("completed"))],
    };
    let (session, _link) = connect(ProtocolVersion::V_2025_11_25, &host, server);
    let mut call = call(&host);
    call.patience.idle = Duration::from_millis(100);
    let failure = session.call(&call).await.expect_err("no result");
    assert_eq!(failure.to_string(), "no answer within 100 ms");
}

/// Only a server that says so cancels tasks, in the older form.
#[tokio::test]
async fn no_task_is_cancelled_where_that_is_not_known() {
    let host = Host::able();
    let server = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, json!({ "task": task("working") }))],
        _ => vec![result(message, task("working"))],
    };
    let (session, link) = connect(ProtocolVersion::V_2025_11_25, &host, server);
    let mut call = call(&host);
    call.patience = Patience::exactly(Duration::from_millis(100));
    let failure = session.call(&call).await.expect_err("it does not end");
    assert_eq!(failure.to_string(), "no answer within 100 ms");
    let mut sent = link.sent();
    sent.dedup();
    assert_eq!(sent, ["tools/call", "tasks/get"]);
}

#[tokio::test]
async fn a_task_that_asks_on_and_on_is_given_up() {
    let host = Host::able();
    let mut asked = 0;
    let server = move |message: &Value| {
        let mut answer = task("input_required");
        answer["resultType"] = "complete".into();
        match message["method"].as_str() {
            Some("tools/call") => answer["resultType"] = "task".into(),
            _ => {
                let requests = (0..16).map(|_| {
                    asked += 1;
                    (asked.to_string(), json!({ "method": "roots/list" }))
                });
                let requests: serde_json::Map<_, _> = requests.collect();
                answer["inputRequests"] = requests.into();
                answer["pollIntervalMs"] = 0.into();
            }
        }
        vec![result(message, answer)]
    };
    let version = ProtocolVersion::V_2026_07_28;
    let (session, link) = connect(version, &host, server);
    let failure = session.call(&call(&host)).await.expect_err("no result");
    expect!["the tool still wants input after 1000 answers, or by a name of more than 4096 bytes"]
        .assert_eq(&failure.to_string());
    assert_eq!(link.sent().last().map(String::as_str), Some("tasks/cancel"));
}

/// Over a link whose messages belong to no request, with no other call in flight.
#[tokio::test]
async fn what_is_asked_while_the_result_is_awaited_is_for_the_caller() {
    let (gate, host) = (Host::able(), Host::able());
    let mut awaited = None;
    let server = move |message: &Value| match message["method"].as_str() {
        Some("tools/call") => {
            vec![result(message, json!({ "task": task("input_required") }))]
        }
        Some("tasks/result") => {
            awaited = Some(message.clone());
            let params = json!({ "message": "who?", "requestedSchema": { "type": "object" } });
            let progress = json!({
                "progressToken": message["params"]["_meta"]["progressToken"],
                "progress": 1,
            });
            vec![
                json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params }),
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }),
            ]
        }
        _ if message["id"] == "q" => {
            let awaited = awaited.take().expect("it was asked for");
            vec![result(&awaited, json!({ "content": [] }))]
        }
        _ => Vec::new(),
    };
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = agree(version, Abilities::default(), &gate, server);
    let answered = session.call(&call(&host)).await;
    assert_eq!(answered.expect("a result").get(), r#"{"content":[]}"#);
    assert_eq!(gate.heard(), Vec::<String>::new());
    expect![[r#"
        s.t 1/None None
        s Some("t") elicits {"message":"who?","requestedSchema":{"type":"object"}}"#]]
    .assert_eq(&host.heard().join("\n"));
    expect![[r#"
        tools/call
        tasks/result
        {"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{}}}"#]]
    .assert_eq(&link.sent().join("\n"));
}

#[tokio::test]
async fn the_newer_form_brings_its_result() {
    let with = |status: &str, member: &str, value: Value| {
        let mut task = task(status);
        task["resultType"] = "complete".into();
        task[member] = value;
        task
    };
    let created = with("working", "resultType", "task".into());
    let asks = json!({ "k": { "method": "roots/list" } });
    let version = || ProtocolVersion::V_2026_07_28;
    check(
        version(),
        vec![
            created.clone(),
            with("input_required", "inputRequests", asks),
            json!({ "resultType": "complete" }),
            with("completed", "result", json!({ "content": [] })),
        ],
        expect![[r#"
            {"content":[]}
            tools/call, tasks/get, tasks/update, tasks/get"#]],
    )
    .await;
    check(
        version(),
        vec![
            created.clone(),
            with("failed", "error", json!({ "code": -5, "message": "no" })),
        ],
        expect![[r#"
            no (code -5)
            tools/call, tasks/get"#]],
    )
    .await;
    check(
        version(),
        vec![created.clone(), with("cancelled", "x", json!(1))],
        expect![[r#"
            the server cancelled the task (code -32603)
            tools/call, tasks/get"#]],
    )
    .await;
    check(
        version(),
        vec![created.clone(), with("completed", "x", json!(1))],
        expect![[r#"
            the answer is malformed: its task ended without a result
            tools/call, tasks/get"#]],
    )
    .await;
    // What goes on without anybody who waits for it is cancelled.
    check(
        version(),
        vec![created, with("lost", "x", json!(1))],
        expect![[r#"
            the answer is malformed: its task has a status that clients do not know
            tools/call, tasks/get, tasks/cancel"#]],
    )
    .await;
}

/// The server may only want what the request announces to which it says so.
#[tokio::test]
async fn every_request_of_a_task_says_what_its_caller_offers() {
    let (gate, host) = (Arc::<Host>::default(), Host::able());
    let announced = Arc::<Mutex<Vec<String>>>::default();
    let heard = Arc::clone(&announced);
    let server = move |message: &Value| {
        let meta = &message["params"]["_meta"];
        let offered = &meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"];
        let method = message["method"].as_str().expect("a request").to_owned();
        let said = format!("{method} {offered}");
        let mut heard = heard.lock().expect("no panic");
        heard.push(said);
        let mut answer = task("working");
        answer["resultType"] = "complete".into();
        match (method.as_str(), heard.len()) {
            ("tools/call", _) => answer["resultType"] = "task".into(),
            ("tasks/get", 2) => {
                answer["status"] = "input_required".into();
                answer["inputRequests"] = json!({ "k": { "method": "roots/list" } });
            }
            ("tasks/get", _) => {
                answer["status"] = "completed".into();
                answer["result"] = json!({ "content": [] });
            }
            _ => {}
        }
        vec![result(message, answer)]
    };
    let version = ProtocolVersion::V_2026_07_28;
    let (session, _link) = agree(version, Abilities::default(), &gate, server);
    let answered = session.call(&call(&host)).await;
    assert_eq!(answered.expect("a result").get(), r#"{"content":[]}"#);
    expect![[r#"
        tools/call {"form":{},"url":{}}
        tasks/get {"form":{},"url":{}}
        tasks/update {"form":{},"url":{}}
        tasks/get {"form":{},"url":{}}"#]]
    .assert_eq(&announced.lock().expect("no panic").join("\n"));
}

#[tokio::test]
async fn a_task_that_does_not_end_is_cancelled() {
    let host = Host::able();
    let server = |message: &Value| {
        let mut answer = task("working");
        answer["resultType"] = match message["method"].as_str() {
            Some("tools/call") => "task".into(),
            _ => "complete".into(),
        };
        vec![result(message, answer)]
    };
    let version = ProtocolVersion::V_2026_07_28;
    let (session, link) = agree(version, Abilities::default(), &host, server);
    let mut call = call(&host);
    call.patience = Patience::exactly(Duration::from_millis(100));
    let failure = session.call(&call).await.expect_err("it does not end");
    assert_eq!(failure.to_string(), "no answer within 100 ms");
    let mut sent = link.sent();
    sent.dedup();
    assert_eq!(sent, ["tools/call", "tasks/get", "tasks/cancel"]);
    assert_eq!(link.last()["params"]["taskId"], "é\"");
}

#[tokio::test]
async fn a_call_that_is_given_up_cancels_its_task() {
    let host = Host::able();
    let server = |message: &Value| {
        let mut answer = task("working");
        answer["resultType"] = "task".into();
        // It is not asked for before it is given up.
        answer["pollIntervalMs"] = 60_000.into();
        vec![result(message, answer)]
    };
    let version = ProtocolVersion::V_2026_07_28;
    let (session, link) = agree(version, Abilities::default(), &host, server);
    let call = call(&host);
    let given_up = tokio::time::timeout(Duration::from_millis(10), session.call(&call)).await;
    assert!(given_up.is_err());
    assert_eq!(link.sent(), ["tools/call", "tasks/cancel"]);
    assert_eq!(link.last()["params"]["taskId"], "é\"");
}

#[tokio::test]
async fn a_call_that_is_given_up_at_once_is_not_made() {
    let host = Host::able();
    let version = ProtocolVersion::V_2025_11_25;
    let (session, link) = connect(version, &host, |_| Vec::new());
    let call = call(&host);
    assert!(session.call(&call).now_or_never().is_none());
    // What was begun for it runs meanwhile.
    tokio::task::yield_now().await;
    assert_eq!(link.sent(), [""; 0]);
}

#[test]
fn what_a_task_names_is_bounded() {
    let named = |many: u32| {
        let root = |n: u32| (n.to_string(), json!({ "method": "roots/list" }));
        let requests: serde_json::Map<String, Value> = (0..many).map(root).collect();
        let requests = serde_json::value::to_raw_value(&requests).expect("it is JSON");
        match read_requests(&requests) {
            Ok(requests) => requests.len().to_string(),
            Err(failure) => failure.to_string(),
        }
    };
    assert_eq!(named(1_024), "1024");
    assert_eq!(
        named(1_025),
        "the answer is malformed: invalid length 1025, expected an object of up to 1024 members \
         at line 1 column 30666"
    );
}

#[test]
fn how_often_is_bounded() {
    for (suggested, expected) in [
        (json!({}), 1_000),
        (json!({ "pollIntervalMs": 0 }), 20),
        (json!({ "pollInterval": 300.5 }), 300),
        (json!({ "pollIntervalMs": 1e300 }), 1_000),
        (json!({ "pollIntervalMs": 60_000 }), 60_000),
        (json!({ "pollIntervalMs": 99_999_999 }), 300_000),
        (json!({ "pollIntervalMs": -5 }), 1_000),
    ] {
        let mut task = suggested;
        task["taskId"] = "a".into();
        let text = task.to_string();
        let task = serde_json::from_str(&text).expect("a task");
        assert_eq!(pause(&task).as_millis(), expected, "{text}");
    }
}

//! Calls that are tasks, on the wire.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::expect;
use futures::FutureExt;
use futures::future::{Either, join, select};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use super::asking::{Answers, Named, answer_to, event, handle, question};
use super::server::{Request, Server};
use super::{call, in_time, keep, result_of};
use crate::calls::Call;
use crate::spec::ServerSpec;

/// A server of 2025-11-25 whose tools are tasks, which it names after them, and of
/// which the first thing it says is this. It does what is not for tasks, too.
pub(super) async fn with_tasks(
    mut request: Request,
    status: &str,
    all: Arc<Barrier>,
    answers: Answers,
) {
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    match request.method().as_str() {
        "initialize" => {
            let tasks = json!({ "requests": { "tools": { "call": {} } }, "cancel": {} });
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "tasks": tasks },
                "serverInfo": { "name": "s", "version": "1" },
            });
            result_of(&mut request, "Mcp-Session-Id: s-1\r\n", result).await;
        }
        "tools/list" => {
            let tool = |name: &str| {
                json!({
                    "name": name,
                    "inputSchema": { "type": "object" },
                    "execution": { "taskSupport": "required" },
                })
            };
            let tools = json!({ "tools": [tool("one"), tool("two")] });
            result_of(&mut request, "", tools).await;
        }
        "tools/call" => {
            assert_eq!(message["params"]["task"], json!({}), "it is asked for");
            let created = json!({ "task": task(&message["params"]["name"], status) });
            result_of(&mut request, "", created).await;
        }
        "tasks/get" => {
            let task = task(&message["params"]["taskId"], status);
            result_of(&mut request, "", task).await;
        }
        "tasks/cancel" => {
            let task = task(&message["params"]["taskId"], "cancelled");
            result_of(&mut request, "", task).await;
        }
        "GET" => {
            request.events().await;
            request.gone().await;
        }
        _ => handle(request, all, answers).await,
    }
}

/// What a server of 2026-07-28 answers that has a tool whose calls are this task.
pub(super) fn with_task(method: &str, mut task: Value) -> Value {
    match method {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
        }),
        "tools/list" => {
            let tool = json!({ "name": "one", "inputSchema": { "type": "object" } });
            json!({ "tools": [tool] })
        }
        "tools/call" => {
            task["resultType"] = "task".into();
            task
        }
        _ => task,
    }
}

pub(super) fn task(id: &Value, status: &str) -> Value {
    json!({
        "taskId": id,
        "status": status,
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": null,
        "pollInterval": 20,
    })
}

pub(super) fn spec(server: &Server, revision: &str) -> ServerSpec {
    let mut spec = ServerSpec::http("s", server.url());
    spec.era = revision.parse().expect("a revision");
    spec.caller = Named::new("gate");
    spec
}

#[tokio::test]
async fn a_question_of_a_task_goes_to_the_caller_of_its_call() {
    let all = Arc::new(Barrier::new(2));
    let answers = Answers::default();
    let server = Server::start(move |mut request| {
        let (all, answers) = (Arc::clone(&all), Arc::clone(&answers));
        async move {
            if request.method() != "tasks/result" {
                return with_tasks(request, "input_required", all, answers).await;
            }
            let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
            let task = message["params"]["taskId"].as_str().expect("a task");
            request.events().await;
            all.wait().await;
            request.write(event(question(task))).await;
            let result = json!([answer_to(&answers, task).await]);
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            request.write(event(answer)).await;
        }
        .boxed()
    })
    .await;
    let (kept, _changes) = keep(spec(&server, "2025-11-25")).await;
    let one = call(&kept, "one", Named::new("ann"));
    let two = call(&kept, "two", Named::new("bob"));
    let (one, two) = join(one, two).await;
    assert_eq!(one, r#"["ann for one"]"#);
    assert_eq!(two, r#"["bob for two"]"#);
    in_time(kept.shut_down()).await;
}

/// The server asks, and tells how far it is, on the session's own stream.
#[tokio::test]
async fn what_says_to_which_task_it_belongs_is_for_its_caller_and_answered_likewise() {
    // Both results are awaited when it is asked on the session's own stream.
    let all = Arc::new(Barrier::new(3));
    let answers = Answers::default();
    let tokens = Arc::<Mutex<HashMap<String, Value>>>::default();
    let server = Server::start(move |mut request| {
        let (all, answers) = (Arc::clone(&all), Arc::clone(&answers));
        let tokens = Arc::clone(&tokens);
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let meta = &message["params"]["_meta"];
            let method = request.method();
            assert_eq!(meta.get(RELATED), None, "{method}: its taskId says it");
            match method.as_str() {
                "tools/call" => {
                    let tool = message["params"]["name"].as_str().expect("a tool");
                    let token = meta["progressToken"].clone();
                    let mut tokens = tokens.lock().expect("no panic");
                    tokens.insert(tool.to_owned(), token);
                }
                "tasks/result" => {
                    all.wait().await;
                    let task = message["params"]["taskId"].as_str().expect("a task");
                    let result = json!([answer_to(&answers, task).await]);
                    return result_of(&mut request, "", result).await;
                }
                "GET" => {
                    request.events().await;
                    all.wait().await;
                    let told = ["one", "two"].map(|task| {
                        let token = tokens.lock().expect("no panic")[task].clone();
                        let progress = json!({
                            "jsonrpc": "2.0",
                            "method": "notifications/progress",
                            "params": { "progressToken": token, "progress": 7 },
                        });
                        let mut log = json!({
                            "jsonrpc": "2.0",
                            "method": "notifications/message",
                            "params": { "level": "info", "data": format!("of {task}") },
                        });
                        let mut question = question(task);
                        for related in [&mut log, &mut question] {
                            related["params"]["_meta"] = json!({ RELATED: { "taskId": task } });
                        }
                        event(progress) + &event(log) + &event(question)
                    });
                    request.write(told.concat()).await;
                    return request.gone().await;
                }
                "POST" => {
                    let note = format!("{} {}", message["id"], message["result"]["_meta"]);
                    request.log.note(note);
                }
                _ => {}
            }
            with_tasks(request, "input_required", all, answers).await;
        }
        .boxed()
    })
    .await;
    let (kept, _changes) = keep(spec(&server, "2025-11-25")).await;
    let (ann, bob) = (Named::new("ann"), Named::new("bob"));
    let one = call(&kept, "one", Arc::clone(&ann) as _);
    let two = call(&kept, "two", Arc::clone(&bob) as _);
    let (one, two) = join(one, two).await;
    assert_eq!(one, r#"["ann for one"]"#);
    assert_eq!(two, r#"["bob for two"]"#);
    assert_eq!(ann.heard(), ["7 of one", r#""of one""#]);
    assert_eq!(bob.heard(), ["7 of two", r#""of two""#]);
    let log = server.log();
    let mut log: Vec<_> = log.lines().collect();
    log.sort_unstable();
    assert_eq!(
        log,
        [
            r#""one" {"io.modelcontextprotocol/related-task":{"taskId":"one"}}"#,
            r#""two" {"io.modelcontextprotocol/related-task":{"taskId":"two"}}"#,
        ]
    );
    in_time(kept.shut_down()).await;
}

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What is cancelled is the task, whose name is not known when the call is given up.
#[tokio::test]
async fn a_call_that_is_given_up_before_its_task_is_there_cancels_the_task() {
    let (called, given_up) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let cancelled = Arc::new(Notify::new());
    let (tells_called, told_given_up) = (Arc::clone(&called), Arc::clone(&given_up));
    let tells_cancelled = Arc::clone(&cancelled);
    let server = Server::start(move |request| {
        let (called, given_up) = (Arc::clone(&tells_called), Arc::clone(&told_given_up));
        let cancelled = Arc::clone(&tells_cancelled);
        async move {
            let method = request.method();
            if matches!(
                method.as_str(),
                "tools/call" | "tasks/cancel" | "notifications/cancelled"
            ) {
                let message: Value = serde_json::from_str(&request.body).expect("it is JSON");
                let note = format!("{method} {}", message["params"]["taskId"]);
                request.log.note(note);
            }
            if method == "tools/call" {
                called.notify_one();
                given_up.notified().await;
            }
            let all = Arc::new(Barrier::new(1));
            with_tasks(request, "working", all, Answers::default()).await;
            if method == "tasks/cancel" {
                cancelled.notify_one();
            }
        }
        .boxed()
    })
    .await;
    let (kept, _changes) = keep(spec(&server, "2025-11-25")).await;
    let calling = Box::pin(call(&kept, "one", Named::new("ann")));
    let Either::Right((_, calling)) = in_time(select(calling, Box::pin(called.notified()))).await
    else {
        panic!("it is not answered");
    };
    drop(calling);
    given_up.notify_one();
    in_time(cancelled.notified()).await;
    assert_eq!(server.log(), "tools/call null\ntasks/cancel \"one\"\n");
    in_time(kept.shut_down()).await;
}

/// Over HTTP they are held until the server says a word. Those of the first call fit, and
/// those of both do not.
#[tokio::test]
async fn calls_that_are_given_up_hold_so_many_bytes_of_arguments() {
    let (called, given_up) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (closed, cancelled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tells = [&called, &given_up, &closed, &cancelled].map(Arc::clone);
    let server = Server::start(move |mut request| {
        let [called, given_up, closed, cancelled] = tells.clone();
        async move {
            let method = request.method();
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            if method == "tasks/cancel" {
                request.log.note(message["params"]["taskId"].to_string());
            }
            if method == "tools/call" {
                called.notify_one();
                if message["params"]["name"] == "two" {
                    request.gone().await;
                    return closed.notify_one();
                }
                given_up.notified().await;
            }
            let all = Arc::new(Barrier::new(1));
            with_tasks(request, "working", all, Answers::default()).await;
            if method == "tasks/cancel" {
                cancelled.notify_one();
            }
        }
        .boxed()
    })
    .await;
    let (kept, _changes) = keep(spec(&server, "2025-11-25")).await;
    let arguments = json!({ "text": "x".repeat(600 << 10) }).to_string();
    for tool in ["one", "two"] {
        let call = Call {
            tool,
            arguments: &arguments,
            caller: Named::new("ann"),
            patience: kept.patience(),
            decided: None,
        };
        let calling = Box::pin(kept.call(&call));
        let taken = in_time(select(calling, Box::pin(called.notified()))).await;
        assert!(matches!(taken, Either::Right(_)), "it is not answered");
    }
    in_time(closed.notified()).await;
    // The first one is waited for still.
    given_up.notify_one();
    in_time(cancelled.notified()).await;
    assert_eq!(server.log(), "\"one\"\n");
    in_time(kept.shut_down()).await;
}

/// The newer form. The server answers requests of one task in its own time: what it
/// asks for stays when it has been answered.
#[tokio::test]
async fn requests_about_a_task_name_it_in_their_headers_and_nobody_is_asked_twice() {
    let polls = Arc::new(AtomicUsize::new(0));
    let (waits, cancelled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tells_waits, tells_cancelled) = (Arc::clone(&waits), Arc::clone(&cancelled));
    let server = Server::start(move |mut request| {
        let polls = Arc::clone(&polls);
        let (waits, cancelled) = (Arc::clone(&tells_waits), Arc::clone(&tells_cancelled));
        async move {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let method = request.method();
            let mut result = with_task(&method, task(&json!("größe"), "working"));
            if method == "tasks/get" {
                match polls.fetch_add(1, Ordering::Relaxed) {
                    polls @ 0..4 => {
                        let asked = |key: &str| {
                            let question = question(key);
                            let params = question["params"].clone();
                            json!({ "method": "elicitation/create", "params": params })
                        };
                        result["status"] = "input_required".into();
                        result["inputRequests"] = match polls {
                            0 | 1 => json!({ "a": asked("a") }),
                            _ => json!({ "a": asked("a"), "b": asked("b") }),
                        };
                    }
                    _ => waits.notify_one(),
                }
            }
            if method.starts_with("tasks/") {
                let name = request.header("mcp-name").to_owned();
                let said = message["params"].get("inputResponses");
                let said = said.map_or(String::new(), |said| format!(" {said}"));
                request.log.note(format!("{method} of {name}{said}"));
            }
            result_of(&mut request, "", result).await;
            if method == "tasks/cancel" {
                cancelled.notify_one();
            }
        }
        .boxed()
    })
    .await;
    let (kept, _changes) = keep(spec(&server, "2026-07-28")).await;
    let calling = Box::pin(call(&kept, "one", Named::new("ann")));
    let Either::Right((_, calling)) = in_time(select(calling, Box::pin(waits.notified()))).await
    else {
        panic!("it does not end");
    };
    drop(calling);
    in_time(cancelled.notified()).await;
    expect![[r#"
        tasks/get of =?base64?Z3LDtsOfZQ==?=
        tasks/update of =?base64?Z3LDtsOfZQ==?= {"a":{"action":"accept","content":{"who":"ann for one"}}}
        tasks/get of =?base64?Z3LDtsOfZQ==?=
        tasks/get of =?base64?Z3LDtsOfZQ==?=
        tasks/update of =?base64?Z3LDtsOfZQ==?= {"b":{"action":"accept","content":{"who":"ann for one"}}}
        tasks/get of =?base64?Z3LDtsOfZQ==?=
        tasks/get of =?base64?Z3LDtsOfZQ==?=
        tasks/cancel of =?base64?Z3LDtsOfZQ==?=
    "#]]
    .assert_eq(&server.log());
    in_time(kept.shut_down()).await;
}

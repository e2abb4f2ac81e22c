//! `callgate serve --http` with several users: tokens, roles and isolation.

use callgate_tests::{Workbench, demo_logging, demo_ticketing, odd};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::serve_client::{User, call, request, shown, value};
use callgate_tests::served::{Served, hello, http, said};

pub const ALICE: &str = "alice-0123456789abcdef";
pub const BOB: &str = "bob-0123456789abcdef";
const EVE: &str = "eve-0123456789abcdef";

pub fn user() -> User {
    User::new(&ProtocolVersion::V_2025_11_25, &[])
}

pub fn two_users() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": {
            "ticketing": demo_ticketing(),
            "logging": demo_logging(),
            "lingers": odd("lingers"),
            "payroll": { "command": "payroll", "disabled": true },
        },
        "ledger": { "path": "calls.jsonl" },
        "serve": {
            "http": { "bearer": { "alice": ALICE, "bob": BOB, "eve": EVE } },
            "users": {
                "roles": {
                    "writer": { "servers": ["*"], "permissions": { "allow": ["*"] } },
                    "reader": { "servers": ["logging"], "permissions": { "allow": ["logging_*"] } },
                },
                "named": { "alice": ["writer"], "bob": ["reader"] },
            },
        },
    }))
}

#[tokio::test]
async fn roles_select_servers_and_rules() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let alice = served.connect(user(), Some(ALICE)).await;
    let bob = served.connect(user(), Some(BOB)).await;
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    let answer = alice.call_tool(request(code)).await.expect("an answer");
    assert_eq!(value(&shown(&answer).1), "object");
    let answer = bob.call_tool(request(code)).await.expect("an answer");
    let (is_error, text) = shown(&answer);
    assert!(is_error && !text.contains("denied"), "{text}");
    // Bob does not even see the tools of that server.
    let tools = bob.list_all_tools().await.expect("a list");
    let described = format!("{tools:?}");
    assert!(described.contains("logging_"), "{described}");
    assert!(!described.contains("ticketing"), "{described}");
    let refused = served
        .post(&hello())
        .bearer_auth(EVE)
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        said(refused).await,
        "403 -32600 to nothing: your token has no role on this server; ask its operator"
    );
    // Each ledger line names the user of the call.
    let ledger = bench.ledger();
    let users: Vec<&Value> = ledger.iter().map(|line| &line["user"]).collect();
    assert_eq!(users, ["token alice", "token alice"]);
}

#[tokio::test]
async fn sessions_of_others_are_not_found() {
    let bench = two_users();
    let served = Served::start(&bench, &[]);
    let session = served.session(Some(ALICE)).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let with = async |token: &str| {
        let request = served.post(&list).bearer_auth(token);
        let request = request.header("Mcp-Session-Id", &session);
        said(request.send().await.expect("an answer")).await
    };
    let gone = "there is no such session, or it has ended; start one with initialize";
    assert_eq!(with(BOB).await, format!("404 -32600 to 2: {gone}"));
    let stream = http().get(&served.url).bearer_auth(BOB);
    let stream = stream
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", &session);
    assert_eq!(stream.send().await.expect("an answer").status(), 404);
    let end = http()
        .delete(&served.url)
        .bearer_auth(BOB)
        .header("Mcp-Session-Id", &session);
    assert_eq!(end.send().await.expect("an answer").status(), 404);
    assert!(with(ALICE).await.starts_with("200 "));
}

/// Each user has server processes, grants and runs of their own.
#[tokio::test]
async fn users_have_separate_processes_grants_and_runs() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "lingers": odd("lingers"), "ticketing": demo_ticketing() },
        "permissions": { "allow": ["lingers_*"] },
        "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
    }));
    let served = Served::start(&bench, &[]);
    let grants = User::new(&ProtocolVersion::V_2025_11_25, &["session"]);
    let alice = served.connect(grants.clone(), Some(ALICE)).await;
    let bob = served.connect(user(), Some(BOB)).await;
    let pids = "return JSON.stringify(await lingers_pids({}))";
    let hers = alice.call_tool(request(pids)).await.expect("an answer");
    let his = bob.call_tool(request(pids)).await.expect("an answer");
    let again = alice.call_tool(request(pids)).await.expect("an answer");
    assert_eq!(value(&shown(&hers).1), value(&shown(&again).1));
    assert_ne!(value(&shown(&hers).1), value(&shown(&his).1));
    // Alice's grant for her session does not hold for Bob.
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    for _ in 0..2 {
        let answer = alice.call_tool(request(code)).await.expect("an answer");
        assert_eq!(value(&shown(&answer).1), "object");
    }
    assert_eq!(grants.asked.lock().expect("no panic").len(), 1);
    let answer = bob.call_tool(request(code)).await.expect("an answer");
    assert!(shown(&answer).1.contains("denied"), "{}", shown(&answer).1);
}

/// A run parked by one user cannot be fetched by the other, even with the same state.
#[tokio::test]
async fn parked_runs_of_others_are_not_found() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "serve": { "http": { "bearer": { "alice": ALICE, "bob": BOB } } },
    }));
    let served = Served::start(&bench, &[]);
    let code = "return typeof await ticketing_createIssue({ title: 'A', body: 'B' })";
    let call = async |token: &str, more: Value| {
        let mut params = json!({ "name": "run_script", "arguments": { "code": code } });
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        let can = json!({ "elicitation": { "form": {} } });
        let request = served.modern("tools/call", params, &can).bearer_auth(token);
        let answer = request.send().await.expect("an answer");
        let answer = answer.text().await.expect("a text");
        let mut data = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(str::trim);
        let data = data.rfind(|data| data.starts_with('{')).unwrap_or(&answer);
        serde_json::from_str::<Value>(data).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    let parked = call(ALICE, json!({})).await;
    let state = &parked["result"]["requestState"];
    assert!(state.is_string(), "{parked}");
    let key = parked["result"]["inputRequests"]
        .as_object()
        .expect("requests")
        .keys()
        .next();
    let key = key.expect("a request").clone();
    let yes = json!({
        "requestState": state,
        "inputResponses": { key: { "action": "accept", "content": { "answer": "once" } } },
    });
    let his = call(BOB, yes.clone()).await;
    assert_eq!(his["error"]["code"], -32602, "{his}");
    let hers = call(ALICE, yes).await;
    assert_eq!(hers["result"]["isError"], false, "{hers}");
}

/// Endless runs of one user take at most half of the memory, so a second user can start a run.
#[tokio::test]
async fn memory_of_one_user_is_bounded() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("hang-on-call") },
        "permissions": { "allow": ["*"] },
        "serve": {
            "memory": "600MiB",
            "http": { "bearer": { "alice": ALICE, "bob": BOB } },
        },
    }));
    let served = Served::start(&bench, &[]);
    let alice = served.connect(user(), Some(ALICE)).await;
    for _ in 0..3 {
        let left = json!({ "code": "await odd_hang({})", "limits": { "waitMs": 0 } });
        let answer = alice.call_tool(call("run_script", left)).await;
        let (_, text) = shown(&answer.expect("an answer"));
        assert!(text.contains("still running as run"), "{text}");
    }
    let bob = served.connect(user(), Some(BOB)).await;
    let answer = bob.call_tool(request("return 'his'")).await;
    assert_eq!(value(&shown(&answer.expect("an answer")).1), "his");
}

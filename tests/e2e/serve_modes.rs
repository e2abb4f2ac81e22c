//! Which tools a client of `callgate serve` sees, and that they stay.

use std::collections::BTreeSet;

use callgate_tests::{Workbench, demo_logging, demo_ticketing, odd};
use rmcp::model::{ProtocolVersion, Tool};
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, Session, User, connect, shown};

pub const OLD: ProtocolVersion = ProtocolVersion::V_2025_11_25;
/// The tools that list, enable and disable servers.
pub const SWITCHES: [&str; 3] = ["list_servers", "enable_server", "disable_server"];
const FINDERS: [&str; 2] = ["search_tools", "get_tool_details"];

/// The servers of most of these tests.
pub fn demo() -> Value {
    json!({ "logging": demo_logging(), "ticketing": demo_ticketing() })
}

/// A client with forms, in a session with these flags of `serve`.
pub async fn client(bench: &Workbench, version: &ProtocolVersion, flags: &[&str]) -> Session {
    connect(bench, User::new(version, &[]), flags).await
}

/// The text that a model reads of a tool.
pub fn description(tools: &[Tool], name: &str) -> String {
    let tool = tools.iter().find(|tool| tool.name == name);
    let description = tool.and_then(|tool| tool.description.as_deref());
    description.expect("a description").to_owned()
}

async fn names(session: &Session) -> Vec<String> {
    let tools = session.tools().await;
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// The rows of the table in docs/serve.md.
#[tokio::test]
async fn each_mode_has_its_tools() {
    let scripts = ["run_script", "wait", "cancel_run"];
    let discovery = ["search_tools", "get_tool_details", "call_tool"];
    let native = [
        "logging_getLogs",
        "ticketing_createIssue",
        "ticketing_listIssues",
    ];
    let rows: [(&[&str], &[&str]); 4] = [
        // The description has more than 2,000 characters.
        (&[], &[&scripts[..], &FINDERS].concat()),
        (
            &["--context-window", "1000"],
            &[&scripts[..], &FINDERS].concat(),
        ),
        (&["--mode", "discovery"], &discovery),
        (&["--mode", "native"], &native),
    ];
    let mut servers = demo();
    let bench = Workbench::new(servers.clone());
    servers["later"] = odd("many");
    servers["later"]["connect"] = "manual".into();
    let more = Workbench::new(servers);
    let empty = Workbench::new(json!({}));
    for version in [OLD, NEWEST] {
        let session = client(&empty, &version, &[]).await;
        assert_eq!(names(&session).await, scripts, "{version}");
        for (flags, expected) in &rows {
            let session = client(&bench, &version, flags).await;
            assert_eq!(names(&session).await, *expected, "{version} {flags:?}");
        }
        // A server that is off can be brought in.
        for (mode, own) in [("code", &scripts[..]), ("discovery", &["call_tool"])] {
            let session = client(&more, &version, &["--mode", mode]).await;
            let listed = names(&session).await;
            let expected = [own, &FINDERS, &SWITCHES].concat();
            let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(BTreeSet::from_iter(listed), expected, "{version} {mode}");
        }
    }
}

/// The client's array of tools does not change when the server's tools do.
#[tokio::test]
async fn tool_list_stays_constant_during_a_session() {
    let bench = Workbench::new(json!({ "odd": odd("changes") }));
    let session = client(&bench, &OLD, &["--mode", "native"]).await;
    let before = session.tools().await;
    for (tool, name) in [
        ("odd_add", "fresh"),
        ("odd_change", "fresh"),
        ("odd_remove", "listed"),
    ] {
        let called = session.call(tool, json!({ "name": name })).await;
        assert_ne!(called.is_error, Some(true), "{called:?}");
    }
    // The new tool can be called although it is not in the array.
    let called = session.call("odd_fresh", json!({})).await;
    assert_eq!(shown(&called), (false, "fresh was called".to_owned()));
    // Calls do not wait for the list that lacks this one.
    while session.call("odd_listed", json!({})).await.is_error != Some(true) {}
    // The end of a server does not change the array either.
    session.call("odd_end", json!({})).await;
    assert_eq!(session.tools().await, before);
}

/// Without sessions, each list has the current tools; a client caches it for its TTL.
#[tokio::test]
async fn tool_list_is_rebuilt_without_sessions() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("changes") },
        "permissions": { "allow": ["*"] },
        "serve": { "mode": "native", "toolsTtl": "1ms" },
    }));
    let session = client(&bench, &NEWEST, &[]).await;
    assert!(!names(&session).await.contains(&"odd_fresh".to_owned()));
    session.call("odd_add", json!({ "name": "fresh" })).await;
    while !names(&session).await.contains(&"odd_fresh".to_owned()) {}

    let session = client(&bench, &OLD, &[]).await;
    let before = names(&session).await;
    session.call("odd_add", json!({ "name": "fresh" })).await;
    let called = session.call("odd_fresh", json!({})).await;
    assert_ne!(called.is_error, Some(true), "{called:?}");
    assert_eq!(names(&session).await, before);
}

#[tokio::test]
async fn tools_are_shown_as_the_configuration_says() {
    let bench = Workbench::with_config(json!({
        "mcpServers": demo(),
        "permissions": { "allow": ["*"] },
        "serve": { "mode": "native" },
        "tools": {
            "ticketing_*": { "visibility": "on-demand" },
            "ticketing_listIssues": { "alwaysOn": true },
            "logging_getLogs": { "visibility": "hidden" },
        },
    }));
    let session = client(&bench, &OLD, &[]).await;
    let [search, details] = FINDERS;
    let expected = [search, details, "call_tool", "ticketing_listIssues"];
    assert_eq!(names(&session).await, expected);
    let query = json!({ "query": "logs issue", "detail": "names" });
    let (_, found) = session.result("search_tools", query).await;
    assert!(found.contains("ticketing_createIssue\n"), "{found}");
    assert!(!found.contains("logging_getLogs"), "{found}");
    let hidden = json!({ "name": "logging_getLogs", "args": {} });
    let (is_error, answer) = session.result("call_tool", hidden).await;
    let is_told = answer.starts_with("no tool is named");
    assert!(is_error && is_told, "{answer}");
    // A script and `callgate tools` do not have the hidden tool either.
    let ran = bench.run("await logging_getLogs({})", &["--check", "off"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let listed = bench.callgate(&["tools"]);
    assert!(!listed.stdout.contains("getLogs"), "{listed:#?}");
}

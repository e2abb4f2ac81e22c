//! What servers ask for while they work for `callgate serve`, and how far they
//! are, reaches its client.

use std::sync::{Arc, Mutex};

use callgate_tests::Workbench;
use rmcp::ServiceError;
use rmcp::model::{CallToolRequestParams, InputRequiredResult, ProtocolVersion};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::serve_client::{NEWEST, OLDER, Session, User, can, connect};

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

const WHO: &str = r#"{ method: "elicitation/create", params: { message: "who?",
    requestedSchema: { type: "object", properties: { name: { type: "string" } } } } }"#;

fn named(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

#[tokio::test]
async fn what_one_call_wants_is_asked_at_once() {
    let bench = Workbench::new(json!({ "odd": odd_wanting() }));
    let mut user = User::new(&NEWEST, &[]);
    user.can = can(json!({ "elicitation": {}, "roots": {}, "sampling": {} }));
    let session = connect(&bench, user, &[]).await;
    let script = format!(
        r#"return await odd_want({{ state: "s", requests: {{
            who: {WHO},
            where: {{ method: "roots/list" }},
            what: {{ method: "sampling/createMessage", params: {{ messages: [], maxTokens: 1 }} }},
        }} }})"#
    );
    let keys = |required: &InputRequiredResult| -> Vec<String> {
        let requests = required.input_requests.as_ref().expect("requests");
        requests.keys().cloned().collect()
    };
    let state = |required: InputRequiredResult| required.request_state.expect("a state");
    let required = session.park(&script).await;
    assert_eq!(keys(&required), ["what", "where", "who"]);

    // Whoever answers a part is asked for the rest.
    let message = json!({
        "model": "m", "role": "assistant", "content": { "type": "text", "text": "t" },
    });
    let some = json!({ "what": message, "why": 1 });
    let required = session.park_again(&script, &state(required), some).await;
    assert_eq!(keys(&required), ["where", "who"]);
    let none = session
        .park_again(&script, &state(required), json!({}))
        .await;
    assert_eq!(keys(&none), ["where", "who"]);
    let roots = json!({ "roots": [{ "uri": "file:///home/test" }] });
    let rest = json!({ "who": named("Ada"), "where": roots, "what": { "again": true } });
    let result = session.come(&script, &state(none), rest).await;
    let result: Value = serde_json::from_str(&result.expect("a result")).expect("JSON");
    assert_eq!(
        result["inputResponses"],
        json!({ "who": named("Ada"), "where": roots, "what": message })
    );
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn two_servers_may_ask_under_one_key() {
    let bench = Workbench::new(json!({ "one": odd_wanting(), "two": odd_wanting() }));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let wants = format!(r#"{{ state: "s", requests: {{ who: {WHO} }} }}"#);
    let script = format!("return await Promise.all([one_want({wants}), two_want({wants})])");
    let mut required = session.park(&script).await;
    // The first may have asked before the second did.
    while required
        .input_requests
        .as_ref()
        .is_none_or(|it| it.len() < 2)
    {
        let state = required.request_state.expect("a state");
        required = session.park_again(&script, &state, json!({})).await;
    }
    let requests = serde_json::to_value(required.input_requests).expect("JSON");
    let requests = requests.as_object().expect("an object");
    let keys: Vec<_> = requests.keys().collect();
    assert_eq!(keys, ["who", "who-2"]);
    let answer = |request: &Value| match request["params"]["message"].as_str() {
        Some("The server \"one\" asks: who?") => named("Ada"),
        Some("The server \"two\" asks: who?") => named("Bob"),
        other => panic!("{other:?}"),
    };
    let answers = requests
        .iter()
        .map(|(key, request)| (key.clone(), answer(request)));
    let state = required.request_state.expect("a state");
    let result = session.come(&script, &state, answers.collect()).await;
    let result: Value = serde_json::from_str(&result.expect("a result")).expect("JSON");
    for (index, name) in ["Ada", "Bob"].into_iter().enumerate() {
        assert_eq!(
            result[index]["inputResponses"],
            json!({ "who": named(name) })
        );
    }
    session.client.cancel().await.expect("a clean end");
}

fn odd_wanting() -> Value {
    callgate_tests::fixture("callgate-odd-server", &["wants-input", "--modern"])
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

/// A page that a server wants opened.
fn page(id: &str) -> Value {
    json!({ "mode": "url", "elicitationId": id, "url": "https://door.example/", "message": "Come" })
}

#[tokio::test]
async fn pages_and_their_ends_are_passed_on() {
    let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
    let both = json!({ "elicitation": { "form": {}, "url": {} } });
    let script = format!(
        "const said = await odd_elicit({});
         await odd_finish({{ id: 'theirs' }});
         return said;",
        page("theirs")
    );
    for version in [&OLDER[1], &NEWEST] {
        let mut user = User::new(version, &["yes"]);
        user.can = can(both.clone());
        let (told, mut heard) = mpsc::unbounded_channel();
        user.told = told;
        let session = connect(&bench, user, &[]).await;
        let (is_error, said) = session.run(&script).await;
        assert!(!is_error, "{version}: {said}");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said, json!({ "action": "accept" }), "{version}");
        let asked = session.asked();
        assert_eq!(asked.len(), 1, "{version}");
        assert_eq!(asked[0]["mode"], "url");
        assert_eq!(asked[0]["url"], "https://door.example/");
        assert_eq!(asked[0]["message"], "The server \"odd\" asks: Come");
        let id = asked[0]["elicitationId"].as_str().expect("an id");
        assert_eq!(id.len(), 32, "it is ours: {id}");
        if *version != NEWEST {
            // There is no such news in the newest revision.
            let news = loop {
                let news = heard.recv().await.expect("news");
                if news.starts_with("done ") {
                    break news;
                }
            };
            assert_eq!(news, format!("done {id}"));
        }
        session.client.cancel().await.expect("a clean end");
    }
}

#[tokio::test]
async fn a_call_that_needs_a_page_is_made_again() {
    for version in [&OLDER[1], &NEWEST] {
        let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
        let mut user = User::new(version, &["yes", "yes"]);
        user.can = can(json!({ "elicitation": { "form": {}, "url": {} } }));
        let session = connect(&bench, user, &[]).await;
        let (is_error, said) = session.run("return await odd_locked({})").await;
        assert_eq!((is_error, said.as_str()), (false, "open\n"), "{version}");
        let messages: Vec<Value> = session
            .asked()
            .iter()
            .map(|asked| asked["message"].clone())
            .collect();
        assert_eq!(
            messages,
            [
                "The server \"odd\" asks: Unlock the door, please",
                "The server \"odd\" had you open a page for its tool \"locked\". When you are \
                 done there, accept: the tool is called again.",
            ]
        );
        session.client.cancel().await.expect("a clean end");
    }
}

#[tokio::test]
async fn the_end_of_a_page_that_two_calls_want_is_told_for_both() {
    let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
    let mut user = User::new(&OLDER[1], &["yes"; 4]);
    user.can = can(json!({ "elicitation": { "form": {}, "url": {} } }));
    let (told, mut heard) = mpsc::unbounded_channel();
    user.told = told;
    let session = connect(&bench, user, &[]).await;
    let script = "const call = () => odd_locked({ visitors: 2 });
         const said = await Promise.all([call(), call()]);
         await odd_finish({ id: 'door' });
         return said;";
    let (is_error, said) = session.run(script).await;
    assert_eq!((is_error, said.trim()), (false, r#"["open","open"]"#));
    let asked = session.asked();
    let asked = asked
        .iter()
        .filter_map(|asked| asked["elicitationId"].as_str());
    let mut expected: Vec<String> = asked.map(|id| format!("done {id}")).collect();
    assert_eq!(expected.len(), 2);
    let mut done = Vec::new();
    while done.len() < 2 {
        let news = heard.recv().await.expect("news");
        done.extend(news.starts_with("done ").then_some(news));
    }
    done.sort();
    expected.sort();
    assert_eq!(done, expected);
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn a_client_without_pages_gets_their_list() {
    for version in [&OLDER[0], &OLDER[1], &NEWEST] {
        let bench = Workbench::new(json!({ "odd": callgate_tests::odd("asks") }));
        let session = connect(&bench, User::new(version, &["yes"]), &[]).await;
        let (is_error, said) = session.run("return await odd_locked({})").await;
        assert!(is_error, "{version}: {said}");
        let expected = "the door is locked; there is nobody to ask, so open \
                        \"https://door.example/open\" and call again";
        assert!(said.contains(expected), "{version}: {said}");
        let (is_error, said) = session
            .run(&format!("return await odd_elicit({})", page("a")))
            .await;
        assert_eq!(
            (is_error, session.asked().len()),
            (false, 0),
            "{version}: {said}"
        );
        session.client.cancel().await.expect("a clean end");
    }
}

/// Servers of both eras, and clients of both.
#[tokio::test]
async fn what_servers_log_is_passed_on_to_who_wants_it() {
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
            session.client.cancel().await.expect("a clean end");
        }
    }
}

#[tokio::test]
async fn a_level_that_is_none_is_refused() {
    let bench = Workbench::new(json!({}));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let mut request = crate::serve_client::request("return 1");
    let meta = json!({ "io.modelcontextprotocol/logLevel": "loud" });
    request.meta = serde_json::from_value(meta).expect("_meta");
    let refused = session.client.call_tool_once(request).await;
    let Err(ServiceError::McpError(refused)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        (refused.code.0, &*refused.message),
        (
            -32602,
            "this is no log level; they are debug, info, notice, warning, error, critical, alert \
             and emergency"
        )
    );
    // That revision has a level in each request.
    let refused = set_level(&session, "info").await;
    assert!(refused.is_err(), "{refused:?}");
    session.client.cancel().await.expect("a clean end");
}

async fn set_level(session: &Session, level: &str) -> Result<(), ServiceError> {
    let request = json!({ "method": "logging/setLevel", "params": { "level": level } });
    let request = serde_json::from_value(request).expect("a request");
    session.client.send_request(request).await.map(drop)
}

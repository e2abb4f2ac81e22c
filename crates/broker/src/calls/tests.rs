//! Calls that take more than one round, without a process.

use std::sync::Mutex;

use callgate_policy::Definition;
use expect_test::{Expect, expect};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::*;
use crate::broker::Ready;
use crate::fake::{FakeLink, Host, agree, call, call_decided, mismatch, ready, result};
use crate::inbox::Inbox;
use crate::listed::{Change, Covered, Listed};
use crate::session::Abilities;

/// A server of the newest revision that answers the first calls so, and every
/// later one with what it was sent.
async fn check(host: &Arc<Host>, answers: Vec<Value>, expected: Expect) -> Vec<String> {
    let mut answers = answers.into_iter();
    let server = move |message: &Value| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        let mut params = message["params"].clone();
        params
            .as_object_mut()
            .map(|params| params.shift_remove("_meta"));
        let echo = json!({ "resultType": "complete", "structuredContent": params });
        vec![result(message, answers.next().unwrap_or(echo))]
    };
    let (session, link) = agree(
        ProtocolVersion::V_2026_07_28,
        Abilities::default(),
        host,
        server,
    );
    let shown = match session.call(&call(host)).await {
        Ok(result) => result.to_string(),
        Err(failure) => format!("{failure:?}"),
    };
    expected.assert_eq(&shown);
    link.sent()
}

fn wants(requests: Value, state: Value) -> Value {
    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
}

#[tokio::test]
async fn what_is_wanted_at_too_great_length_is_not_read() {
    let host = Host::able();
    let params = json!({ "x": "x".repeat(1 << 20) });
    let requests = json!({ "k": { "method": "roots/list", "params": params } });
    let sent = check(
        &host,
        vec![wants(requests, json!("s"))],
        expect![[
            r#"Input("the tool asks for things in 1048623 bytes, and 1048576 are the most")"#
        ]],
    )
    .await;
    assert_eq!(sent, ["tools/call"]);
}

#[tokio::test]
async fn input_is_given_and_the_state_sent_back_as_it_came() {
    let host = Arc::new(Host {
        offers: Host::able().offers,
        content: json!({ "a": 1 }),
        ..Host::default()
    });
    let form = json!({ "type": "object", "properties": { "a": {}, "b": { "default": "B" } } });
    let requests = json!({
        "form": { "method": "elicitation/create", "params": { "message": "m", "requestedSchema": form } },
        "model": { "method": "sampling/createMessage", "params": { "messages": [] } },
        "folders": { "method": "roots/list" },
    });
    let sent = check(
        &host,
        vec![wants(requests, json!("é\"\\ {}"))],
        expect![[r#"{"resultType":"complete","structuredContent":{"name":"t","arguments":{},"inputResponses":{"form":{"action":"accept","content":{"a":1}},"model":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"},"folders":{"roots":[{"uri":"file:///work"}]}},"requestState":"é\"\\ {}"}}"#]],
    )
    .await;
    assert_eq!(sent, ["tools/call", "tools/call"]);
    assert_eq!(host.heard().len(), 2);
}

#[tokio::test]
async fn a_state_alone_is_sent_back_and_an_absent_one_is_not() {
    check(
        &Host::able(),
        vec![
            json!({ "resultType": "input_required", "requestState": "one" }),
            json!({ "resultType": "input_required", "inputRequests": {} }),
        ],
        expect![[r#"{"resultType":"complete","structuredContent":{"name":"t","arguments":{},"inputResponses":{}}}"#]],
    )
    .await;
}

#[tokio::test]
async fn a_server_that_never_has_enough_is_given_up() {
    let host = Host::able();
    let again = wants(json!({ "k": { "method": "roots/list" } }), json!("again"));
    let sent = check(
        &host,
        vec![again; 100],
        expect![[r#"Input("the tool still wants input after 10 rounds of it")"#]],
    )
    .await;
    assert_eq!(sent.len(), 11);
}

/// It waits for something that is none of the client's business.
#[tokio::test]
async fn a_server_that_wants_time_alone_has_what_the_call_has() {
    let host = Host::able();
    let later = json!({ "resultType": "input_required", "requestState": "later" });
    let sent = check(
        &host,
        vec![later.clone(); 100],
        expect![[r#"{"resultType":"complete","structuredContent":{"name":"t","arguments":{},"requestState":"later"}}"#]],
    )
    .await;
    assert_eq!(sent.len(), 101);
    let server = move |message: &Value| vec![result(message, later.clone())];
    let version = ProtocolVersion::V_2026_07_28;
    let (session, _) = agree(version, Abilities::default(), &host, server);
    let mut call = call(&host);
    call.patience.most = Duration::from_millis(20);
    let called = session
        .call(&call)
        .await
        .map_err(|failure| failure.to_string());
    assert_eq!(called.err().as_deref(), Some("no answer within 20 ms"));
}

#[tokio::test]
async fn a_page_is_done_with_before_the_call_is_made_again() {
    let page = json!({ "mode": "url", "url": "https://door/", "message": "m" });
    let page = json!({ "k": { "method": "elicitation/create", "params": page } });
    for (back, expected, times) in [
        (
            Ok(()),
            expect![[
                r#"{"resultType":"complete","structuredContent":{"name":"t","arguments":{},"inputResponses":{"k":{"action":"accept"}},"requestState":"s"}}"#
            ]],
            2,
        ),
        (
            Err(Refusal::Declined),
            expect![[r#"Input("the user gave its page up")"#]],
            1,
        ),
    ] {
        let host = Arc::new(Host {
            offers: Host::able().offers,
            back: Some(back),
            ..Host::default()
        });
        let sent = check(&host, vec![wants(page.clone(), json!("s"))], expected).await;
        assert_eq!(sent, vec!["tools/call"; times]);
        let heard = host.heard();
        assert_eq!(
            heard.last().map(String::as_str),
            Some("s.t waits for 1 alone")
        );
    }
    // Nobody is asked about a page that is not opened.
    let host = Arc::new(Host {
        says: Some("decline"),
        offers: Host::able().offers,
        ..Host::default()
    });
    check(
        &host,
        vec![wants(page, json!("s"))],
        expect![[r#"{"resultType":"complete","structuredContent":{"name":"t","arguments":{},"inputResponses":{"k":{"action":"decline"}},"requestState":"s"}}"#]],
    )
    .await;
    assert_eq!(host.heard().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_given() {
    let host = Host::able();
    let check = async |answer: Value, expected: Expect| {
        check(&host, vec![answer], expected).await;
    };
    let many: serde_json::Map<String, Value> = (0..17)
        .map(|n| (n.to_string(), json!({ "method": "roots/list" })))
        .collect();
    check(
        wants(many.into(), json!("")),
        expect![[r#"Input("the tool asks for 17 things at once, and 16 are the most")"#]],
    )
    .await;
    let long = json!({ "message": "x".repeat(64 << 10) });
    check(
        wants(json!({ "a": { "method": "elicitation/create", "params": long } }), json!("")),
        expect![[r#"Input("the tool asks for elicitation/create, which it cannot have: its params have 65550 bytes, and 65536 are the most")"#]],
    )
    .await;
    check(
        wants(json!({ "a": { "method": "tools/call" } }), json!("")),
        expect![[r#"Input("the tool asks for something that clients do not know")"#]],
    )
    .await;
    check(
        wants(json!({ "a": { "method": "elicitation/create", "params": { "mode": 7 } } }), json!("")),
        expect![[r#"Input("the tool asks for elicitation/create, which it cannot have: this mode of elicitation was not announced")"#]],
    )
    .await;
    check(
        json!({ "resultType": "input_required" }),
        expect![[r#"Malformed("it wants input and does not say which")"#]],
    )
    .await;
    check(
        wants(json!({}), json!(7)),
        expect![[r#"Malformed("its requestState is no text of up to 1048576 bytes")"#]],
    )
    .await;
    check(
        json!({ "resultType": "surprise" }),
        expect![[r#"Malformed("its resultType is none that clients know")"#]],
    )
    .await;
}

#[tokio::test]
async fn who_offers_nothing_declines() {
    check(
        &Arc::default(),
        vec![wants(json!({ "a": { "method": "elicitation/create" } }), json!("s"))],
        expect![[r#"{"resultType":"complete","structuredContent":{"name":"t","arguments":{},"inputResponses":{"a":{"action":"decline"}},"requestState":"s"}}"#]],
    )
    .await;
}

#[tokio::test]
async fn an_older_server_has_no_result_types() {
    let host = Host::able();
    let server = |message: &Value| vec![result(message, json!({ "resultType": "surprise" }))];
    let version = ProtocolVersion::V_2025_11_25;
    let (session, _) = agree(version, Abilities::default(), &host, server);
    let called = session
        .call(&call(&host))
        .await
        .map(|result| result.to_string());
    assert_eq!(called.expect("a result"), r#"{"resultType":"surprise"}"#);
}

/// A server that takes the call, and is gone before the next request of it.
async fn gone_after(version: ProtocolVersion, answer: Value) -> (Failure, Arc<FakeLink>) {
    let host = Host::able();
    let door: Arc<Mutex<Option<Arc<Inbox>>>> = Arc::default();
    let inbox = Arc::clone(&door);
    let server = move |message: &Value| {
        let inbox = inbox.lock().expect("no panic");
        let inbox = inbox.as_ref().expect("it is connected to");
        inbox.deliver(result(message, answer.clone()).to_string().as_bytes());
        inbox.lost(LinkError::closed("it ended", true));
        Vec::new()
    };
    let (session, link) = agree(version, Abilities::default(), &host, server);
    *door.lock().expect("no panic") = Some(Arc::clone(&session.inbox));
    let failure = session.call(&call(&host)).await.expect_err("no result");
    (failure, link)
}

#[tokio::test]
async fn a_call_that_was_taken_was_sent_whatever_request_is_lost() {
    let task = json!({ "taskId": "a", "status": "working", "pollInterval": 0 });
    let mut newer = task.clone();
    newer["resultType"] = "task".into();
    for (version, answer) in [
        (
            ProtocolVersion::V_2026_07_28,
            json!({ "resultType": "input_required", "requestState": "one" }),
        ),
        (ProtocolVersion::V_2026_07_28, newer),
        (ProtocolVersion::V_2025_11_25, json!({ "task": task })),
    ] {
        let (failure, link) = gone_after(version, answer.clone()).await;
        let Failure::Lost(error) = &failure else {
            panic!("{failure:?}");
        };
        assert!(error.sent, "{answer}");
        assert_eq!(link.sent()[0], "tools/call");
    }
}

/// What is said otherwise may be of a call that was carried out, and what it says of a task is no
/// word about the call.
#[tokio::test]
async fn only_the_call_itself_is_refused_for_its_headers() {
    let wants = json!({ "resultType": "input_required", "requestState": "one" });
    let task =
        json!({ "resultType": "task", "taskId": "a", "status": "working", "pollIntervalMs": 0 });
    for (mut first, headers) in [
        (None, true),
        (Some(wants.clone()), true),
        (None, false),
        (Some(wants), false),
        (Some(task), false),
    ] {
        let server = move |message: &Value| match first.take() {
            Some(answer) => vec![result(message, answer)],
            None if headers => vec![mismatch(message)],
            None => {
                let error = json!({ "code": -32020, "message": "m" });
                vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
            }
        };
        let host = Host::able();
        let version = ProtocolVersion::V_2026_07_28;
        let (session, _) = agree(version, Abilities::default(), &host, server);
        let failure = session.call(&call(&host)).await.expect_err("no result");
        assert_eq!(
            matches!(failure, Failure::Headers(..)),
            headers,
            "{failure:?}"
        );
    }
}

/// A list with one tool, of this description.
fn listing(description: &str) -> Ready {
    ready(vec![json!({ "name": "t", "description": description })])
}

/// As when another call has just learnt of a newer list.
#[tokio::test]
async fn a_call_that_was_decided_about_by_an_older_list_is_not_sent() {
    let listed = Arc::new(Listed::new(None));
    listed.take(listing("deletes"), Covered::default());
    let definition = Definition::of(&listing("reads").tools[0]);
    let host = Host::able();
    let (session, link) = agree(
        ProtocolVersion::V_2026_07_28,
        Abilities::default(),
        &host,
        |_| Vec::new(),
    );
    let call = call_decided(&host, &definition, &listed);
    let failure = session.call(&call).await.expect_err("no result");
    assert!(
        matches!(
            failure,
            Failure::Changed {
                what: Change::Tool,
                sent: false,
                ..
            }
        ),
        "{failure:?}"
    );
    assert!(!link.sent().iter().any(|sent| sent == "tools/call"));
}

/// What comes of a call that is first answered so, while its tool becomes what it is
/// `then`, and how often it was sent.
async fn check_meanwhile(version: ProtocolVersion, first: Value, then: Ready, expected: Expect) {
    let listed = Arc::new(Listed::new(None));
    listed.take(listing("reads"), Covered::default());
    let definition = Definition::of(&listing("reads").tools[0]);
    let (known, mut change) = (Arc::clone(&listed), Some((first, then)));
    let server = move |message: &Value| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        let Some((first, then)) = change.take() else {
            return vec![result(message, json!({ "content": [] }))];
        };
        known.take(then, Covered::default());
        let mut answer = first;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = message["id"].clone();
        vec![answer]
    };
    let host = Arc::new(Host {
        offers: Host::able().offers,
        back: Some(Ok(())),
        ..Host::default()
    });
    let (session, link) = agree(version, Abilities::default(), &host, server);
    let call = call_decided(&host, &definition, &listed);
    let shown = match session.call(&call).await {
        Ok(result) => result.to_string(),
        Err(failure) => format!("{failure}\nsent: {}", failure.was_sent()),
    };
    let sent = link.sent();
    let calls = sent.iter().filter(|sent| *sent == "tools/call").count();
    expected.assert_eq(&format!("{shown}\ncalls: {calls}"));
}

#[tokio::test]
async fn a_call_goes_on_only_with_the_tool_that_was_decided_about() {
    let wants = || {
        let result = json!({ "resultType": "input_required", "requestState": "one" });
        json!({ "result": result })
    };
    let page =
        json!({ "mode": "url", "elicitationId": "a", "url": "https://door/a", "message": "m" });
    let data = json!({ "elicitations": [page] });
    let locked = json!({ "error": { "code": -32042, "message": "locked", "data": data } });
    let newest = || ProtocolVersion::V_2026_07_28;
    let older = || ProtocolVersion::V_2025_11_25;
    check_meanwhile(
        newest(),
        wants(),
        listing("reads"),
        expect![[r#"
            {"content":[]}
            calls: 2"#]],
    )
    .await;
    check_meanwhile(
        newest(),
        wants(),
        listing("deletes"),
        expect![[r#"
            the server has changed the tool, which is another than the one that was decided about; the call had begun and was given up, and may have done something
            sent: true
            calls: 1"#]],
    )
    .await;
    check_meanwhile(
        older(),
        locked.clone(),
        listing("reads"),
        expect![[r#"
            {"content":[]}
            calls: 2"#]],
    )
    .await;
    check_meanwhile(
        older(),
        locked.clone(),
        listing("deletes"),
        expect![[r#"
            the server has changed the tool, which is another than the one that was decided about; nothing was done; call it again to have it decided anew
            sent: false
            calls: 1"#]],
    )
    .await;
    check_meanwhile(
        older(),
        locked,
        ready(Vec::new()),
        expect![[r#"
            its server no longer lists the tool; nothing was done
            sent: false
            calls: 1"#]],
    )
    .await;
}

/// A caller that hears all log messages.
#[derive(Debug)]
struct Hears;

impl Caller for Hears {
    fn offers(&self) -> crate::Offers {
        crate::Offers::default()
    }

    fn logs(&self) -> Option<crate::LogLevel> {
        Some(crate::LogLevel::Debug)
    }
}

/// The time for that is none of the call's.
#[tokio::test]
async fn a_server_that_does_not_say_that_it_logs_is_called_all_the_same() {
    let logging = Abilities {
        logging: true,
        ..Abilities::default()
    };
    let server = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![result(message, json!({ "content": [] }))],
        _ => Vec::new(),
    };
    let version = ProtocolVersion::V_2025_11_25;
    let host = Host::able();
    let (session, link) = agree(version, logging, &host, server);
    let mut call = call(&host);
    call.caller = Arc::new(Hears);
    call.patience = Patience::exactly(Duration::from_millis(100));
    for _ in 0..2 {
        let called = session.call(&call).await.expect("it is answered");
        assert_eq!(called.get(), r#"{"content":[]}"#);
    }
    // It is asked once, and not waited for any more.
    assert_eq!(
        link.sent(),
        [
            "logging/setLevel",
            "notifications/cancelled",
            "tools/call",
            "tools/call"
        ]
    );
}

/// A process is of the revision that was agreed on with it, whatever it says later.
#[tokio::test]
async fn only_over_http_a_server_goes_over_to_another_revision() {
    let server = |message: &Value| {
        let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
        let error = json!({ "code": -32022, "message": "m", "data": data });
        vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
    };
    let version = ProtocolVersion::V_2025_11_25;
    let host = Host::able();
    let (session, _) = agree(version, Abilities::default(), &host, server);
    for _ in 0..2 {
        let failure = session.call(&call(&host)).await.expect_err("no result");
        assert_eq!(failure.to_string(), "m (code -32022)");
    }
}

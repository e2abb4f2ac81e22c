//! Lists and calls of a server that is a function.

use std::sync::OnceLock;

use callgate_policy::Definition;
use futures::future::join_all;
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::fake::{FakeLink, Host, agree, call, call_decided, mismatch, ready, result};
use crate::link::Link as _;
use crate::listed::{Change, Covered, Listed};
use crate::session::Abilities;

/// Lists the tools of a server of 2026-07-28 whose list is of this type.
async fn listed(kind: Value) -> String {
    let server = move |message: &Value| {
        let mut page = json!({ "tools": [{ "name": "t" }] });
        page["resultType"] = kind.clone();
        vec![result(message, page)]
    };
    let version = ProtocolVersion::V_2026_07_28;
    let (session, _link) = agree(version, Abilities::default(), &Host::able(), server);
    let connection = Connection::new(session, None);
    match connection.list_tools(Duration::from_secs(20)).await {
        Ok(listing) => format!("{} tools", listing.tools.len()),
        Err(failure) => failure.to_string(),
    }
}

#[tokio::test]
async fn an_empty_cursor_is_one_since_2026_07_28() {
    for (version, expected) in [
        (ProtocolVersion::V_2025_11_25, vec!["first"]),
        (ProtocolVersion::V_2026_07_28, vec!["first", "second"]),
    ] {
        let server = |message: &Value| {
            let page = match message["params"]["cursor"].as_str() {
                Some(_) => json!({ "tools": [{ "name": "second" }] }),
                None => json!({ "tools": [{ "name": "first" }], "nextCursor": "" }),
            };
            vec![result(message, page)]
        };
        let (session, _link) = agree(version, Abilities::default(), &Host::able(), server);
        let connection = Connection::new(session, None);
        let listing = connection.list_tools(Duration::from_secs(20)).await;
        let tools = listing.expect("a list").tools;
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
        let expected: Vec<_> = expected.into_iter().map(Some).collect();
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn a_list_of_another_type_is_none() {
    assert_eq!(listed(json!("complete")).await, "1 tools");
    // As servers of older revisions have it.
    assert_eq!(listed(Value::Null).await, "1 tools");
    for kind in ["input_required", "task"] {
        let expected = "the answer is malformed: its resultType is none of such a request";
        assert_eq!(listed(json!(kind)).await, expected);
    }
    let expected = "the answer is malformed: its resultType is none that clients know";
    assert_eq!(listed(json!("partial")).await, expected);
}

/// Lists the tools of a server whose list has two pages, the first `logins` times with
/// another login for the second one: the tools and the login of the list.
async fn listed_meanwhile(logins: usize) -> Result<(Vec<Value>, Option<Arc<str>>), String> {
    let link = Arc::new(OnceLock::<Arc<FakeLink>>::new());
    let server = {
        let (link, mut made) = (Arc::clone(&link), 0);
        move |message: &Value| {
            let link = link.get().expect("it is there");
            let tool = json!({ "name": link.login().as_deref() });
            if !message["params"]["cursor"].is_null() {
                return vec![result(message, json!({ "tools": [tool] }))];
            }
            if made < logins {
                made += 1;
                link.log_in(&made.to_string());
            }
            vec![result(
                message,
                json!({ "tools": [tool], "nextCursor": "2" }),
            )]
        }
    };
    let version = ProtocolVersion::V_2025_11_25;
    let (session, made) = agree(version, Abilities::default(), &Host::able(), server);
    made.log_in("0");
    link.set(made).expect("the first");
    let connection = Connection::new(session, None);
    match connection.list_tools(Duration::from_secs(20)).await {
        Ok(listing) => Ok((listing.tools, listing.login)),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Of two people's tools, nobody's list has some of each.
#[tokio::test]
async fn a_list_is_asked_for_again_after_a_login_meanwhile() {
    for logins in 0..3 {
        let login = logins.to_string();
        let tool = json!({ "name": login });
        let list = (vec![tool.clone(), tool], Some(login.as_str().into()));
        assert_eq!(listed_meanwhile(logins).await, Ok(list));
    }
    let reason = "the answer is malformed: each time that it was asked for, there was another \
        login meanwhile";
    assert_eq!(listed_meanwhile(3).await, Err(reason.to_owned()));
}

/// Nobody is asked again what has been answered.
#[tokio::test]
async fn a_call_that_is_refused_in_a_later_round_goes_on_with_it() {
    let mut calls = 0;
    let server = move |message: &Value| {
        if message["method"] != "tools/call" {
            let list = json!({ "resultType": "complete", "tools": [{ "name": "t" }] });
            return vec![result(message, list)];
        }
        calls += 1;
        vec![match calls {
            1 => {
                let params = json!({ "message": "m", "requestedSchema": { "type": "object" } });
                let asks = json!({ "k": { "method": "elicitation/create", "params": params } });
                let wants = json!({
                    "resultType": "input_required", "inputRequests": asks, "requestState": "s"
                });
                result(message, wants)
            }
            2 => mismatch(message),
            _ => {
                let mut params = message["params"].clone();
                let members = params.as_object_mut().expect("an object");
                members.shift_remove("_meta");
                result(message, params)
            }
        }]
    };
    let (version, host) = (ProtocolVersion::V_2026_07_28, Host::able());
    let (session, link) = agree(version, Abilities::default(), &host, server);
    let called = Connection::new(session, None).call(&call(&host)).await;
    let expected = r#"{"name":"t","arguments":{},"inputResponses":{"k":{"action":"accept","content":{}}},"requestState":"s"}"#;
    assert_eq!(called.expect("a result").get(), expected);
    assert_eq!(host.heard().len(), 1);
    let sent = ["tools/call", "tools/call", "tools/list", "tools/call"];
    assert_eq!(link.sent(), sent);
}

#[tokio::test]
async fn a_call_whose_tool_has_changed_says_what_it_took() {
    let before = json!({ "name": "t" });
    let server = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => vec![mismatch(message)],
        _ => {
            let tool = json!({ "name": "t", "description": "Now." });
            let list = json!({ "resultType": "complete", "tools": [tool] });
            vec![result(message, list)]
        }
    };
    let (version, host) = (ProtocolVersion::V_2026_07_28, Host::able());
    let (session, _link) = agree(version, Abilities::default(), &host, server);
    let listed = Arc::new(Listed::new(None));
    let definition = Definition::of(&before);
    listed.take(ready(vec![before]), Covered::default());
    let call = call_decided(&host, &definition, &listed);
    let began = Instant::now();
    let called = Connection::new(session, None).call(&call).await;
    let Err(Failure::Changed {
        what: Change::Tool,
        sent: false,
        spent,
    }) = called
    else {
        panic!("{called:?}");
    };
    assert!(!spent.is_zero() && spent <= began.elapsed(), "{spent:?}");
}

/// Makes this many calls that are refused together, and one more, of a server that answers
/// so when it is asked for its list; and all that come after with a result, unless it is
/// `stubborn`. What the calls and the one more are told, and how often the list was asked
/// for by then.
async fn refused_together(list: Result<Value, Value>, stubborn: bool) -> [(String, usize); 2] {
    const CALLS: usize = 8;
    let (mut calls, mut refusals) = (0, Vec::new());
    let server = move |message: &Value| {
        if message["method"] != "tools/call" {
            return vec![match &list {
                Ok(list) => result(message, list.clone()),
                Err(error) => json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }),
            }];
        }
        calls += 1;
        if calls > CALLS && !stubborn {
            let done = json!({ "resultType": "complete", "content": [] });
            return vec![result(message, done)];
        }
        refusals.push(mismatch(message));
        match calls < CALLS {
            true => Vec::new(),
            false => std::mem::take(&mut refusals),
        }
    };
    let (version, host) = (ProtocolVersion::V_2026_07_28, Host::able());
    let (session, link) = agree(version, Abilities::default(), &host, server);
    let changes = session.watch_changes();
    let connection = Connection::new(session, None);
    let tool = json!({ "name": "t" });
    let listed = Arc::new(Listed::new(None));
    let definition = Definition::of(&tool);
    listed.take(ready(vec![tool]), Covered::default());
    let call = call_decided(&host, &definition, &listed);
    let shown = |called: Result<Box<RawValue>, Failure>| match called {
        Ok(result) => result.to_string(),
        Err(failure) => failure.to_string(),
    };
    let lists = || {
        let sent = link.sent();
        sent.iter().filter(|sent| *sent == "tools/list").count()
    };
    let called = join_all((0..CALLS).map(|_| connection.call(&call))).await;
    let mut said: Vec<_> = called.into_iter().map(shown).collect();
    said.dedup();
    let together = (said.join("; "), lists());
    assert!(changes.borrow().tools <= 1);
    let after = shown(connection.call(&call).await);
    [together, (after, lists())]
}

#[tokio::test]
async fn calls_that_are_refused_together_have_one_list() {
    let list = |tools: Value| Ok(json!({ "resultType": "complete", "tools": tools }));
    let refused = "HeaderMismatch (code -32020)";
    let done = r#"{"resultType":"complete","content":[]}"#;
    let tools = json!([{ "name": "t" }]);
    let error = json!({ "code": -32603, "message": "no" });
    for (list, stubborn, [together, after], lists) in [
        (list(tools.clone()), false, [done, done], 1),
        // The list is asked for anew, for a call that was begun after it.
        (list(tools), true, [refused, refused], 2),
        (Err(error), false, [refused, done], 1),
    ] {
        let expected = [(together.to_owned(), 1), (after.to_owned(), lists)];
        assert_eq!(refused_together(list, stubborn).await, expected);
    }
    let gone = refused_together(list(json!([])), true).await;
    let gone_now = "its server no longer lists the tool; nothing was done";
    let expected = [(refused.to_owned(), 1), (gone_now.to_owned(), 1)];
    assert_eq!(gone, expected);
}

//! Calls that asked for a task and were given up.

use std::sync::{Arc, Mutex};

use rmcp::model::ProtocolVersion;

use super::*;
use crate::fake::{FakeLink, Host, agree, call, result};
use crate::listing::Dropped;
use crate::session::Abilities;
use crate::tools::Specials;

const MOST: usize = MANY_GIVEN_UP as usize;

/// A session with a server whose tool is to be called as a task.
fn connect(
    host: &Arc<Host>,
    server: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Arc<Session>, Arc<FakeLink>) {
    let abilities = Abilities {
        tasks: true,
        cancels_tasks: true,
        ..Abilities::default()
    };
    let (session, link) = agree(ProtocolVersion::V_2025_11_25, abilities, host, server);
    let mut tools = vec![json!({ "name": "t", "execution": { "taskSupport": "required" } })];
    let specials = Specials::read(&mut tools, false, &mut Dropped::default());
    session.tools.take(specials, || {});
    (session, link)
}

/// Its run may be over. The gate is asked what belongs to no call.
#[tokio::test]
async fn who_has_given_a_call_up_is_not_asked_for_it() {
    let (gate, host) = (Host::able(), Host::able());
    let (session, link) = connect(&gate, |_| Vec::new());
    let call = call(&host);
    let mut calling = Box::pin(session.call(&call));
    while link.sent().is_empty() {
        assert!(futures::poll!(&mut calling).is_pending());
        tokio::task::yield_now().await;
    }
    drop(calling);
    // Once it is known that it has been given up.
    while session.given_up.calls.take(MOST).is_some() {
        tokio::task::yield_now().await;
    }
    session
        .inbox
        .deliver(br#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create"}"#);
    while session.asked.is_asking() {
        tokio::task::yield_now().await;
    }
    assert_eq!(host.heard(), [""; 0]);
    assert_eq!(gate.heard(), ["s None elicits {}"]);
}

/// The server takes them all and says nothing until all have been given up.
#[tokio::test]
async fn so_many_are_waited_for_and_their_tasks_cancelled() {
    let taken = Arc::<Mutex<Vec<Value>>>::default();
    let takes = Arc::clone(&taken);
    let server = move |message: &Value| {
        if message["method"] == "tools/call" {
            takes.lock().expect("no panic").push(message.clone());
        }
        Vec::new()
    };
    let host = Host::able();
    let (session, link) = connect(&host, server);
    let call = call(&host);
    let taken = || taken.lock().expect("no panic").clone();
    for number in 1..=MOST + 1 {
        let mut calling = Box::pin(session.call(&call));
        while taken().len() < number {
            assert!(futures::poll!(&mut calling).is_pending());
            tokio::task::yield_now().await;
        }
    }
    let waits = |message: &Value| {
        let id = message["id"].as_u64().expect("a number");
        session.inbox.waits(id)
    };
    // Once it is known that the last one has been given up.
    while taken().last().is_some_and(waits) {
        tokio::task::yield_now().await;
    }
    let waiting = taken().iter().filter(|message| waits(message)).count();
    assert_eq!(waiting, MOST);
    for (number, message) in taken().iter().enumerate() {
        let created = json!({ "task": { "taskId": number.to_string(), "status": "working" } });
        let answer = result(message, created).to_string();
        session.inbox.deliver(answer.as_bytes());
    }
    let cancelled = || {
        let sent = link.sent();
        sent.iter().filter(|sent| *sent == "tasks/cancel").count()
    };
    while cancelled() < MOST {
        tokio::task::yield_now().await;
    }
    // There is room for as many again.
    while session.given_up.calls.take(MOST).is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(cancelled(), MOST);
    assert!(
        !link
            .sent()
            .iter()
            .any(|sent| sent == "notifications/cancelled")
    );
}

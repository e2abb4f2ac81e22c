//! What servers ask of the caller and tell it, over real pipes.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use callgate_gate::{
    CallOptions, Caller, Connect, Elicit, ListRoots, NobodyToAsk, Offers, Progress, Refusal, Root,
    Sample, ServerSpec, Servers,
};
use expect_test::{Expect, expect};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::{Runs as _, allow_all, call, in_time, odd, one, raw, show, target};

/// A caller who does everything, and hears how far calls are.
#[derive(Default)]
struct Able {
    progress: Mutex<Vec<String>>,
}

impl Caller for Able {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = true;
        offers.sampling = true;
        offers.roots = true;
        offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let name = format!("{} of {}", request.tool.unwrap_or("?"), request.server);
        Box::pin(async move { Ok(json!({ "action": "accept", "content": { "name": name } })) })
    }

    fn sample<'a>(&'a self, _request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async { Err(Refusal::Declined) })
    }

    fn roots<'a>(&'a self, _request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        let root = Root {
            uri: "file:///a".to_owned(),
            name: Some("a".to_owned()),
        };
        Box::pin(async move { Ok(vec![root]) })
    }

    fn progress(&self, progress: Progress<'_>) {
        let Progress {
            progress, message, ..
        } = progress;
        let mut heard = self.progress.lock().expect("no panic");
        heard.push(format!("{progress} {message:?}"));
    }
}

fn with(caller: &Arc<Able>, mode: &str) -> ServerSpec {
    let mut spec = odd(mode);
    spec.caller = Arc::clone(caller) as Arc<dyn Caller>;
    spec
}

async fn check(spec: ServerSpec, tool: &str, arguments: Value, expected: Expect) {
    let (broker, run, server) = one(spec).await;
    let answer = in_time(call(&run, &server, tool, arguments)).await;
    in_time(broker.shut_down()).await;
    expected.assert_eq(&answer);
}

#[tokio::test]
async fn requests_of_a_server_are_answered() {
    check(
        with(&Arc::default(), "asks"),
        "ask",
        json!({}),
        expect![[r#"{"elicitation/create":{"action":"accept","content":{"name":"ask of asks"}},"ping":{},"roots/list":{"roots":[{"uri":"file:///a","name":"a"}]},"sampling/createMessage":{"error":-1}}"#]],
    )
    .await;
}

#[tokio::test]
async fn input_that_a_result_wants_is_given() {
    let requests = json!({
        "who": { "method": "elicitation/create", "params": { "message": "who?" } },
        "where": { "method": "roots/list" },
    });
    check(
        with(&Arc::default(), "wants-input --modern"),
        "want",
        json!({ "requests": requests, "state": "s\n\"" }),
        expect![[r#"{"inputResponses":{"who":{"action":"accept","content":{"name":"want of wants-input --modern"}},"where":{"roots":[{"uri":"file:///a","name":"a"}]}},"requestState":"s\n\"","sameId":false}"#]],
    )
    .await;
}

/// A server that always wants the call made again does not make it last longer.
#[tokio::test]
async fn a_calls_limit_holds_from_round_to_round() {
    let (broker, run, server) = one(odd("wants-input --modern")).await;
    let options = CallOptions {
        timeout: Some(Duration::from_millis(300)),
        ..CallOptions::default()
    };
    let again = raw(json!({ "state": "again" }));
    let answer = in_time(run.call(target(&server, "want"), again, options)).await;
    in_time(broker.shut_down()).await;
    expect![[r#"Timeout { server: "wants-input --modern", function: "wants_input___modern_want", limit: 300ms, retryable: false }"#]].assert_eq(&show(answer));
}

#[tokio::test]
async fn progress_is_heard_in_its_order() {
    for mode in ["reports", "reports --modern"] {
        let caller = Arc::<Able>::default();
        check(
            with(&caller, mode),
            "work",
            json!({ "steps": 3 }),
            expect![[r#""done""#]],
        )
        .await;
        assert_eq!(
            *caller.progress.lock().expect("no panic"),
            [
                r#"1 Some("step 1")"#,
                r#"2 Some("step 2")"#,
                r#"3 Some("step 3")"#
            ]
        );
    }
}

#[tokio::test]
async fn a_call_that_is_held_and_not_awaited_does_not_hold_up_another() {
    let (broker, run, server) = one(odd("counter")).await;
    let wait = |calls| Box::pin(call(&run, &server, "wait", json!({ "calls": calls })));
    let mut held = wait(2);
    assert!(futures::poll!(held.as_mut()).is_pending());
    // Whoever reads finds both answers, though nobody polls the first call.
    assert_eq!(in_time(wait(2)).await, r#"{"inFlight":2}"#);
    assert_eq!(in_time(held).await, r#"{"inFlight":2}"#);

    let mut first = wait(2);
    let mut second = wait(3);
    assert!(futures::poll!(first.as_mut()).is_pending());
    assert!(futures::poll!(second.as_mut()).is_pending());
    // The one that was polled last goes, and another one has to read.
    drop(second);
    assert_eq!(in_time(wait(3)).await, r#"{"inFlight":3}"#);
    assert_eq!(in_time(first).await, r#"{"inFlight":3}"#);
    broker.shut_down().await;
}

/// Names one folder, another each time that it is asked.
#[derive(Default)]
struct Moving {
    asked: Mutex<u64>,
    /// Whose folders change while it is asked for the first time.
    moves: OnceLock<Servers>,
}

impl Caller for Moving {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.roots = true;
        offers
    }

    fn roots<'a>(&'a self, _request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        let mut asked = self.asked.lock().expect("no panic");
        *asked += 1;
        if *asked == 1
            && let Some(broker) = self.moves.get()
        {
            broker.roots_changed();
        }
        let root = Root {
            uri: format!("file:///{asked}"),
            name: None,
        };
        Box::pin(async move { Ok(vec![root]) })
    }
}

/// The server that asks for folders, which are `caller`'s.
fn moving(caller: &Arc<Moving>) -> ServerSpec {
    let mut spec = odd("roots");
    spec.caller = Arc::clone(caller) as Arc<dyn Caller>;
    spec
}

#[tokio::test]
async fn a_server_is_told_of_other_folders() {
    let (broker, run, server) = one(moving(&Arc::default())).await;
    let told = |times| call(&run, &server, "told", json!({ "times": times }));
    expect![[r#"{"announced":{"listChanged":true},"answers":[[{"uri":"file:///1"}]],"asked":1}"#]]
        .assert_eq(&in_time(told(1)).await);
    broker.roots_changed();
    expect![[r#"{"announced":{"listChanged":true},"answers":[[{"uri":"file:///1"}],[{"uri":"file:///2"}]],"asked":2}"#]]
        .assert_eq(&in_time(told(2)).await);
    in_time(broker.shut_down()).await;
}

/// It asked before they changed, and there is no connection yet that it could be told over.
#[tokio::test]
async fn a_server_is_told_of_folders_that_change_while_it_is_connected_to() {
    let caller = Arc::<Moving>::default();
    let mut spec = moving(&caller);
    spec.connect = Connect::Manual;
    let broker = Servers::connect(vec![spec], |_| {}).await;
    assert!(caller.moves.set(broker.clone()).is_ok());
    in_time(broker.enable("roots")).await.expect("it starts");
    let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
    let answer = in_time(call(&run, "roots", "told", json!({ "times": 2 }))).await;
    in_time(broker.shut_down()).await;
    expect![[r#"{"announced":{"listChanged":true},"answers":[[{"uri":"file:///1"}],[{"uri":"file:///2"}]],"asked":2}"#]]
        .assert_eq(&answer);
}

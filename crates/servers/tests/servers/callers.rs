//! Questions of servers, and their progress messages, over pipes.

use std::sync::{Arc, Mutex, OnceLock};

use callgate_servers::{
    Caller, Connect, Offers, PageDone, Progress, Refusal, Root, ServerSpec, Servers, Wanted,
    WantedKind,
};
use expect_test::expect;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::{answer, call, in_time, odd, one, start};

/// A caller with all abilities, which records the notifications it gets.
#[derive(Default)]
struct Able {
    received: Arc<Mutex<Vec<String>>>,
    asked: Mutex<u64>,
    /// The servers that are notified of changed folders during the first request for folders.
    moves: OnceLock<Servers>,
}

impl Able {
    fn record(&self, text: String) {
        self.received.lock().expect("no panic").push(text);
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().expect("no panic").clone()
    }
}

impl Caller for Able {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = true;
        offers.url = true;
        offers.sampling = true;
        offers.roots = true;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match wanted.kind {
            WantedKind::Elicit => {
                let name = format!("{} of {}", wanted.tool.unwrap_or("?"), wanted.server);
                Ok(json!({ "action": "accept", "content": { "name": name } }))
            }
            WantedKind::Sample => Err(Refusal::Declined),
            WantedKind::Roots => {
                let mut asked = self.asked.lock().expect("no panic");
                *asked += 1;
                if *asked == 1
                    && let Some(servers) = self.moves.get()
                {
                    servers.roots_changed();
                }
                let root = Root {
                    uri: format!("file:///{asked}"),
                    name: None,
                };
                Ok(Root::list(&[root]))
            }
        };
        std::future::ready(answer).boxed()
    }

    fn page_opened(&self, _server: &str, id: &str) -> Option<PageDone> {
        let (received, id) = (Arc::clone(&self.received), id.to_owned());
        Some(Box::new(move || {
            received
                .lock()
                .expect("no panic")
                .push(format!("done at {id}"))
        }))
    }

    fn progress(&self, progress: Progress<'_>) {
        let Progress {
            progress, message, ..
        } = progress;
        self.record(format!("{progress} {message:?}"));
    }
}

fn with(caller: &Arc<Able>, mode: &str) -> ServerSpec {
    let mut spec = odd(mode);
    spec.caller = Arc::clone(caller) as Arc<dyn Caller>;
    spec
}

#[tokio::test]
async fn page_is_opened_before_the_call_repeats() {
    let caller = Arc::<Able>::default();
    let servers = one(with(&caller, "asks")).await;
    let locked = call(&servers, "asks", "locked", json!({}));
    let mut locked = std::pin::pin!(locked);
    let finish = async {
        loop {
            call(&servers, "asks", "finish", json!({ "id": "door" })).await;
            if !caller.received().is_empty() {
                return;
            }
        }
    };
    let opened = async { futures::future::join(locked.as_mut(), finish).await.0 };
    assert_eq!(in_time(opened).await, "open");
    assert_eq!(caller.received(), ["done at door"]);
    in_time(servers.shut_down()).await;
}

#[tokio::test]
async fn input_required_by_a_result_is_given() {
    let requests = json!({
        "who": { "method": "elicitation/create", "params": { "message": "who?" } },
        "where": { "method": "roots/list" },
    });
    let server = with(&Arc::default(), "wants-input --modern");
    let arguments = json!({ "requests": requests, "state": "s\n\"" });
    expect![[r#"{"inputResponses":{"who":{"action":"accept","content":{"name":"want of wants-input --modern"}},"where":{"roots":[{"uri":"file:///1"}]}},"requestState":"s\n\"","sameId":false}"#]]
    .assert_eq(&answer(server, "want", arguments).await);
}

#[tokio::test]
async fn progress_arrives_in_order_before_the_answer() {
    for mode in ["reports", "reports --modern"] {
        let caller = Arc::<Able>::default();
        let steps = json!({ "steps": 1_000 });
        assert_eq!(answer(with(&caller, mode), "work", steps).await, "done");
        let expected = (1..=1_000).map(|step| format!(r#"{step} Some("step {step}")"#));
        assert_eq!(caller.received(), expected.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn server_is_notified_of_changed_roots() {
    let told = |servers: &Servers, times| {
        let servers = servers.clone();
        async move { call(&servers, "roots", "told", json!({ "times": times })).await }
    };
    let servers = one(with(&Arc::default(), "roots")).await;
    expect![[r#"{"announced":{"listChanged":true},"answers":[[{"uri":"file:///1"}]],"asked":1}"#]]
        .assert_eq(&told(&servers, 1).await);
    servers.roots_changed();
    expect![[r#"{"announced":{"listChanged":true},"answers":[[{"uri":"file:///1"}],[{"uri":"file:///2"}]],"asked":2}"#]]
        .assert_eq(&told(&servers, 2).await);
    in_time(servers.shut_down()).await;

    // The folders change while the server connects, after its request for them.
    let caller = Arc::<Able>::default();
    let mut spec = with(&caller, "roots");
    spec.connect = Connect::Manual;
    let servers = start(vec![spec]).await;
    assert!(caller.moves.set(servers.clone()).is_ok());
    in_time(servers.enable("roots")).await.expect("it starts");
    expect![[r#"{"announced":{"listChanged":true},"answers":[[{"uri":"file:///1"}],[{"uri":"file:///2"}]],"asked":2}"#]]
        .assert_eq(&told(&servers, 2).await);
    in_time(servers.shut_down()).await;
}

//! A client that names folders, for servers that ask outside of calls.

use callgate::{Caller as _, CheckMode, ListRoots, Offers};

use super::*;

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A client, and what servers are told of it.
struct Bed {
    client: Client,
    one: OneClient,
}

impl Bed {
    /// Of a gate without servers.
    async fn new() -> Self {
        let gate = Gate::builder().spare_workers(0).check(CheckMode::Off);
        let gate = Arc::new(gate.build().await.expect("a gate"));
        let one = OneClient::default();
        Self {
            client: Client::of(one.clone(), async move { gate }.boxed(), 1 << 16),
            one,
        }
    }

    async fn initialize(&mut self, capabilities: Value) {
        let hello = request(
            0,
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" } }),
        );
        let answer = self.client.answer(&hello).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    }

    /// The next message, which answers a ping: there is nothing else before it.
    async fn is_asked_nothing(&mut self) {
        let ping = request(100, "ping", json!({}));
        assert_eq!(self.client.answer(&ping).await, pong(100));
    }

    /// Is asked for its folders, and gives the request's id.
    async fn asked(&mut self) -> Value {
        loop {
            let message = self.client.hear().await;
            if message["method"] == "roots/list" {
                return message["id"].clone();
            }
            // Of a request that it did not answer in time.
            assert_eq!(message["method"], "notifications/cancelled", "{message}");
        }
    }

    /// Is asked for its folders, and answers so.
    async fn answers(&mut self, member: &str, answer: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": self.asked().await });
        message[member] = answer;
        self.client.say(&message.to_string()).await;
    }

    /// What a server is told that asks on its own.
    fn told(&self) -> Value {
        let told = self.one.roots(ListRoots::new("fs", None)).now_or_never();
        let told = told.expect("at once").expect("it does not refuse");
        ListRoots::result(&told)
    }
}

fn roots(uri: &str) -> Value {
    json!({ "roots": [{ "uri": uri }] })
}

#[tokio::test]
async fn folders_are_asked_for_when_the_session_has_begun_and_when_they_change() {
    let mut bed = Bed::new().await;
    let mut offers = Offers::default();
    (offers.form, offers.url, offers.roots) = (true, true, true);
    (offers.sampling, offers.sampling_tools) = (true, true);
    assert_eq!(bed.one.offers(), offers);
    bed.initialize(json!({ "roots": { "listChanged": true } }))
        .await;
    bed.is_asked_nothing().await;
    assert_eq!(bed.told(), json!({ "roots": [] }));

    bed.client.say(INITIALIZED).await;
    let id = bed.asked().await;
    // It need not answer before it is answered.
    bed.is_asked_nothing().await;
    // What it says of this holds, though the request came before.
    bed.client.say(CHANGED).await;
    let first = json!({ "jsonrpc": "2.0", "id": id, "result": roots("file:///first") });
    bed.client.say(&first.to_string()).await;
    bed.answers("result", roots("file:///second")).await;
    bed.client.say(CHANGED).await;
    // It is asked for others when these have been taken in.
    bed.asked().await;
    assert_eq!(bed.told(), roots("file:///second"));
    bed.client.end().await;
}

#[tokio::test]
async fn folders_stay_as_they_are_where_the_client_does_not_name_others() {
    let mut bed = Bed::new().await;
    bed.initialize(json!({ "roots": {} })).await;
    bed.client.say(INITIALIZED).await;
    bed.answers("result", roots("file:///a")).await;
    for (member, answer) in [
        ("result", json!({ "roots": "file:///b" })),
        ("result", json!(7)),
        ("error", json!({ "code": -32601, "message": "no" })),
    ] {
        bed.client.say(CHANGED).await;
        bed.answers(member, answer).await;
        assert_eq!(bed.told(), roots("file:///a"));
    }
    // It says nothing for as long as it may.
    bed.client.say(CHANGED).await;
    bed.asked().await;
    bed.client.say(CHANGED).await;
    bed.is_asked_nothing().await;
    bed.answers("result", roots("file:///c")).await;
    bed.client.say(CHANGED).await;
    bed.asked().await;
    assert_eq!(bed.told(), roots("file:///c"));
    bed.client.end().await;
}

#[tokio::test]
async fn a_client_without_folders_is_not_asked_for_them() {
    let mut bed = Bed::new().await;
    bed.initialize(json!({})).await;
    bed.client.say(INITIALIZED).await;
    bed.client.say(CHANGED).await;
    bed.is_asked_nothing().await;
    bed.is_asked_nothing().await;
    bed.client.end().await;
}

#[tokio::test]
async fn a_client_of_the_newest_revision_is_not_asked_outside_of_requests() {
    let mut bed = Bed::new().await;
    let capable = single(1, "server/discover").replace(
        r#""io.modelcontextprotocol/clientCapabilities":{}"#,
        r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#,
    );
    assert!(capable.contains("roots"));
    let discovered = bed.client.answer(&capable).await;
    assert!(discovered["result"].is_object(), "{discovered}");
    bed.client.say(CHANGED).await;
    bed.is_asked_nothing().await;
    bed.is_asked_nothing().await;
    bed.client.end().await;
}

//! A client that names folders, for servers that ask outside of calls.

use callgate::config::ToolMode;
use callgate::{Caller as _, CheckMode, GateBuilder, ListRoots, Offers, Rules, ServerSpec};

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
        Self::of(Gate::builder()).await
    }

    async fn of(gate: GateBuilder) -> Self {
        let one = OneClient::default();
        let gate = gate.caller(Arc::new(one.clone()));
        let gate = gate.spare_workers(0).check(CheckMode::Off);
        let gate = Arc::new(gate.build().await.expect("a gate"));
        let options = ServeOptions {
            mode: ToolMode::Native,
            ..ServeOptions::default()
        };
        let service = Service::new(async move { gate }.boxed(), options, Some(one.clone()));
        Self {
            client: Client::of(service.expect("random bytes"), 1 << 16),
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

/// A server of 2025-11-25 whose tool reports that it has begun, and returns what the server
/// is told of folders other than `file:///a`, for which it asks when they change.
const ASKS: &str = r#"
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%,*}
  case $line in
    *'"method":"initialize"'*)
      say "\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"asks\",\"version\":\"1\"}}" ;;
    *'"method":"tools/list"'*)
      say "\"id\":$id,\"result\":{\"tools\":[{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}}]}" ;;
    *'"method":"tools/call"'*)
      call=$id
      token=${line#*'"progressToken":'}
      say "\"method\":\"notifications/progress\",\"params\":{\"progressToken\":${token%%[,\}]*},\"progress\":1}" ;;
    *'"method":"notifications/roots/list_changed"'*) say '"id":"folders","method":"roots/list"' ;;
    *'"id":"folders"'*'file:///a'*) ;;
    *'"id":"folders"'*) say "\"id\":$call,\"result\":{\"content\":[],\"structuredContent\":$line}" ;;
    *'"id":'*) say "\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no such method\"}" ;;
  esac
done"#;

#[tokio::test]
async fn a_server_that_works_on_a_call_hears_that_there_are_no_folders_any_more() {
    let gate = Gate::builder().server(ServerSpec::stdio("fs", "sh", ["-c", ASKS]));
    let rules = Rules::new(["*"], [], []).expect("a pattern");
    let mut bed = Bed::of(gate.rules(rules)).await;
    bed.initialize(json!({ "roots": { "listChanged": true } }))
        .await;
    bed.client.say(INITIALIZED).await;
    bed.answers("result", roots("file:///a")).await;
    let call = json!({ "name": "fs_wait", "_meta": { "progressToken": "p" } });
    let begun = bed.client.answer(&request(1, "tools/call", call)).await;
    assert_eq!(begun["method"], "notifications/progress", "{begun}");

    bed.client.say(CHANGED).await;
    bed.answers("result", json!({ "roots": [] })).await;
    let done = bed.client.hear().await;
    let told = &done["result"]["structuredContent"];
    assert_eq!(told["result"], json!({ "roots": [] }), "{done}");
    bed.client.end().await;
}

//! A client on the other ends of two pipes, which sends what it likes.

mod roots;

use callgate::Gate;
use futures::FutureExt as _;
use serde_json::json;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines as Answers, duplex,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::options::ServeOptions;
use crate::runs::OneClient;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

struct Client {
    to: DuplexStream,
    answers: Answers<BufReader<DuplexStream>>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Client {
    /// Of a gate that is never made, with so much room for answers that are not read.
    fn new(room: usize) -> Self {
        let gate = futures::future::pending::<Arc<Gate>>().boxed();
        let service = Service::new(gate, ServeOptions::default(), Some(OneClient::default()));
        Self::of(service.expect("random bytes"), room)
    }

    fn of(service: Arc<Service>, room: usize) -> Self {
        let (to, from_client) = duplex(1 << 16);
        let (to_client, from) = duplex(room);
        Self {
            to,
            answers: BufReader::new(from).lines(),
            served: tokio::spawn(async move { serve(&service, from_client, to_client).await }),
        }
    }

    async fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        let said = self.to.write_all(line.as_bytes());
        timeout(LONG, said).await.expect("room").expect("a server");
    }

    async fn hear(&mut self) -> Value {
        let line = timeout(LONG, self.answers.next_line()).await;
        let line = line.expect("an answer").expect("UTF-8").expect("a server");
        serde_json::from_str(&line).expect("JSON")
    }

    async fn answer(&mut self, line: &str) -> Value {
        self.say(line).await;
        self.hear().await
    }

    async fn initialize(&mut self) {
        let answer = self.answer(&initialize(0)).await;
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{answer}"
        );
    }

    async fn end(self) {
        drop(self.to);
        let served = timeout(LONG, self.served).await.expect("an end");
        served.expect("no panic").expect("a clean end");
    }
}

fn initialize(id: u64) -> String {
    request(
        id,
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } }),
    )
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Of a client of 2026-07-28.
fn single(id: u64, method: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" } });
    request(id, method, json!({ "_meta": meta }))
}

fn refused(id: Option<Value>, code: i32, message: &str) -> Value {
    let mut refused = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message } });
    if let Some(id) = id {
        refused["id"] = id;
    }
    refused
}

fn pong(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {} })
}

const CANCELLED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

#[tokio::test]
async fn what_would_begin_a_session_is_told_what_it_lacks() {
    let mut client = Client::new(1 << 16);
    let misfit = "the params of initialize do not have its form: \"protocolVersion\" must be a \
                  string; \"clientInfo\" is missing, an object";
    let wrong = request(
        4,
        "initialize",
        json!({ "protocolVersion": 7, "capabilities": {} }),
    );
    let answer = client.answer(&wrong).await;
    assert_eq!(answer, refused(Some(json!(4)), -32602, misfit));
    client.initialize().await;
    client.end().await;
}

#[tokio::test]
async fn what_comes_before_the_first_request_is_ignored() {
    let mut client = Client::new(1 << 16);
    for early in [
        CANCELLED,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
    ] {
        client.say(early).await;
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(client.answer(ping).await, pong(1));
    // Neither chooses an era.
    let discovered = client.answer(&single(2, "server/discover")).await;
    let versions = &discovered["result"]["supportedVersions"];
    assert!(versions.is_array(), "{discovered}");
    client.say(CANCELLED).await;
    client.initialize().await;
    client.end().await;
}

#[tokio::test]
async fn requests_that_cannot_be_served_are_refused() {
    let mut client = Client::new(1 << 16);
    client.initialize().await;
    let call = |id: u64, argument: &str| {
        format!(
            "{{\"method\":\"tools/call\",\"params\":{{\"name\":\"run_script\",\
             \"arguments\":{{\"code\":{argument}}}}},\"jsonrpc\":\"2.0\",\"id\":{id}}}"
        )
    };
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    for (line, id, code, message) in [
        (
            call(1, "\"\\ud800\""),
            Some(1),
            -32600,
            "the message has half a surrogate pair in a text, or a number that is out of range \
             (column 81)",
        ),
        (
            call(2, &deep),
            Some(2),
            -32600,
            "the message is nested deeper than 100 levels",
        ),
        (
            call(3, &long),
            Some(3),
            -32600,
            "the message has more than 16777216 bytes",
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"".to_owned(),
            None,
            -32700,
            "the line is not JSON (line 1, column 39)",
        ),
        (
            "[]".to_owned(),
            None,
            -32600,
            "batches are not part of MCP since 2025-06-18; send one message in a request",
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"ping\"}".to_owned(),
            Some(u64::MAX),
            -32600,
            "the message does not have the form of its method",
        ),
    ] {
        let expected = refused(id.map(Value::from), code, message);
        assert_eq!(client.answer(&line).await, expected);
    }
    // What is no request has no answer.
    client.say("").await;
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"a":"\ud800"}}"#)
        .await;
    let ping = request(5, "ping", json!({}));
    assert_eq!(client.answer(&ping).await, pong(5));
    client.end().await;
}

#[tokio::test]
async fn an_id_is_good_for_one_request_at_a_time() {
    let mut client = Client::new(1 << 16);
    client.initialize().await;
    // There is no gate, so it has no answer.
    client.say(&request(1, "tools/list", json!({}))).await;
    let twice = "a request of this session with this id is not answered yet";
    let ping = request(1, "ping", json!({}));
    let expected = refused(Some(json!(1)), -32600, twice);
    assert_eq!(client.answer(&ping).await, expected);
    for _ in 0..2 {
        let ping = request(2, "ping", json!({}));
        assert_eq!(client.answer(&ping).await, pong(2));
    }
    let text = r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#;
    assert_eq!(client.answer(text).await["id"], "1");
    client.say(CANCELLED).await;
    client.end().await;
}

#[tokio::test]
async fn no_session_begins_after_requests_that_need_none() {
    let mut client = Client::new(1 << 16);
    let first = client.answer(&single(1, "resources/list")).await;
    assert_eq!(first["result"]["resources"], json!([]), "{first}");
    let expected = refused(
        Some(json!(2)),
        -32600,
        "there is no session to initialize: this client has begun with requests of 2026-07-28; \
         go on with these, or start callgate anew",
    );
    assert_eq!(client.answer(&initialize(2)).await, expected);
    client.say(CANCELLED).await;
    let next = client.answer(&single(3, "resources/list")).await;
    assert_eq!(next["result"]["resources"], json!([]), "{next}");
    client.end().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answers_can_go() {
    let go = async |is_begun: bool| {
        let mut client = Client::new(128);
        if is_begun {
            client.initialize().await;
        }
        for id in 1..10 {
            client.say(&request(id, "ping", json!({}))).await;
        }
        let Client {
            to,
            answers,
            served,
        } = client;
        drop(to);
        let served = timeout(LONG, served).await.expect("an end");
        served.expect("no panic").expect("a clean end");
        drop(answers);
    };
    tokio::join!(go(false), go(true));
}

#[tokio::test]
async fn a_client_that_has_closed_its_end_is_gone() {
    for is_begun in [false, true] {
        let mut client = Client::new(1 << 16);
        if is_begun {
            client.initialize().await;
        }
        let Client {
            mut to,
            answers,
            served,
        } = client;
        drop(answers);
        let ping = format!("{}\n", request(1, "ping", json!({})));
        to.write_all(ping.as_bytes()).await.expect("a server");
        let served = timeout(LONG, served).await.expect("an end");
        served.expect("no panic").expect("a clean end");
        drop(to);
    }
}

#[tokio::test]
async fn answers_to_the_last_requests_are_written() {
    let mut client = Client::new(1 << 16);
    client.say(&request(1, "ping", json!({}))).await;
    let Client {
        to,
        mut answers,
        served,
    } = client;
    drop(to);
    served.await.expect("no panic").expect("a clean end");
    let line = answers
        .next_line()
        .await
        .expect("UTF-8")
        .expect("an answer");
    assert_eq!(serde_json::from_str::<Value>(&line).expect("JSON"), pong(1));
    assert_eq!(answers.next_line().await.expect("UTF-8"), None);
}

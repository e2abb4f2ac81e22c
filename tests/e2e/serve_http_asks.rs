//! Questions to clients of `callgate serve --http` that read only the responses to their POST
//! requests, without a stream of their own.

use std::time::Duration;

use callgate_tests::{Workbench, odd};
use reqwest::Response;
use serde_json::{Value, json};

use callgate_tests::served::{Served, hello};

/// A server that sends every kind of request to the client, with calls that need approval.
fn bench() -> Workbench {
    Workbench::with_config(json!({ "mcpServers": { "odd": odd("asks") } }))
}

/// A session of a client, which begins with this.
struct Session<'a> {
    served: &'a Served,
    id: String,
}

impl<'a> Session<'a> {
    async fn begin(served: &'a Served, version: &str, can: &Value) -> Self {
        let mut hello = hello();
        hello["params"]["protocolVersion"] = version.into();
        hello["params"]["capabilities"] = can.clone();
        let answer = served.post(&hello).send().await.expect("an answer");
        let id = answer.headers()["mcp-session-id"].to_str().expect("text");
        let session = Self {
            served,
            id: id.to_owned(),
        };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post(&ready).await.status(), 202);
        session
    }

    async fn post(&self, message: &Value) -> Response {
        let request = self.served.post(message).header("Mcp-Session-Id", &self.id);
        request.send().await.expect("an answer")
    }
}

/// A call that runs this.
fn call(code: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "run_script", "arguments": { "code": code } } })
}

/// The next message on a stream.
async fn next(stream: &mut Response, text: &mut String) -> Value {
    loop {
        if let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.lines().find_map(|line| line.strip_prefix("data:"));
            let message = data.and_then(|data| serde_json::from_str(data.trim()).ok());
            *text = rest.to_owned();
            match message {
                Some(message) => return message,
                None => continue,
            }
        }
        let chunk = tokio::time::timeout(Duration::from_secs(60), stream.chunk()).await;
        let chunk = chunk.expect("something is said").expect("a stream");
        *text += &String::from_utf8_lossy(&chunk.expect("no end before the answer"));
    }
}

/// Questions of Callgate and of servers arrive on the stream of the request that caused them.
#[tokio::test]
async fn questions_arrive_on_the_request_stream() {
    let bench = bench();
    let served = Served::start(&bench, &[]);
    for version in ["2025-06-18", "2025-11-25"] {
        let can = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
        let session = Session::begin(&served, version, &can).await;
        let mut stream = session.post(&call("return await odd_ask({})")).await;
        let (mut text, mut asked) = (String::new(), Vec::new());
        let answer = loop {
            let message = next(&mut stream, &mut text).await;
            let Some(method) = message["method"].as_str() else {
                break message;
            };
            let result = match (method, &message["params"]["requestedSchema"]["required"]) {
                ("roots/list", _) => json!({ "roots": [{ "uri": "file:///home/test" }] }),
                ("sampling/createMessage", _) => json!({
                    "model": "test", "role": "assistant",
                    "content": { "type": "text", "text": "hello" },
                }),
                ("elicitation/create", Value::Array(_)) => {
                    json!({ "action": "accept", "content": { "answer": "once" } })
                }
                ("elicitation/create", _) => json!({ "action": "decline" }),
                other => panic!("{other:?}"),
            };
            asked.push(method.to_owned());
            let said = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            assert_eq!(session.post(&said).await.status(), 202);
        };
        assert_eq!(answer["id"], 7, "{version}: {answer}");
        assert_eq!(answer["result"]["isError"], false, "{version}: {answer}");
        let text = answer["result"]["content"][0]["text"].as_str();
        assert!(text.is_some_and(|text| text.contains("hello")), "{answer}");
        // The requests of the server, after the folders and the question, come in any order.
        assert_eq!(asked[..2], ["roots/list", "elicitation/create"]);
        asked[2..].sort();
        assert_eq!(asked[2..], ["elicitation/create", "sampling/createMessage"]);
    }
}

//! What other people's servers ask of the host while they work, and what they
//! tell it.

use std::sync::{Arc, Mutex};

use callgate::{
    Caller, Gate, Refusal, Root, Rules, ServerSpec,
    caller::{Elicit, ListRoots, Offers, Progress, Sample},
};
use callgate_tests::real_servers;
use futures::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// A host that does everything that servers may ask for, and remembers it.
#[derive(Default)]
struct Host {
    heard: Mutex<Vec<String>>,
}

impl Host {
    fn hear(&self, what: String) {
        self.heard.lock().expect("no panic").push(what);
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().expect("no panic"))
    }
}

impl Caller for Host {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = true;
        offers.sampling = true;
        offers.roots = true;
        offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.hear(format!("{} {:?} elicits", request.server, request.tool));
        let content = json!({ "name": "Ada", "check": true });
        Box::pin(async move { Ok(json!({ "action": "accept", "content": content })) })
    }

    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let text = &request.params["messages"][0]["content"]["text"];
        self.hear(format!(
            "{} {:?} samples {text}",
            request.server, request.tool
        ));
        let content = json!({ "type": "text", "text": "an answer" });
        Box::pin(
            async move { Ok(json!({ "role": "assistant", "content": content, "model": "m" })) },
        )
    }

    fn roots<'a>(&'a self, _request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        let root = Root {
            uri: "file:///work".to_owned(),
            name: Some("work".to_owned()),
        };
        Box::pin(async move { Ok(vec![root]) })
    }

    fn progress(&self, progress: Progress<'_>) {
        let Progress {
            server,
            tool,
            progress,
            total,
            ..
        } = progress;
        self.hear(format!("{server} {tool} {progress} of {total:?}"));
    }
}

struct Everything {
    gate: Gate,
    host: Arc<Host>,
}

impl Everything {
    async fn start() -> Self {
        let entry = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        let entry = real_servers().join(entry).display().to_string();
        let server = ServerSpec::stdio("everything", "node", [entry.as_str(), "stdio"]);
        let host = Arc::new(Host::default());
        let gate = Gate::builder()
            .server(server)
            .rules(Rules::new(["*"], [], []).expect("a pattern"))
            .caller(Arc::clone(&host) as Arc<dyn Caller>)
            .spare_workers(0)
            .build()
            .await
            .expect("the gate is built");
        Self { gate, host }
    }

    /// Calls a tool, and gives what it answers and what the host heard.
    async fn check(&self, function: &str, arguments: Value, answer: &str, heard: &[&str]) {
        // It lists what a host's offers make possible after its handshake.
        while !self.gate.has_tool(function) {
            tokio::task::yield_now().await;
        }
        let arguments: Box<RawValue> = to_raw_value(&arguments).expect("JSON");
        let called = self.gate.call(function, arguments).await;
        let called = called.expect("the tool answers").to_string();
        assert!(called.contains(answer), "{called}");
        assert_eq!(self.host.heard(), heard);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_asks_for_all_it_may() {
    let everything = Everything::start().await;
    everything
        .check(
            "everything_trigger_elicitation_request",
            json!({}),
            "- Name: Ada",
            &[r#"everything Some("trigger-elicitation-request") elicits"#],
        )
        .await;
    everything
        .check(
            "everything_trigger_sampling_request",
            json!({ "prompt": "why?" }),
            "an answer",
            &[
                r#"everything Some("trigger-sampling-request") samples "Resource trigger-sampling-request context: why?""#,
            ],
        )
        .await;
    everything
        .check("everything_get_roots_list", json!({}), "file:///work", &[])
        .await;
    everything.gate.shutdown().await;
}

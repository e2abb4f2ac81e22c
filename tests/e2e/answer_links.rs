//! Links by which a question to the webhook is answered later.

use std::sync::mpsc::Receiver;

use callgate_tests::served::{Served, http};
use callgate_tests::{Workbench, demo_ticketing};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::questions::webhook;

const TOKEN: &str = "token-0123456789abcdef";
const SCRIPT: &str = "return await ticketing_createIssue({ title: '<b>pier</b>' })
    .then(() => 'made', (error) => error.message);";

/// A server with a public URL, whose webhook answers "later".
struct Linked {
    served: Served,
    asked: Receiver<Value>,
    _bench: Workbench,
}

impl Linked {
    fn start(arguments: bool) -> Self {
        let (url, asked) = webhook(r#"{"answer":"later"}"#);
        let bench = Workbench::with_config(json!({
            "mcpServers": { "ticketing": demo_ticketing() },
            "serve": { "http": { "bearer": TOKEN, "publicUrl": "https://gate.example/behind/" } },
            "asking": { "ways": ["webhook"], "webhook": {
                "url": url, "arguments": arguments,
                "secret": "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0",
            } },
        }));
        Self {
            served: Served::start(&bench, &[]),
            asked,
            _bench: bench,
        }
    }

    /// Starts a run, and returns it with the path of its question's link.
    async fn run(self) -> (Self, JoinHandle<Value>, String) {
        let url = format!("http://{}/v1/run", self.served.authority());
        let run = http().post(url).bearer_auth(TOKEN);
        let run = run.json(&json!({ "code": SCRIPT })).send();
        let run = tokio::spawn(async move {
            let report = run.await.expect("an answer").json().await;
            report.expect("a report")
        });
        let waiting = spawn_blocking(move || {
            let question = self.asked.recv().expect("a question");
            (self, question)
        });
        let (linked, question) = waiting.await.expect("no panic");
        let link = question["answerUrl"].as_str().expect("a link");
        let path = link.strip_prefix("https://gate.example/behind/");
        let path = path.expect("the public URL").to_owned();
        (linked, run, path)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.served.authority())
    }

    async fn get(&self, path: &str) -> Response {
        send(http().get(self.url(path)).header("host", "gate.example")).await
    }
}

async fn send(request: RequestBuilder) -> Response {
    request.send().await.expect("an answer")
}

#[tokio::test]
async fn link_answers_its_question_once() {
    for (form, body, expected) in [
        (true, "answer=allow&reason=", "made"),
        (true, "answer=deny&reason=low+tide", "low tide"),
        (false, r#"{"answer":"allow"}"#, "made"),
        (
            false,
            r#"{"answer":"deny","reason":"no pilot"}"#,
            "no pilot",
        ),
    ] {
        let (linked, run, path) = Linked::start(true).run().await;
        // Programs that look at links in messages answer nothing.
        for _ in 0..2 {
            let shown = linked.get(&path).await;
            assert_eq!(shown.status(), StatusCode::OK);
            let policy = shown.headers()["content-security-policy"].clone();
            let policy = policy.to_str().expect("text");
            assert!(policy.starts_with("default-src 'none'"), "{policy}");
            let shown = shown.text().await.expect("a page");
            assert!(shown.contains("&lt;b&gt;pier&lt;/b&gt;"), "{shown}");
            assert!(!shown.contains("<b>"), "{shown}");
        }
        let post = |body: &str| {
            let kind = if form {
                "application/x-www-form-urlencoded"
            } else {
                "application/json"
            };
            // A proxy passes the page's origin on, and a host of its own.
            let request = http().post(linked.url(&path));
            let request = request.header("origin", "https://gate.example");
            send(request.header("content-type", kind).body(body.to_owned()))
        };
        assert!(post("answer=perhaps").await.status().is_client_error());
        assert_eq!(post(body).await.status(), StatusCode::OK);
        assert_eq!(post(body).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(linked.get(&path).await.status(), StatusCode::NOT_FOUND);
        let report = run.await.expect("no panic");
        let value = report["value"]["json"].to_string();
        assert!(value.contains(expected), "{report}");
        let call = &report["calls"][0];
        assert_eq!(call["answeredVia"], "webhook", "{report}");
    }
}

#[tokio::test]
async fn wrong_link_answers_nothing() {
    let (linked, run, path) = Linked::start(false).run().await;
    let shown = linked.get(&path).await.text().await.expect("a page");
    assert!(shown.contains("createIssue"), "{shown}");
    assert!(!shown.contains("pier"), "{shown}");
    let (folder, secret) = path.split_once('/').expect("a secret");
    assert_eq!(secret.len(), 64);
    for wrong in ["answer/", "answer/%00", &path[..path.len() - 1], folder] {
        assert_eq!(linked.get(wrong).await.status(), StatusCode::NOT_FOUND);
        let request = http().post(linked.url(wrong));
        let answer = send(request.json(&json!({ "answer": "allow" }))).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{wrong}");
    }
    let foreign = http()
        .post(linked.url(&path))
        .header("origin", "https://evil.example");
    let refused = send(foreign.json(&json!({ "answer": "allow" }))).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let denied = http().post(linked.url(&path));
    let denied = send(denied.json(&json!({ "answer": "deny" }))).await;
    assert_eq!(denied.status(), StatusCode::OK);
    run.await.expect("no panic");
}

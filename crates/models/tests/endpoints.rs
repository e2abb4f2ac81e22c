//! Endpoints on loopback that answer well, badly, late and never.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use callgate_models::{Api, Embedder, Endpoint, ErrorKind, Key, Model, ModelError, Prompt};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// What an endpoint does with one request.
enum Do {
    Answer(u16, Value),
    Text(&'static str),
    Busy(u16, &'static str),
    Redirect(String),
    Bytes(usize),
    Hang,
}

struct Asked {
    path: String,
    headers: HeaderMap,
    body: Value,
}

/// An endpoint that does one thing after the other, and then hangs up.
struct Fake {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone)]
struct Script {
    steps: Arc<Mutex<VecDeque<Do>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    async fn start(steps: impl IntoIterator<Item = Do>) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let script = Script {
            steps: Arc::new(Mutex::new(steps.into_iter().collect())),
            asked: Arc::clone(&asked),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(script);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked }
    }

    fn endpoint(&self) -> Endpoint {
        self.patient(Duration::from_secs(60))
    }

    fn patient(&self, timeout: Duration) -> Endpoint {
        Endpoint::new(&self.url, Some(Key::new(KEY)), timeout).unwrap()
    }
}

const KEY: &str = "hunter2-hunter2";

async fn answer(
    State(script): State<Script>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    script.asked.lock().unwrap().push(Asked {
        path: uri.path().to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap(),
    });
    let step = script.steps.lock().unwrap().pop_front();
    let response = Response::builder();
    let made = match step {
        Some(Do::Answer(status, value)) => {
            response.status(status).body(Body::from(value.to_string()))
        }
        Some(Do::Text(text)) => response.body(Body::from(text)),
        Some(Do::Busy(status, after)) => response
            .status(status)
            .header("retry-after", after)
            .body(Body::empty()),
        Some(Do::Redirect(to)) => response
            .status(307)
            .header("location", to)
            .body(Body::empty()),
        Some(Do::Bytes(count)) => response.body(Body::from(vec![b' '; count])),
        Some(Do::Hang) => std::future::pending().await,
        None => response
            .status(500)
            .header("retry-after", "3600")
            .body(Body::empty()),
    };
    made.unwrap()
}

fn vectors(list: &[(u64, [f64; 2])]) -> Value {
    let entry = |(index, embedding): &(u64, [f64; 2])| json!({ "object": "embedding", "index": index, "embedding": embedding });
    json!({ "data": list.iter().map(entry).collect::<Vec<_>>() })
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

/// Without what another run has otherwise.
fn plain(fake: &Fake, error: &ModelError) -> String {
    let origin = fake.url.trim_end_matches("/v1");
    let shown = format!("{error} ({:?})", error.kind());
    assert!(
        !shown.contains(KEY) && !format!("{error:?}").contains(KEY),
        "{error:?}"
    );
    shown.replace(origin, "ORIGIN")
}

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts_and_have_length_one() {
    let fake = Fake::start([Do::Answer(
        200,
        vectors(&[(1, [0.0, -5.0]), (0, [3.0, 4.0])]),
    )])
    .await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", Some(2));
    let vectors = embedder.embed(&texts(2)).await.unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, -1.0]]);
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked[0].path, "/v1/embeddings");
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        asked[0].body,
        json!({
            "model": "minilm",
            "input": ["text 0", "text 1"],
            "encoding_format": "float",
            "dimensions": 2,
        })
    );
}

#[tokio::test]
async fn many_texts_are_sent_in_batches() {
    let batch = |count: u64| {
        let list: Vec<_> = (0..count)
            .map(|index| (index, [1.0, index as f64]))
            .collect();
        Do::Answer(200, vectors(&list))
    };
    let fake = Fake::start([batch(64), batch(64), batch(2)]).await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", None);
    let vectors = embedder.embed(&texts(130)).await.unwrap();
    assert_eq!(vectors.len(), 130);
    let asked = fake.asked.lock().unwrap();
    let sizes: Vec<usize> = asked
        .iter()
        .map(|asked| asked.body["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [64, 64, 2]);
    assert_eq!(asked[2].body["input"][1], "text 129");
}

#[tokio::test]
async fn no_text_is_no_request() {
    let fake = Fake::start([]).await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", None);
    assert_eq!(embedder.embed(&[]).await, Ok(Vec::new()));
    assert_eq!(fake.asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn answers_that_are_no_vectors() {
    async fn check(answer: Value, expected: Expect) {
        let fake = Fake::start([Do::Answer(200, answer)]).await;
        let embedder = Embedder::new(fake.endpoint(), "minilm", None);
        let error = embedder.embed(&texts(2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        expected.assert_eq(&plain(&fake, &error));
    }
    check(
        json!([]),
        expect![[
            r#"model endpoint ORIGIN: the answer has no list of vectors in "data" (Malformed)"#
        ]],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has 1 vectors for 2 texts (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (0, [1.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has two vectors with index 0 (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (2, [1.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has a vector with index 2 of 2 (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (1, [0.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has a vector without a direction (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (1, [1e300, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has a vector with something that is no number (Malformed)"],
    )
    .await;
    let odd = |second: Value| json!({ "data": [{ "embedding": [1, 2] }, second] });
    check(odd(json!({ "embedding": [1, 2, 3] })), expect!["model endpoint ORIGIN: the answer has a vector of 3 numbers in place of 2 (at most 16384) (Malformed)"]).await;
    check(odd(json!({ "embedding": [1, "2"] })), expect!["model endpoint ORIGIN: the answer has a vector with something that is no number (Malformed)"]).await;
    check(odd(json!({ "embedding": "AAAA" })), expect![[r#"model endpoint ORIGIN: the answer has an "embedding" that is no list of numbers (Malformed)"#]]).await;
    check(
        odd(json!({ "embedding": [1, 2], "index": -1 })),
        expect![[r#"model endpoint ORIGIN: the answer has a vector whose "index" is no number (Malformed)"#]],
    )
    .await;
    check(odd(json!(5)), expect![[r#"model endpoint ORIGIN: the answer has an "embedding" that is no list of numbers (Malformed)"#]]).await;
    check(
        json!({ "data": [{ "embedding": [] }, { "embedding": [] }] }),
        expect!["model endpoint ORIGIN: the answer has a vector of 0 numbers in place of 0 (at most 16384) (Malformed)"],
    )
    .await;
}

#[tokio::test]
async fn what_no_endpoint_should_do() {
    async fn check(steps: Vec<Do>, requests: usize, expected: Expect) {
        let fake = Fake::start(steps).await;
        let embedder = Embedder::new(fake.endpoint(), "minilm", None);
        let error = embedder.embed(&texts(1)).await.unwrap_err();
        expected.assert_eq(&plain(&fake, &error));
        assert_eq!(fake.asked.lock().unwrap().len(), requests);
    }
    check(
        vec![Do::Text("<html>")],
        1,
        expect!["model endpoint ORIGIN: the answer is not JSON (Malformed)"],
    )
    .await;
    check(
        vec![Do::Bytes((24 << 20) + 1)],
        1,
        expect!["model endpoint ORIGIN: the answer has more than 25165824 bytes (TooLarge)"],
    )
    .await;
    check(
        vec![Do::Redirect("http://127.0.0.1:1/".to_owned())],
        1,
        expect!["model endpoint ORIGIN: it answered 307 Temporary Redirect (Status(307))"],
    )
    .await;
    let said = |message: String| json!({ "error": { "message": message } });
    let wrong = said(format!(
        "no such model\n\u{1b}[2J; your key is {KEY}; {}",
        "x".repeat(500)
    ));
    check(vec![Do::Answer(404, wrong)], 1, expect!["model endpoint ORIGIN: it answered 404 Not Found: no such model  [2J; your key is …; xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx (Status(404))"]).await;
    let key = said(format!("the key {} is wrong", &KEY[..8]));
    check(
        vec![Do::Answer(401, key)],
        1,
        expect![
            "model endpoint ORIGIN: it answered 401 Unauthorized; is the key right? (Status(401))"
        ],
    )
    .await;
    // It says itself when to come back, and that is too late.
    check(
        vec![],
        1,
        expect!["model endpoint ORIGIN: it answered 500 Internal Server Error (Status(500))"],
    )
    .await;
    let busy = || Do::Busy(429, "0");
    check(
        vec![busy(), busy(), busy()],
        3,
        expect!["model endpoint ORIGIN: it answered 429 Too Many Requests (Status(429))"],
    )
    .await;
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again() {
    let fake = Fake::start([
        Do::Busy(429, "0"),
        Do::Busy(503, "0"),
        Do::Answer(200, vectors(&[(0, [1.0, 0.0])])),
    ])
    .await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", None);
    assert_eq!(embedder.embed(&texts(1)).await.unwrap(), [[1.0, 0.0]]);
    assert_eq!(fake.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn one_that_never_answers_is_given_up() {
    let fake = Fake::start([Do::Hang]).await;
    let endpoint = fake.patient(Duration::from_millis(50));
    let error = Embedder::new(endpoint, "minilm", None)
        .embed(&texts(1))
        .await
        .unwrap_err();
    expect!["model endpoint ORIGIN: gave no answer within 50 ms (TimedOut)"]
        .assert_eq(&plain(&fake, &error));
}

#[tokio::test]
async fn one_that_is_not_there() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let endpoint = Endpoint::new(&url, None, Duration::from_secs(60)).unwrap();
    let error = Embedder::new(endpoint, "minilm", None)
        .embed(&texts(1))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert_eq!(
        error.to_string(),
        format!("model endpoint {url}: cannot be reached")
    );
}

#[tokio::test]
async fn a_model_of_either_api_answers() {
    let schema = json!({ "type": "object" });
    let prompt = Prompt {
        system: "do it",
        text: "with this",
        schema: Some(&schema),
        max_tokens: 100,
    };
    let fake = Fake::start([Do::Answer(
        200,
        json!({
            "choices": [{ "message": { "content": "{}" }, "finish_reason": "length" }],
            "usage": { "prompt_tokens": 12, "completion_tokens": 3 },
        }),
    )])
    .await;
    let said = Model::new(fake.endpoint(), Api::OpenAi, "small")
        .ask(&prompt)
        .await
        .unwrap();
    assert_eq!((said.text.as_str(), said.cut), ("{}", true));
    assert_eq!((said.usage.input, said.usage.output), (12, 3));
    {
        let asked = fake.asked.lock().unwrap();
        assert_eq!(asked[0].path, "/v1/chat/completions");
        assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(
            asked[0].body,
            json!({
                "model": "small",
                "max_tokens": 100,
                "messages": [
                    { "role": "system", "content": "do it" },
                    { "role": "user", "content": "with this" },
                ],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": { "name": "answer", "schema": schema, "strict": false },
                },
            })
        );
    }
    let fake = Fake::start([Do::Answer(
        200,
        json!({
            "content": [
                { "type": "thinking", "thinking": "hm" },
                { "type": "text", "text": "[1" },
                { "type": "text", "text": "]" },
            ],
            "stop_reason": "end_turn",
            "usage": { "input_tokens": 7, "output_tokens": 2 },
        }),
    )])
    .await;
    let said = Model::new(fake.endpoint(), Api::Anthropic, "small")
        .ask(&prompt)
        .await
        .unwrap();
    assert_eq!((said.text.as_str(), said.cut), ("[1]", false));
    assert_eq!((said.usage.input, said.usage.output), (7, 2));
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked[0].path, "/v1/messages");
    assert_eq!(asked[0].headers["x-api-key"], KEY);
    assert_eq!(asked[0].headers["anthropic-version"], "2023-06-01");
    assert!(!asked[0].headers.contains_key("authorization"));
    assert_eq!(
        asked[0].body,
        json!({
            "model": "small",
            "max_tokens": 100,
            "system": "do it",
            "messages": [{ "role": "user", "content": "with this" }],
        })
    );
}

#[tokio::test]
async fn an_endpoint_that_knows_no_schemas_is_asked_without() {
    let fake = Fake::start([
        Do::Answer(400, json!({ "error": { "message": "response_format?" } })),
        Do::Answer(
            200,
            json!({ "choices": [{ "message": { "content": "1" } }] }),
        ),
    ])
    .await;
    let schema = json!(true);
    let prompt = Prompt {
        system: "",
        text: "",
        schema: Some(&schema),
        max_tokens: 5,
    };
    let said = Model::new(fake.endpoint(), Api::OpenAi, "small")
        .ask(&prompt)
        .await
        .unwrap();
    assert_eq!(said.text, "1");
    let asked = fake.asked.lock().unwrap();
    let mut keys: Vec<&String> = asked[1].body.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["max_completion_tokens", "messages", "model"]);
}

#[tokio::test]
async fn answers_that_say_nothing() {
    async fn check(api: Api, answer: Value, expected: Expect) {
        let fake = Fake::start([Do::Answer(200, answer)]).await;
        let prompt = Prompt {
            system: "",
            text: "",
            schema: None,
            max_tokens: 5,
        };
        let asked = Model::new(fake.endpoint(), api, "small").ask(&prompt).await;
        expected.assert_eq(&plain(&fake, &asked.unwrap_err()));
    }
    check(
        Api::OpenAi,
        json!({ "choices": [] }),
        expect![[r#"model endpoint ORIGIN: the answer has no text in "choices" (Malformed)"#]],
    )
    .await;
    let refusal = json!({ "choices": [{ "message": { "content": null } }] });
    check(
        Api::OpenAi,
        refusal,
        expect![[r#"model endpoint ORIGIN: the answer has no text in "choices" (Malformed)"#]],
    )
    .await;
    check(
        Api::Anthropic,
        json!({ "content": "text" }),
        expect![[r#"model endpoint ORIGIN: the answer has no "content" (Malformed)"#]],
    )
    .await;
    check(
        Api::Anthropic,
        json!({ "content": [] }),
        expect![[r#"model endpoint ORIGIN: the answer has no text in "content" (Malformed)"#]],
    )
    .await;
}

#[test]
fn urls_that_nothing_is_sent_to() {
    let check = |url: &str, expected: Expect| {
        let made = Endpoint::new(url, None, Duration::from_secs(1));
        let shown = match made {
            Ok(endpoint) => endpoint.origin().to_owned(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    };
    check(
        "https://api.example.com/v1",
        expect!["https://api.example.com"],
    );
    check("http://localhost:1234", expect!["http://localhost:1234"]);
    check("http://127.8.8.8/", expect!["http://127.8.8.8"]);
    check("http://[::1]:5/", expect!["http://[::1]:5"]);
    check(
        "http://api.example.com/v1",
        expect![
            "model endpoint http://api.example.com: the URL must be https, or http on loopback"
        ],
    );
    check(
        "http://127.0.0.1.example.com",
        expect![
            "model endpoint http://127.0.0.1.example.com: the URL must be https, or http on loopback"
        ],
    );
    check(
        "http://localhost.example.com",
        expect![
            "model endpoint http://localhost.example.com: the URL must be https, or http on loopback"
        ],
    );
    check(
        "https://me:hunter2@example.com",
        expect![
            "model endpoint https://example.com: the URL holds a user name or password; use a key"
        ],
    );
    check(
        "https://example.com/#x",
        expect!["model endpoint https://example.com: the URL has a fragment; remove it"],
    );
    check(
        "file:///etc/passwd",
        expect!["model endpoint null: the URL must be https, or http on loopback"],
    );
    check(
        "api.example.com",
        expect!["model endpoint : the URL is none; write one such as https://api.example.com/v1"],
    );
}

#[test]
fn keys_are_not_shown() {
    let endpoint = Endpoint::new(
        "https://example.com",
        Some(Key::new(KEY)),
        Duration::from_secs(1),
    );
    let model = Model::new(endpoint.unwrap(), Api::OpenAi, "small");
    assert!(!format!("{model:?} {:?}", Key::new(KEY)).contains(KEY));
    let unfit = Endpoint::new(
        "https://example.com",
        Some(Key::new("a\nb")),
        Duration::ZERO,
    );
    expect!["model endpoint https://example.com: the key holds characters that no header can hold"]
        .assert_eq(&unfit.unwrap_err().to_string());
}

//! Endpoints that refuse, are busy, do not finish, or are missing.

use std::time::Duration;

use callgate_models::{Api, Embedder, Endpoint};
use serde_json::json;

use crate::support::{Do, Fake, KEY, plain, texts, vectors};

#[tokio::test]
async fn misbehaving_endpoint_gives_a_clean_error() {
    let said = |message: String| json!({ "error": { "message": message } });
    let long = "x".repeat(500);
    let wrong = said(format!(
        "no such model\n\u{1b}[2J; your key is {KEY}; {long}"
    ));
    let key = said(format!("the key {} is wrong", &KEY[..8]));
    let shown = format!(
        "it answered 404 Not Found: no such model  [2J; your key is …; {}",
        "x".repeat(165)
    );
    let busy = || Do::Busy(429, "0");
    let elsewhere = Do::Redirect("http://127.0.0.1:1/".to_owned());
    for (steps, expected) in [
        (vec![Do::Text("<html>")], "the answer is not JSON"),
        (
            vec![Do::Bytes((24 << 20) + 1)],
            "the answer has more than 25165824 bytes",
        ),
        (vec![elsewhere], "it answered 307 Temporary Redirect"),
        (vec![Do::Answer(404, wrong)], &shown),
        (
            vec![Do::Answer(401, key)],
            "it answered 401 Unauthorized; is the key right?",
        ),
        // It requests a wait beyond the time limit.
        (vec![], "it answered 500 Internal Server Error"),
        (
            vec![busy(), busy(), busy()],
            "it answered 429 Too Many Requests",
        ),
    ] {
        let requests = steps.len().max(1);
        let fake = Fake::start(steps).await;
        let embedder = fake.embedder(None);
        let error = embedder.embed(&texts(1)).await.unwrap_err();
        let expected = format!("model endpoint ORIGIN: {expected}");
        assert_eq!(plain(&fake, &error), expected);
        assert_eq!(fake.asked.lock().unwrap().len(), requests);
    }
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again() {
    let fake = Fake::start([
        Do::Busy(429, "0"),
        Do::Busy(503, "0"),
        Do::Answer(200, vectors(&[(0, [1.0, 0.0])])),
    ])
    .await;
    let embedder = fake.embedder(None);
    assert_eq!(embedder.embed(&texts(1)).await.unwrap(), [[1.0, 0.0]]);
    assert_eq!(fake.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn silent_endpoint_times_out() {
    let fake = Fake::start([Do::Hang]).await;
    let endpoint = fake.patient(Api::OpenAi, Duration::from_millis(50));
    let asked = Embedder::new(endpoint, "minilm", None)
        .embed(&texts(1))
        .await;
    let expected = "model endpoint ORIGIN: gave no answer within 50 ms";
    let error = asked.unwrap_err();
    assert!(error.is_timeout());
    assert_eq!(plain(&fake, &error), expected);
}

#[tokio::test]
async fn unreachable_endpoint_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let endpoint = Endpoint::new(Api::OpenAi, &url, None, Duration::from_secs(60)).unwrap();
    let asked = Embedder::new(endpoint, "minilm", None)
        .embed(&texts(1))
        .await;
    let error = asked.unwrap_err();
    assert!(!error.is_timeout());
    let expected = format!("model endpoint {url}: cannot be reached");
    assert_eq!(error.to_string(), expected);
}

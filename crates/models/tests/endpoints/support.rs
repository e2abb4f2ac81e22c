//! An endpoint that does as it is told, and what it is asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use callgate_models::{Endpoint, Key, ModelError};
use serde_json::{Value, json};

pub const KEY: &str = "hunter2-hunter2";

/// What an endpoint does with one request.
pub enum Do {
    Answer(u16, Value),
    Text(&'static str),
    Busy(u16, &'static str),
    Redirect(String),
    Bytes(usize),
    Hang,
}

pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

/// An endpoint that does one thing after the other, and then hangs up.
pub struct Fake {
    pub url: String,
    pub asked: Arc<Mutex<Vec<Asked>>>,
}

#[derive(Clone)]
struct Script {
    steps: Arc<Mutex<VecDeque<Do>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    pub async fn start(steps: impl IntoIterator<Item = Do>) -> Self {
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

    pub fn endpoint(&self) -> Endpoint {
        self.patient(Duration::from_secs(60))
    }

    pub fn patient(&self, timeout: Duration) -> Endpoint {
        Endpoint::new(&self.url, Some(Key::new(KEY)), timeout).unwrap()
    }
}

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

pub fn vectors(list: &[(u64, [f64; 2])]) -> Value {
    let entry = |(index, embedding): &(u64, [f64; 2])| json!({ "object": "embedding", "index": index, "embedding": embedding });
    json!({ "data": list.iter().map(entry).collect::<Vec<_>>() })
}

pub fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

/// Without what another run has otherwise.
pub fn plain(fake: &Fake, error: &ModelError) -> String {
    let origin = fake.url.trim_end_matches("/v1");
    let shown = format!("{error} ({:?})", error.kind());
    assert!(
        !shown.contains(KEY) && !format!("{error:?}").contains(KEY),
        "{error:?}"
    );
    shown.replace(origin, "ORIGIN")
}

//! A scripted endpoint, which records its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use callgate_models::{Api, Embedder, Endpoint, ModelError};
use serde_json::{Value, json};

pub const KEY: &str = "hunter2-hunter2";

/// The reaction of an endpoint to one request.
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

/// An endpoint that takes one step of its script per request, and answers 500 after the last.
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

    pub fn endpoint(&self, api: Api) -> Endpoint {
        self.patient(api, Duration::from_secs(60))
    }

    pub fn embedder(&self, dimensions: Option<usize>) -> Embedder {
        Embedder::new(self.endpoint(Api::OpenAi), "minilm", dimensions)
    }

    pub fn patient(&self, api: Api, timeout: Duration) -> Endpoint {
        Endpoint::new(api, &self.url, Some(KEY.to_owned()), timeout).unwrap()
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
    let (status, header, body) = match step {
        Some(Do::Answer(status, value)) => (status, None, value.to_string()),
        Some(Do::Text(text)) => (200, None, text.to_owned()),
        Some(Do::Busy(status, after)) => (
            status,
            Some(("retry-after", after.to_owned())),
            String::new(),
        ),
        Some(Do::Redirect(to)) => (307, Some(("location", to)), String::new()),
        Some(Do::Bytes(count)) => (200, None, " ".repeat(count)),
        Some(Do::Hang) => std::future::pending().await,
        None => (500, Some(("retry-after", "3600".to_owned())), String::new()),
    };
    let response = Response::builder().status(status);
    let response = header
        .into_iter()
        .fold(response, |response, (name, value)| {
            response.header(name, value)
        });
    response.body(Body::from(body)).unwrap()
}

pub fn vectors(list: &[(u64, [f64; 2])]) -> Value {
    let entry = |(index, embedding): &(u64, [f64; 2])| json!({ "object": "embedding", "index": index, "embedding": embedding });
    json!({ "data": list.iter().map(entry).collect::<Vec<_>>() })
}

pub fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

/// The error's text without the endpoint's port, which differs from run to run.
pub fn plain(fake: &Fake, error: &ModelError) -> String {
    let origin = fake.url.trim_end_matches("/v1");
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    error.to_string().replace(origin, "ORIGIN")
}

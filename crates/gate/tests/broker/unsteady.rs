//! An HTTP server that is not there, that breaks its answers off, or that is well.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::Response;
use callgate_gate::ServerSpec;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// A server with one tool, `count { hang }`, that says how often it was called, or does not
/// answer. It ends with the runtime of its test.
pub struct Unsteady {
    address: SocketAddr,
    /// Its port is its own, and whoever connects is refused.
    closed: Option<TcpSocket>,
    doing: Arc<Doing>,
}

struct Doing {
    since: Instant,
    breaks: AtomicBool,
    /// The methods of the requests that came, and when.
    asked: Mutex<Vec<(String, Duration)>>,
}

impl Unsteady {
    /// One that is not there.
    pub fn absent() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(any).expect("a port");
        Self {
            address: socket.local_addr().expect("an address"),
            closed: Some(socket),
            doing: Arc::new(Doing {
                since: Instant::now(),
                breaks: AtomicBool::new(false),
                asked: Mutex::default(),
            }),
        }
    }

    /// One that is there.
    pub fn present() -> Self {
        let mut unsteady = Self::absent();
        unsteady.appear();
        unsteady
    }

    /// From now on it is there.
    pub fn appear(&mut self) {
        let closed = self.closed.take().expect("it was not there");
        let listener = closed.listen(1_024).expect("its port is its own");
        let answers = axum::routing::post(answer);
        let router = axum::Router::new().route("/mcp", answers);
        let router = router.with_state(Arc::clone(&self.doing));
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    /// Whether it ends each connection in the middle of its answer, from now on.
    pub fn breaks(&self, breaks: bool) {
        self.doing.breaks.store(breaks, Ordering::SeqCst);
    }

    pub fn spec(&self, era: &str) -> ServerSpec {
        let mut spec = ServerSpec::http("web", format!("http://{}/mcp", self.address));
        spec.era = era.parse().expect("a revision");
        spec
    }

    pub fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// When requests of this method came, since some time.
    pub fn asked(&self, method: &str) -> Vec<Duration> {
        let asked = self.doing.asked.lock().expect("no panic");
        let of_method = asked.iter().filter(|(name, _)| name == method);
        of_method.map(|(_, at)| *at).collect()
    }

    /// How many requests came, of whatever method.
    pub fn requests(&self) -> usize {
        self.doing.asked.lock().expect("no panic").len()
    }
}

async fn answer(State(doing): State<Arc<Doing>>, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).expect("what is sent is JSON");
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let count = {
        let mut asked = doing.asked.lock().expect("no panic");
        asked.push((method.clone(), doing.since.elapsed()));
        asked.iter().filter(|(name, _)| *name == method).count()
    };
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    if doing.breaks.load(Ordering::SeqCst) {
        let half = futures::stream::once(async { Ok(r#"{"jsonrpc":"2.0","#) });
        let end = futures::stream::once(async {
            // So that the half is sent before.
            tokio::task::yield_now().await;
            Err(std::io::Error::other("it breaks off"))
        });
        let half = Body::from_stream(half.chain(end));
        return response.body(half).expect("a response");
    }
    if message["params"]["arguments"]["hang"] == true {
        return std::future::pending().await;
    }
    let result = match method.as_str() {
        "server/discover" => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
        }),
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "unsteady", "version": "1" },
        }),
        "tools/list" => json!({
            "resultType": "complete",
            "tools": [{ "name": "count", "inputSchema": { "type": "object" } }],
        }),
        "tools/call" => json!({
            "resultType": "complete",
            "content": [],
            "structuredContent": count,
        }),
        _ => {
            let accepted = response.status(StatusCode::ACCEPTED).body(Body::empty());
            return accepted.expect("a response");
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    let answer = Body::from(answer.to_string());
    response.body(answer).expect("a response")
}

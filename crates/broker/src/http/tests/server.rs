//! A server that says exactly what a test wants it to say.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Listens on loopback until it is dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    log: Log,
    listening: AbortHandle,
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<String>>>);

/// One request, and the connection it came on.
pub(super) struct Request {
    /// Method, a space, and the path.
    pub(super) line: String,
    headers: Vec<(String, String)>,
    pub(super) body: String,
    pub(super) log: Log,
    stream: TcpStream,
}

impl Server {
    /// Answers each request, on a connection of its own, by `handler`.
    pub(super) async fn start<F>(handler: F) -> Self
    where
        F: Fn(Request) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let log = Log::default();
        let handler = Arc::new(handler);
        let shared = log.clone();
        let listening = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, log) = (Arc::clone(&handler), shared.clone());
                connections.spawn(async move {
                    if let Some(request) = Request::read(stream, log).await {
                        handler(request).await;
                    }
                });
            }
        });
        Self {
            address,
            log,
            listening: listening.abort_handle(),
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What was noted, a line each.
    pub(super) fn log(&self) -> String {
        self.log.lines().join("\n") + "\n"
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Log {
    pub(super) fn note(&self, line: impl Into<String>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Request {
    async fn read(mut stream: TcpStream, log: Log) -> Option<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap_or(0));
        while bytes.len() < end + 4 + length {
            stream.read_buf(&mut bytes).await.ok()?;
        }
        Some(Self {
            line,
            headers,
            body: String::from_utf8_lossy(&bytes[end + 4..]).into_owned(),
            log,
            stream,
        })
    }

    /// A header's value, or `-`.
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map_or("-", |(_, value)| value)
    }

    /// The JSON-RPC method, or the HTTP method if there is none.
    pub(super) fn method(&self) -> String {
        let message = serde_json::from_str::<serde_json::Value>(&self.body);
        let message = message.unwrap_or_default();
        match message["method"].as_str() {
            Some(method) => method.to_owned(),
            None => self.line.split(' ').next().unwrap_or_default().to_owned(),
        }
    }

    /// Writes bytes as they are; false once the client is gone.
    pub(super) async fn write(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Writes a whole response and closes the connection.
    pub(super) async fn answer(&mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.write(format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
        .await;
        // All of it is to be read before the connection is reset.
        let _gone = self.stream.shutdown().await;
    }

    /// A JSON answer.
    pub(super) async fn json(&mut self, body: &str) {
        self.answer("200 OK", "Content-Type: application/json\r\n", body)
            .await;
    }

    /// The head of a stream of events, which ends with the connection.
    pub(super) async fn events(&mut self) -> bool {
        self.write(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n",
        )
        .await
    }

    /// Waits until the client closes the connection.
    pub(super) async fn gone(&mut self) {
        let mut rest = [0; 64];
        while let Ok(1..) = self.stream.read(&mut rest).await {}
    }
}

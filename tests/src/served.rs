//! `callgate serve --http` on loopback, and clients of it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use reqwest::{Client, RequestBuilder, Response};
use rmcp::handler::client::ClientHandler;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::Workbench;

/// A server that ends when this is dropped.
#[derive(Debug)]
pub struct Served {
    process: Child,
    /// The URL of the MCP endpoint.
    pub url: String,
    log: Option<JoinHandle<String>>,
}

impl Served {
    /// Starts one on a free port of loopback.
    pub fn start(bench: &Workbench, flags: &[&str]) -> Self {
        Self::by(bench.command(&[&["serve", "--http", "127.0.0.1:0"], flags].concat()))
    }

    /// Starts it by this command.
    pub fn by(mut command: Command) -> Self {
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start callgate serve");
        let mut lines = BufReader::new(process.stderr.take().expect("a piped stderr")).lines();
        let mut log = String::new();
        let url = loop {
            let Some(line) = lines.next() else {
                panic!("it does not serve: {log}");
            };
            let line = line.expect("UTF-8");
            if let Some(url) = line.strip_prefix("serving MCP at ") {
                break url.to_owned();
            }
            if !line.starts_with("sandbox: ") {
                log += &line;
            }
        };
        let log = thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| log += &(line + "\n"));
            log
        });
        Self {
            process,
            url,
            log: Some(log),
        }
    }

    /// The address, without the scheme and the path.
    pub fn authority(&self) -> &str {
        let rest = self.url.strip_prefix("http://").expect("an http URL");
        rest.strip_suffix("/mcp").expect("the path")
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end, as a service manager does.
    pub fn terminate(&self) {
        // SAFETY: a system call with numbers; the process is ours and not waited for.
        let sent = unsafe { libc::kill(self.pid().cast_signed(), libc::SIGTERM) };
        assert_eq!(sent, 0);
    }

    /// Waits for its end: the exit code, and its log.
    pub fn wait(&mut self) -> (Option<i32>, String) {
        let status = self.process.wait().expect("an end");
        let log = self.log.take().expect("it ends once");
        (status.code(), log.join().expect("no panic"))
    }

    /// A POST to it as a client of this revision sends it.
    pub fn post(&self, message: &Value) -> RequestBuilder {
        self.post_text(message.to_string())
    }

    /// [`Self::post`], of a text that may be no message.
    pub fn post_text(&self, text: String) -> RequestBuilder {
        http()
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(text)
    }

    /// A request of the newest revision, which has no sessions, of a client that can do this.
    pub fn modern(&self, method: &str, mut params: Value, can: &Value) -> RequestBuilder {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": can,
        });
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let request = self
            .post(&message)
            .header("MCP-Protocol-Version", "2026-07-28");
        let request = request.header("Mcp-Method", method);
        match params["name"].as_str() {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
    }

    /// An MCP client, with this token.
    pub async fn connect<H: ClientHandler>(
        &self,
        client: H,
        token: Option<&str>,
    ) -> RunningService<RoleClient, H> {
        let connected = connect(&self.url, client, token).await;
        connected.expect("a handshake")
    }

    /// Begins a session, and gives its id.
    pub async fn session(&self, token: Option<&str>) -> String {
        let mut request = self.post(&hello());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let session = answer.headers().get("mcp-session-id").expect("a session");
        session.to_str().expect("text").to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Connects an MCP client that speaks its revision to this URL, with this token.
pub async fn connect<H: ClientHandler>(
    url: &str,
    client: H,
    token: Option<&str>,
) -> Result<RunningService<RoleClient, H>, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
    if let Some(token) = token {
        config = config.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::with_client(http(), config);
    let lifecycle = lifecycle(&client);
    let client = client.serve_with_lifecycle(transport, lifecycle).await;
    client.map_err(|error| error.to_string())
}

/// The handshake of a client: `server/discover` in the newest revision, else `initialize`.
pub fn lifecycle(client: &impl ClientHandler) -> ClientLifecycleMode {
    match client.get_info().protocol_version {
        newest if newest == ProtocolVersion::V_2026_07_28 => ClientLifecycleMode::Discover {
            preferred_versions: vec![newest],
        },
        _ => ClientLifecycleMode::Initialize,
    }
}

/// The `initialize` request, which begins a session.
pub fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } })
}

/// A client that goes nowhere else.
pub fn http() -> Client {
    let client = Client::builder().no_proxy();
    let client = client.redirect(reqwest::redirect::Policy::none());
    client.build().expect("a client")
}

/// Status and text of an answer.
pub async fn said(response: Response) -> String {
    let status = response.status().as_u16();
    let text = response.text().await.expect("a text");
    // It may be the one event of a stream.
    let message = text.strip_prefix("data: ").unwrap_or(&text);
    match serde_json::from_str::<Value>(message) {
        Ok(body) if body["error"].is_object() => {
            let error = &body["error"];
            let to = body
                .get("id")
                .map_or("nothing".to_owned(), Value::to_string);
            let message = error["message"].as_str().unwrap_or_default();
            format!("{status} {} to {to}: {message}", error["code"])
        }
        _ => format!("{status} {text}"),
    }
}

//! Asking one MCP server over stdio for its tools.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::Server;

/// The time that a server has for each answer. The slowest import for many seconds.
const PATIENCE: Duration = Duration::from_secs(90);
/// Lists that continue are asked for this often at most.
const MAX_PAGES: usize = 50;
/// Where nothing listens: what a server wants from the network fails at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The tools that a server lists. It gets a home of its own and no way out.
pub(super) fn tools(server: &Server, home: &Path) -> Result<Vec<Value>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(&server.program);
    command
        .args(&server.arguments)
        .current_dir(home)
        .env_clear();
    command.env("PATH", path).env("HOME", home);
    command
        .env("HTTP_PROXY", NOWHERE)
        .env("HTTPS_PROXY", NOWHERE)
        .envs(&server.environment);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().context("it does not start")?;
    let listed = conversation(&mut child);
    // Whatever it thinks of that: it was only asked.
    let _ended = child.kill().and_then(|()| child.wait().map(drop));
    listed
}

fn conversation(child: &mut Child) -> Result<Vec<Value>> {
    let stdin = child.stdin.take().context("it has no stdin")?;
    let stdout = child.stdout.take().context("it has no stdout")?;
    let mut connection = Connection {
        stdin,
        lines: lines_of(stdout),
        next: 0,
    };
    let client = json!({ "name": "callgate-corpus", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    connection.ask("initialize", &hello)?;
    connection.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let mut tools = Vec::new();
    let mut parameters = json!({});
    for _ in 0..MAX_PAGES {
        let mut page = connection.ask("tools/list", &parameters)?;
        let Value::Array(listed) = page["tools"].take() else {
            bail!("it answers without a list of tools");
        };
        tools.extend(listed);
        match page.get("nextCursor") {
            Some(Value::String(cursor)) => parameters = json!({ "cursor": cursor }),
            _ => return Ok(tools),
        }
    }
    bail!("its list does not end")
}

struct Connection {
    stdin: ChildStdin,
    lines: Receiver<String>,
    next: u64,
}

impl Connection {
    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": method, "params": parameters,
        }))?;
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.with_context(|| format!("it does not answer {method}"))?;
            // Some print what is no message.
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if message["id"] != id {
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("it answers {method} with an error: {error}");
            }
            if message.get("result").is_some() {
                return Ok(message["result"].take());
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.stdin, "{message}").context("it has ended")?;
        self.stdin.flush().context("it has ended")
    }
}

/// The lines of a stream, read on a thread that ends with it.
fn lines_of(stream: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.all(|line| sender.send(line).is_ok())
    });
    receiver
}

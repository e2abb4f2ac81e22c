//! Lists the tools of one MCP server over stdio.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::process;

/// Seconds after which a server is ended. Some need most of them for imports.
const TIME_LIMIT: &str = "90";
const MAX_PAGES: usize = 50;
/// A proxy URL at which nothing listens: a server's network requests fail at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The tools of a server, which gets its own home and no network.
pub(super) fn tools(server: &Value, installed: &Path, home: &Path) -> Result<Vec<Value>> {
    let mut command = Command::new("timeout");
    command
        .arg(TIME_LIMIT)
        .arg(super::program(server, installed));
    let arguments = server["args"].as_array().into_iter().flatten();
    command.args(arguments.filter_map(Value::as_str));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", home);
    command.env("HTTP_PROXY", NOWHERE);
    command.env("HTTPS_PROXY", NOWHERE);
    for (name, value) in server["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    command.current_dir(home);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn()?;
    let listed = conversation(&mut child);
    // `timeout` forwards the signal. It fails if the server has ended by itself.
    let _ = process::output(Command::new("kill").arg(child.id().to_string()));
    child.wait()?;
    listed
}

fn conversation(child: &mut Child) -> Result<Vec<Value>> {
    let mut stdin = child.stdin.take().context("it has no stdin")?;
    let stdout = child.stdout.take().context("it has no stdout")?;
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let mut send = |message: Value| writeln!(stdin, "{message}").context("it has ended");
    let mut answer = |method: &str| -> Result<Value> {
        // Some servers print other text besides messages.
        let messages = lines
            .by_ref()
            .filter_map(|it| serde_json::from_str(&it).ok());
        let mut answers = messages.filter(|message: &Value| message["id"] == method);
        let mut answer = answers.next();
        let result = answer.as_mut().and_then(|it| it.get_mut("result"));
        match result.map(Value::take) {
            Some(result) => Ok(result),
            None => bail!("it gives no result of {method} in {TIME_LIMIT} seconds: {answer:?}"),
        }
    };
    let request = |method, params| json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
    let client = json!({ "name": "callgate-corpus", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    send(request("initialize", hello))?;
    answer("initialize")?;
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let mut tools = Vec::new();
    let mut parameters = json!({});
    for _ in 0..MAX_PAGES {
        send(request("tools/list", parameters))?;
        let mut page = answer("tools/list")?;
        let Value::Array(listed) = page["tools"].take() else {
            bail!("it answers without a list of tools");
        };
        tools.extend(listed);
        match page["nextCursor"].take() {
            Value::String(cursor) => parameters = json!({ "cursor": cursor }),
            _ => return Ok(tools),
        }
    }
    bail!("its list does not end")
}

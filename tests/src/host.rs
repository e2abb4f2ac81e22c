//! `callgate serve` over stdio, with a client that has no capabilities.

use std::io::{BufRead as _, BufReader, Error, Lines, Result, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{Workbench, binary};

/// A process that serves, until this is dropped.
#[derive(Debug)]
pub struct Host {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl Host {
    /// Starts `callgate serve` with these flags in a folder.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(bench: &Workbench, flags: &[&str]) -> Result<Self> {
        let mut process = Command::new(program())
            .arg("serve")
            .args(flags)
            .current_dir(bench.path())
            .env("XDG_CACHE_HOME", bench.cache())
            .env("XDG_STATE_HOME", bench.path().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let answers = process.stdout.take().ok_or_else(ended)?;
        let mut host = Self {
            process,
            answers: BufReader::new(answers).lines(),
            id: 0,
        };
        let client = json!({ "name": "client", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
        });
        host.request("initialize", &params)?;
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(host)
    }

    /// The result of a request.
    ///
    /// # Errors
    ///
    /// If the answer is an error, or none comes.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let line = self.answers.next().ok_or_else(ended)??;
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return match message["result"].take() {
                    Value::Null => Err(Error::other(line)),
                    result => Ok(result),
                };
            }
        }
    }

    /// Calls a tool: its text, and true if the result is an error.
    ///
    /// # Errors
    ///
    /// If there is no result.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<(String, bool)> {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", &params)?;
        let blocks = result["content"].as_array().into_iter().flatten();
        let text = blocks.filter_map(|block| block["text"].as_str()).collect();
        Ok((text, result["isError"] == true))
    }

    /// The id of the process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let requests = self.process.stdin.as_mut().ok_or_else(ended)?;
        writeln!(requests, "{message}")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // This closes its standard input first, which ends it.
        let _ = self.process.wait();
    }
}

/// The `callgate` to measure: that of `CALLGATE_BENCH_PROGRAM`, else the one built with this.
///
/// # Panics
///
/// If neither is there.
#[must_use]
pub fn program() -> PathBuf {
    std::env::var_os("CALLGATE_BENCH_PROGRAM").map_or_else(|| binary("callgate"), PathBuf::from)
}

fn ended() -> Error {
    Error::other("callgate has ended")
}

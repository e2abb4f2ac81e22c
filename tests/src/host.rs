//! `callgate serve` over stdio, with a client that has no capabilities.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Error, Lines, Result, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::{Workbench, binary};

/// A process that serves. Dropping it closes its standard input, which ends it, and waits.
#[derive(Debug)]
pub struct Host {
    /// The process; its standard streams are the fields below.
    pub process: Child,
    /// Its standard input.
    pub requests: Option<ChildStdin>,
    /// The lines of its standard output.
    pub answers: Option<Lines<BufReader<ChildStdout>>>,
    id: u64,
}

impl Host {
    /// Starts `callgate serve` with these flags in a folder. Fails if it does not start.
    pub fn start(bench: &Workbench, flags: &[&str]) -> Result<Self> {
        Self::start_program(&program(), bench, flags)
    }

    /// [`Host::start`] with a different program.
    pub fn start_program(program: &Path, bench: &Workbench, flags: &[&str]) -> Result<Self> {
        let mut command = bench.command_of(program, &[&["serve"], flags].concat());
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let answers = process.stdout.take();
        let mut host = Self {
            requests: process.stdin.take(),
            answers: answers.map(|answers| BufReader::new(answers).lines()),
            process,
            id: 0,
        };
        let client = json!({ "name": "client", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
        });
        host.request("initialize", &params)?;
        host.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(host)
    }

    /// The result of a request. Fails if the answer is an error, or none comes.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.id += 1;
        let id = self.id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        match self.answer(id)? {
            Value::Object(mut answer) if answer.contains_key("result") => {
                Ok(answer["result"].take())
            }
            other => Err(Error::other(other.to_string())),
        }
    }

    /// Calls a tool: its text, and true if the result is an error.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<(String, bool)> {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.request("tools/call", &params)?;
        let blocks = result["content"].as_array().into_iter().flatten();
        let text = blocks.filter_map(|block| block["text"].as_str()).collect();
        Ok((text, result["isError"] == true))
    }

    /// Sends a line.
    pub fn send(&mut self, line: impl Display) -> Result<()> {
        let requests = self.requests.as_mut().ok_or_else(ended)?;
        writeln!(requests, "{line}")
    }

    /// The next message.
    pub fn receive(&mut self) -> Result<Value> {
        let answers = self.answers.as_mut().ok_or_else(ended)?;
        let line = answers.next().ok_or_else(ended)??;
        serde_json::from_str(&line).map_err(|error| Error::other(format!("{error}: {line}")))
    }

    /// The next message with this id.
    pub fn answer(&mut self, id: u64) -> Result<Value> {
        loop {
            let message = self.receive()?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    /// Closes its standard input and waits for its end.
    pub fn end(&mut self) -> Result<ExitStatus> {
        drop(self.requests.take());
        self.process.wait()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The measured program: `CALLGATE_BENCH_PROGRAM`, else the `callgate` of this build.
pub fn program() -> PathBuf {
    std::env::var_os("CALLGATE_BENCH_PROGRAM").map_or_else(|| binary("callgate"), PathBuf::from)
}

fn ended() -> Error {
    Error::other("callgate has ended")
}

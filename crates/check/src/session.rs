//! A session with a TypeScript process: answers its requests about files, and requests diagnostics.

use std::path::Path;
use std::time::Duration;

use callgate_process::Child;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use crate::confine::{self, Confinement};
use crate::error::{Failure, Unavailable};
use crate::files::{FOLDER, Files, PROJECT, QUESTIONS, SCRIPT};
use crate::message::Reported;
use crate::protocol::{self, Incoming};

/// Time for a process to start and to check an empty script. It usually takes some hundredths of a
/// second.
const START_TIME: Duration = Duration::from_secs(10);

/// Maximum messages before a response. Opening a project takes some dozens.
const MAX_MESSAGES: u32 = 10_000;

#[derive(Debug)]
pub(crate) struct Session {
    /// Killed on drop.
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    files: Files,
    requests: u64,
    /// The ids of the open snapshot and project.
    opened: Option<(u64, String)>,
}

impl Session {
    /// Starts a process, which reads the library and checks an empty script.
    pub(crate) async fn start(
        program: &Path,
        library: &[String],
        confinement: Confinement,
    ) -> Result<Self, Unavailable> {
        let args = ["--api", "--async", "--cwd", FOLDER, QUESTIONS];
        let mut process = confine::start(program, &args, confinement).await?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Unavailable::Start("its streams are missing".to_owned()));
        };
        let mut session = Self {
            process,
            stdin,
            stdout: BufReader::with_capacity(1 << 16, stdout),
            files: Files::new(library),
            requests: 0,
            opened: None,
        };
        match session.check("export {};\n", "", START_TIME).await {
            Ok(_) => Ok(session),
            Err(failure) => Err(Unavailable::Broken(failure)),
        }
    }

    /// The errors of a script. After a failure the session is unusable.
    pub(crate) async fn check(
        &mut self,
        script: &str,
        declarations: &str,
        time: Duration,
    ) -> Result<Vec<Reported>, Failure> {
        let answer = tokio::time::timeout(time, self.find(script, declarations)).await;
        answer.unwrap_or(Err(Failure::TimedOut(time)))
    }

    async fn find(&mut self, script: &str, declarations: &str) -> Result<Vec<Reported>, Failure> {
        let changed = self.files.set(script, declarations);
        if self.opened.is_none() || !changed.is_empty() {
            self.update(&changed).await?;
        }
        let Some((snapshot, project)) = &self.opened else {
            return Err(protocol::protocol("no project"));
        };
        let place = json!({ "snapshot": snapshot, "project": project, "file": SCRIPT });
        let mut found: Vec<Reported> = Vec::new();
        for method in ["getSyntacticDiagnostics", "getSemanticDiagnostics"] {
            let answer: Option<Vec<Reported>> = self.request(method, &place).await?;
            found.extend(answer.unwrap_or_default());
        }
        Ok(found)
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Ends the process and waits until it is gone.
    pub(crate) async fn end(mut self) {
        let _ = self.process.kill().await;
    }

    async fn update(&mut self, changed: &[&str]) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Snapshot {
            snapshot: u64,
            projects: Vec<Project>,
        }
        #[derive(Deserialize)]
        struct Project {
            id: String,
        }
        let params = match self.opened {
            None => json!({ "openProjects": [PROJECT] }),
            Some(_) => json!({ "fileChanges": { "changed": changed } }),
        };
        let made: Snapshot = self.request("updateSnapshot", &params).await?;
        let [project] = made.projects.as_slice() else {
            return Err(protocol::protocol("not one project"));
        };
        let before = self.opened.replace((made.snapshot, project.id.clone()));
        if let Some((snapshot, _)) = before {
            // The snapshot of the last script is no longer needed.
            let release = json!({ "snapshot": snapshot });
            let _: Value = self.request("release", &release).await?;
        }
        Ok(())
    }

    async fn request<T: for<'a> Deserialize<'a>>(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<T, Failure> {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string()).await?;
        for _ in 0..MAX_MESSAGES {
            let text = protocol::read(&mut self.stdout).await?;
            let message: Incoming<'_> = serde_json::from_slice(&text)
                .map_err(|error| protocol::protocol(&error.to_string()))?;
            if let Some(method) = &message.method {
                if let Some(answer) = self.answer(method, &message) {
                    self.send(&answer).await?;
                }
                continue;
            }
            if message.id.map(RawValue::get) != Some(id.to_string().as_str()) {
                return Err(protocol::protocol("a response without a request"));
            }
            if let Some(error) = message.error {
                let message = error["message"].as_str();
                return Err(protocol::protocol(message.unwrap_or_default()));
            }
            let result = message.result.map_or("null", RawValue::get);
            return serde_json::from_str(result)
                .map_err(|error| protocol::protocol(&error.to_string()));
        }
        Err(protocol::protocol("too many requests before a response"))
    }

    /// The response to a request of the process; `None` for a notification.
    fn answer(&self, method: &str, message: &Incoming<'_>) -> Option<String> {
        let id = message.id?.get();
        let path: Option<String> = message
            .params
            .and_then(|params| serde_json::from_str(params.get()).ok());
        let found = path.and_then(|path| self.files.answer(method, &path));
        let answer = match found {
            Some(result) => format!("\"result\":{result}"),
            None => r#""error":{"code":-32601,"message":"not here"}"#.to_owned(),
        };
        Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{answer}}}"))
    }

    async fn send(&mut self, json: &str) -> Result<(), Failure> {
        let sent = self.stdin.write_all(&protocol::framed(json)).await;
        sent.map_err(|_| Failure::Died)
    }
}

//! The servers that benchmarks call, through the gate and by a bare rmcp client.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use callgate::{Gate, JournalOptions, Limits, Rules, RunReport, ServerSpec, Status};
use callgate_tests::{binary, node_server};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
pub type Bare = RunningService<RoleClient, ()>;

/// A stdio server with a tool `echo`.
pub struct Server {
    pub command: PathBuf,
    pub args: Vec<String>,
    /// The arguments of call number `i`.
    pub arguments: fn(u32) -> Value,
    /// The same, as a script writes them.
    pub written: &'static str,
}

impl Server {
    /// Our own, which answers within microseconds.
    pub fn odd(mode: &str) -> Self {
        Self {
            command: binary("callgate-odd-server"),
            args: vec![mode.to_owned()],
            arguments: |i| json!({ "i": i }),
            written: "{ i }",
        }
    }

    /// server-everything, if it is installed.
    pub fn everything() -> Option<Self> {
        let entry = node_server("server-everything")?;
        Some(Self {
            command: "node".into(),
            args: vec![entry.display().to_string(), "stdio".to_owned()],
            arguments: |i| json!({ "message": i.to_string() }),
            written: "{ message: String(i) }",
        })
    }

    /// A gate with this server, named `s`, which lets every call through, and
    /// writes each to a ledger if there is one.
    pub async fn gate(&self, ledger: Option<PathBuf>) -> Result<Gate> {
        let limits = Limits {
            script_time: Duration::from_secs(60),
            ..Limits::default()
        };
        let server = ServerSpec::stdio("s", &self.command, &self.args);
        let gate = Gate::builder()
            .server(server)
            .rules(Rules::new(["*"], [], [])?)
            .ledger(ledger.map(|file| (file, JournalOptions::default())))
            .limits(limits);
        Ok(gate.build().await?)
    }

    /// A bare rmcp client of this server.
    pub async fn bare(&self) -> Result<Bare> {
        let mut command = tokio::process::Command::new(&self.command);
        command.args(&self.args);
        let (transport, _) = TokioChildProcess::builder(command)
            .stderr(Stdio::null())
            .spawn()?;
        Ok(().serve(transport).await?)
    }
}

/// Calls a tool by a bare rmcp client.
pub async fn call(client: &Bare, tool: &'static str, arguments: Value) -> Result<()> {
    let Value::Object(arguments) = arguments else {
        return Err("not an object".into());
    };
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(request).await?;
    match result.is_error {
        Some(true) => Err(format!("{tool} failed: {result:?}").into()),
        _ => Ok(()),
    }
}

/// An error if the run did not complete.
pub fn completed(report: &RunReport) -> Result<()> {
    match report.status {
        Status::Completed => Ok(()),
        _ => Err(report.to_string().into()),
    }
}

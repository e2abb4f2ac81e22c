//! A host program with a gate of its own: one server, one rule, one script.
//!
//! `CALLGATE_DEMO_LOGGING` names the demo's logging server;
//! `cargo build -p callgate-fixture-servers` builds it.

use callgate::{Gate, Rules, ServerSpec};

const SCRIPT: &str = r#"
const { entries } = await logging_getLogs({ level: "error", since: Date.now() - 3_600_000 });
const messages = new Set(entries.map((entry: LogEntry) => entry.message));
console.log(messages.size, "different errors in the past hour");
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Workers are this program started again, so this comes first.
    callgate::sandbox::worker_main_if_requested();
    // This process holds the credentials: others of the same user cannot read it.
    callgate::sandbox::forbid_inspection()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(host())
}

#[expect(clippy::print_stdout, reason = "it is what this program is for")]
async fn host() -> Result<(), Box<dyn std::error::Error>> {
    let server = std::env::var("CALLGATE_DEMO_LOGGING").unwrap_or("callgate-demo-logging".into());
    let gate = Gate::builder()
        .server(ServerSpec::stdio("logging", server, [] as [&str; 0]))
        .rules(Rules::builder().allow("logging_*").build()?)
        // Scripts are checked by the TypeScript in `node_modules` of this folder.
        .typescript(std::env::current_dir()?)
        .build()
        .await?;
    let report = gate.run(SCRIPT).await;
    println!("{} after {} call", report.status, report.calls.len());
    print!("{report}");
    gate.shutdown().await;
    Ok(())
}

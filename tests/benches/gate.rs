//! What the gate costs, each figure against a baseline measured in the same
//! run: machines differ and are noisy, ratios much less so.
//!
//! `cargo xtask bench` builds what this needs and runs it.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

mod servers;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use callgate::Gate;
use callgate_tests::binary;
use serde_json::json;

use crate::servers::{Result, Server, call, completed};

const CALLS: u32 = 500;
const BIG: u64 = 10_000_000;

fn main() -> Result<()> {
    callgate::worker_main_if_requested();
    let runtime = tokio::runtime::Runtime::new()?;
    println!(
        "{:<58} {:>10} {:>10} {:>7}",
        "median of pairs", "ours", "baseline", "ratio"
    );
    cold_hello()?;
    runtime.block_on(async {
        empty_script().await?;
        let odd = Server::odd("flaky");
        calls("server in Rust", &odd).await?;
        match Server::everything() {
            Some(everything) => calls("server in Node", &everything).await?,
            None => println!("server in Node: not installed; run `cargo xtask setup --tests`"),
        }
        big_result().await
    })
}

/// A cold `callgate run` of a script that prints a line, without servers,
/// against Node doing the same.
fn cold_hello() -> Result<()> {
    let folder = tempfile::TempDir::new()?;
    let script = folder.path().join("hello.ts");
    std::fs::write(&script, "console.log('hello')")?;
    let once = |program: &mut Command| -> Result<Duration> {
        let before = Instant::now();
        let status = program
            .current_dir(&folder)
            .stdout(Stdio::null())
            .status()?;
        let took = before.elapsed();
        if status.success() {
            Ok(took)
        } else {
            Err(format!("{program:?}: {status}").into())
        }
    };
    let mut pairs = Pairs::default();
    for _ in 0..21 {
        let ours = once(Command::new(binary("callgate")).arg("run").arg(&script))?;
        let theirs = once(Command::new("node").args(["-e", "console.log('hello')"]))?;
        pairs.push(ours, theirs);
    }
    pairs.print("cold `callgate run` of hello, against `node -e`");
    Ok(())
}

/// An empty script with a warm gate, against starting and ending a process.
async fn empty_script() -> Result<()> {
    let gate = Gate::builder().build().await?;
    let mut pairs = Pairs::default();
    for _ in 0..51 {
        let before = Instant::now();
        completed(&gate.run("return").await)?;
        let ours = before.elapsed();
        // Spare workers start behind a run; without a pause, the next one
        // would measure how long that takes and not the run.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = Instant::now();
        tokio::process::Command::new("true").status().await?;
        pairs.push(ours, before.elapsed());
    }
    pairs.print("empty script end to end, warm, against the process `true`");
    Ok(())
}

/// Calls through the gate against the same calls by a bare rmcp client; the
/// whole run is measured, so the start of its worker is in our figure.
async fn calls(name: &str, server: &Server) -> Result<()> {
    let call = format!("s_echo({})", server.written);
    let in_turn = format!("for (let i = 0; i < {CALLS}; i++) await {call};");
    let at_once =
        format!("await Promise.all(Array.from({{ length: {CALLS} }}, (_, i) => {call}));");
    for (how, script, together) in [("in turn", in_turn, false), ("at once", at_once, true)] {
        let pairs = pairs_of_calls(server, &script, together).await?;
        pairs.print(&format!("{CALLS} calls {how}, {name}, against bare rmcp"));
    }
    Ok(())
}

async fn pairs_of_calls(server: &Server, script: &str, together: bool) -> Result<Pairs> {
    let gate = server.gate(None).await?;
    let bare = server.bare().await?;
    let mut pairs = Pairs::default();
    for _ in 0..15 {
        let before = Instant::now();
        completed(&gate.run(script).await)?;
        let ours = before.elapsed();
        let before = Instant::now();
        if together {
            let all = (0..CALLS).map(|i| call(&bare, "echo", (server.arguments)(i)));
            futures::future::try_join_all(all).await?;
        } else {
            for i in 0..CALLS {
                call(&bare, "echo", (server.arguments)(i)).await?;
            }
        }
        pairs.push(ours, before.elapsed());
    }
    gate.shutdown().await;
    bare.cancel().await?;
    Ok(pairs)
}

/// A 10 MB result to a JavaScript value: against `JSON.parse` of its text in
/// the same isolate, and against the same call by a bare rmcp client.
async fn big_result() -> Result<()> {
    let server = Server::odd("big");
    let gate = server.gate(None).await?;
    let bare = server.bare().await?;
    let script = format!(
        "const before = performance.now();
         const value = await s_rows({{ bytes: {BIG} }});
         const received = performance.now();
         const text = JSON.stringify(value);
         const written = performance.now();
         JSON.parse(text);
         return [received - before, performance.now() - written];"
    );
    let mut parse = Pairs::default();
    let mut client = Pairs::default();
    for _ in 0..11 {
        let report = gate.run(script.as_str()).await;
        completed(&report)?;
        let value = report
            .value
            .and_then(|value| value.json)
            .ok_or("no value")?;
        let [ours, parsed]: [f64; 2] = serde_json::from_str(value.get())?;
        let ours = Duration::from_secs_f64(ours / 1e3);
        parse.push(ours, Duration::from_secs_f64(parsed / 1e3));
        let before = Instant::now();
        call(&bare, "rows", json!({ "bytes": BIG })).await?;
        client.push(ours, before.elapsed());
    }
    parse.print("10 MB result to a JS value, against JSON.parse of its text");
    client.print("10 MB result to a JS value, against bare rmcp to a Rust value");
    gate.shutdown().await;
    bare.cancel().await?;
    Ok(())
}

/// Measurements taken in turn, ours and the baseline's.
#[derive(Default)]
struct Pairs(Vec<(Duration, Duration)>);

impl Pairs {
    fn push(&mut self, ours: Duration, baseline: Duration) {
        self.0.push((ours, baseline));
    }

    fn print(&self, name: &str) {
        let ours = median(self.0.iter().map(|pair| pair.0.as_secs_f64()));
        let baseline = median(self.0.iter().map(|pair| pair.1.as_secs_f64()));
        let ratio = median(
            self.0
                .iter()
                .map(|pair| pair.0.as_secs_f64() / pair.1.as_secs_f64()),
        );
        println!(
            "{name:<58} {:>7.2} ms {:>7.2} ms {ratio:>6.2}×",
            ours * 1e3,
            baseline * 1e3
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

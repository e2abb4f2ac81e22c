//! How long many servers take to start together, against the slowest of them
//! alone: 50 servers with 40 tools each, one of which says nothing for a second.
//!
//! `cargo xtask bench` builds what this needs and runs it. `CALLGATE_BENCH_ROUNDS`
//! sets how many rounds (default 7).

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::time::{Duration, Instant};

use callgate::{CheckMode, Gate, ServerSpec, worker_main_if_requested};
use callgate_tests::binary;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SERVERS: usize = 50;
const TOOLS: usize = 40;
const DELAY_MS: u32 = 1_000;

fn main() -> Result<()> {
    worker_main_if_requested();
    let rounds = match std::env::var("CALLGATE_BENCH_ROUNDS") {
        Ok(rounds) => rounds.parse()?,
        Err(_) => 7,
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut alone = Vec::new();
        let mut all = Vec::new();
        let mut quick = Vec::new();
        let mut shown = Vec::new();
        for _ in 0..rounds {
            alone.push(start(vec![slow()]).await?.took);
            let quick_ones = (1..SERVERS).map(|n| server(n, &[]));
            quick.push(start(quick_ones.clone().collect()).await?.took);
            let started = start(quick_ones.chain([slow()]).collect()).await?;
            assert_eq!(started.tools, SERVERS * TOOLS);
            all.push(started.took);
            shown.push(started.shown);
        }
        let slowest = median(&mut alone);
        let together = median(&mut all);
        println!("the slowest server alone        {slowest:>9.1} ms");
        println!("the {} others                   {:>9.1} ms", SERVERS - 1, median(&mut quick));
        println!(
            "all {SERVERS}, {} tools              {together:>9.1} ms  {:.3}× the slowest, {:.1} ms more",
            SERVERS * TOOLS,
            together / slowest,
            together - slowest
        );
        println!("their declarations, first asked {:>9.1} ms", median(&mut shown));
        Ok(())
    })
}

fn slow() -> ServerSpec {
    server(0, &["--start-delay-ms", &DELAY_MS.to_string()])
}

fn server(number: usize, options: &[&str]) -> ServerSpec {
    let args = ["many"].iter().chain(options).copied();
    ServerSpec::stdio(format!("s{number}"), binary("callgate-odd-server"), args)
}

/// What became of one start.
struct Started {
    /// Until the gate had the tools.
    took: Duration,
    /// From then until it had their declarations.
    shown: Duration,
    tools: usize,
}

async fn start(servers: Vec<ServerSpec>) -> Result<Started> {
    // No worker and no type checker: they start meanwhile and would be measured,
    // too.
    let mut builder = Gate::builder().spare_workers(0).check(CheckMode::Off);
    for server in servers {
        builder = builder.server(server);
    }
    let before = Instant::now();
    let gate = builder.build().await?;
    let took = before.elapsed();
    // Made meanwhile by another thread, which the next start would have to share
    // the processor with.
    let before = Instant::now();
    let _declared = gate.declarations(callgate::Detail::Name, |_| false);
    let shown = before.elapsed();
    if let Some(server) = gate.unavailable().first() {
        return Err(server.reason.clone().into());
    }
    let tools = gate.tools().len();
    gate.shutdown().await;
    Ok(Started { took, shown, tools })
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    median.as_secs_f64() * 1e3
}

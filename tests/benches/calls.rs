//! What one call costs on each way to a server: by a bare rmcp client, through
//! the gate without a script, from a script, and both of these with a ledger on disk. Each
//! round takes the ways in turn, so that what disturbs the machine disturbs them all. Beside
//! the time, what this process needs of the processors: that does not depend on where the
//! system puts whom, as the time of a call does.
//!
//! `cargo xtask bench` builds what this needs and runs it. `CALLGATE_BENCH_ROUNDS`
//! sets how many rounds (default 21).

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

mod servers;

use std::time::{Duration, Instant};

use callgate::{Gate, worker_main_if_requested};
use callgate_tests::paired::Ratios;
use futures::future::try_join_all;
use serde_json::value::to_raw_value;

use crate::servers::{Bare, Result, Server, call, completed};

/// Calls in turn in a round.
const IN_TURN: u32 = 300;
/// Calls at once in a batch, and batches in a round.
const AT_ONCE: u32 = 100;
const BATCHES: u32 = 5;

const WAYS: [Way; 5] = [
    Way::Bare,
    Way::Gate,
    Way::GateLedger,
    Way::Script,
    Way::ScriptLedger,
];

fn main() -> Result<()> {
    worker_main_if_requested();
    let rounds = match std::env::var("CALLGATE_BENCH_ROUNDS") {
        Ok(rounds) => rounds.parse()?,
        Err(_) => 21,
    };
    println!(
        "{:<58} {:>8} {:>8} {:>7}   {:<20} {:>8}   × CPU (95 %)",
        "one call, µs; × what it is on top of", "min", "median", "× min", "× median (95 %)", "CPU"
    );
    tokio::runtime::Runtime::new()?.block_on(async {
        compare("server in Rust", Server::odd("flaky"), rounds).await?;
        match Server::everything() {
            Some(everything) => compare("server in Node", everything, rounds).await,
            None => {
                println!("server in Node: not installed; run `cargo xtask setup --tests`");
                Ok(())
            }
        }
    })
}

/// A way from here to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Gate,
    GateLedger,
    Script,
    ScriptLedger,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare rmcp client",
            Self::Gate => "gate, no script",
            Self::GateLedger => "gate, ledger on disk",
            Self::Script => "from a script",
            Self::ScriptLedger => "from a script, ledger on disk",
        }
    }

    /// What it is compared with: the same without what it adds.
    fn baseline(self) -> Self {
        match self {
            Self::Bare | Self::Gate | Self::Script => Self::Bare,
            Self::GateLedger => Self::Gate,
            Self::ScriptLedger => Self::Script,
        }
    }

    fn is_script(self) -> bool {
        matches!(self, Self::Script | Self::ScriptLedger)
    }
}

async fn compare(name: &str, server: Server, rounds: usize) -> Result<()> {
    // On a task of the runtime: the main thread is not one of its own, and a
    // call from there would wake another thread each time.
    let name = name.to_owned();
    let folder = tempfile::TempDir::new()?;
    let measured = tokio::spawn(async move {
        let ends = Ends {
            bare: server.bare().await?,
            gate: server.gate(None).await?,
            ledger: server.gate(Some(folder.path().join("ledger"))).await?,
            server,
        };
        let measured = ends.rounds(rounds).await;
        ends.gate.shutdown().await;
        ends.ledger.shutdown().await;
        let _ended = ends.bare.cancel().await;
        measured
    });
    let [in_turn, at_once] = measured.await??;
    in_turn.print(&format!("{name}, {IN_TURN} in turn"));
    at_once.print(&format!("{name}, {AT_ONCE} at once"));
    Ok(())
}

/// Both ends of every way.
struct Ends {
    server: Server,
    bare: Bare,
    gate: Gate,
    ledger: Gate,
}

impl Ends {
    async fn rounds(&self, rounds: usize) -> Result<[Figures; 2]> {
        let mut in_turn = Figures::default();
        let mut at_once = Figures::default();
        // The first round warms up and does not count.
        for round in 0..=rounds {
            for step in 0..WAYS.len() {
                // There and back: what a way finds in the caches is what the one before left.
                let step = match round % 2 {
                    0 => step,
                    _ => WAYS.len() - 1 - step,
                };
                let way = WAYS[(round / 2 + step) % WAYS.len()];
                let began = processor_time();
                let turn = self.in_turn(way).await?;
                let between = processor_time();
                let once = self.at_once(way).await?;
                let ended = processor_time();
                if round > 0 {
                    in_turn.push(way, [turn, between - began].map(|all| all / IN_TURN));
                    let calls = AT_ONCE * BATCHES;
                    at_once.push(way, [once, ended - between].map(|all| all / calls));
                }
            }
        }
        Ok([in_turn, at_once])
    }

    async fn in_turn(&self, way: Way) -> Result<Duration> {
        if way.is_script() {
            let call = self.server.written;
            return self
                .script(
                    way,
                    &format!("for (let i = 0; i < {IN_TURN}; i++) await s_echo({call});"),
                )
                .await;
        }
        let before = Instant::now();
        for i in 0..IN_TURN {
            self.one(way, i).await?;
        }
        Ok(before.elapsed())
    }

    async fn at_once(&self, way: Way) -> Result<Duration> {
        if way.is_script() {
            let call = self.server.written;
            return self
                .script(way, &format!(
                    "for (let batch = 0; batch < {BATCHES}; batch++)
                       await Promise.all(Array.from({{ length: {AT_ONCE} }}, (_, i) => s_echo({call})));"
                ))
                .await;
        }
        let before = Instant::now();
        for _ in 0..BATCHES {
            try_join_all((0..AT_ONCE).map(|i| self.one(way, i))).await?;
        }
        Ok(before.elapsed())
    }

    async fn one(&self, way: Way, i: u32) -> Result<()> {
        let arguments = (self.server.arguments)(i);
        if way == Way::Bare {
            return call(&self.bare, "echo", arguments).await;
        }
        let gate = self.gate(way);
        gate.call("s_echo", to_raw_value(&arguments)?).await?;
        Ok(())
    }

    fn gate(&self, way: Way) -> &Gate {
        match way {
            Way::GateLedger | Way::ScriptLedger => &self.ledger,
            Way::Bare | Way::Gate | Way::Script => &self.gate,
        }
    }

    /// The time a script takes by its own clock: how long its worker needs to
    /// start is not a matter of calls.
    async fn script(&self, way: Way, calls: &str) -> Result<Duration> {
        let script = format!(
            "const before = performance.now();\n{calls}\nreturn performance.now() - before;"
        );
        let report = self.gate(way).run(script).await;
        completed(&report)?;
        let value = report.value.and_then(|value| value.json);
        let millis: f64 = serde_json::from_str(value.ok_or("no value")?.get())?;
        Ok(Duration::from_secs_f64(millis / 1e3))
    }
}

/// What one call took, by round, for each way: its time, and the processors' for this
/// process.
#[derive(Default)]
struct Figures([[Vec<f64>; 2]; WAYS.len()]);

impl Figures {
    fn push(&mut self, way: Way, took: [Duration; 2]) {
        for (all, took) in self.0[way as usize].iter_mut().zip(took) {
            all.push(took.as_secs_f64() * 1e6);
        }
    }

    fn print(&self, name: &str) {
        for way in WAYS {
            let [times, processors] = &self.0[way as usize];
            let [baseline, processors_before] = &self.0[way.baseline() as usize];
            println!(
                "{:<58} {:>8.1} {:>8.1} {:>7.2}   {:<20} {:>8.1}   {}",
                format!("{name}, {}", way.name()),
                least(times),
                median(times.clone()),
                least(times) / least(baseline),
                ratios(times, baseline).to_string(),
                median(processors.clone()),
                ratios(processors, processors_before),
            );
        }
    }
}

fn ratios(ours: &[f64], baseline: &[f64]) -> Ratios {
    Ratios::of(ours.iter().copied().zip(baseline.iter().copied()))
}

/// The time of processors that this process has had, without that of its children.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists, and the time is written to where it says.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

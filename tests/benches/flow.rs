//! What the look at data between servers costs, against the call it is part of.
//!
//! `cargo xtask bench` builds what this needs and runs it.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callgate::{Gate, Rules, ServerSpec, Status};
use callgate_policy::flow::{Flows, Side};
use callgate_tests::binary;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const BYTES: usize = 1 << 20;
const TIMES: usize = 201;

fn main() -> Result<()> {
    callgate::worker_main_if_requested();
    let call = tokio::runtime::Runtime::new()?.block_on(call())?;
    println!(
        "{:<58} {:>10}",
        "a call with an argument of 1 MiB, without a look",
        ms(call)
    );
    println!(
        "{:<58} {:>10} {:>7}",
        "least for 1 MiB, where 1 MiB of text was learnt", "time", "of call"
    );
    let learnt = prose(1);
    let kinds = [
        ("other text", json!(prose(2))),
        (
            "other text in lines",
            json!(prose(3).replace("q ", "\n    ")),
        ),
        (
            "other text in base64",
            json!(STANDARD.encode(&prose(4)[..BYTES / 4 * 3])),
        ),
        ("other data in base64", json!(STANDARD.encode(data(5)))),
        ("other records", records(6)),
        ("a copy of it", json!(learnt)),
    ];
    let result = json!(learnt).to_string();
    let took = least(|| {
        let mut flows = Flows::default();
        let before = Instant::now();
        flows.learn(side("a"), 1, &result);
        flows.catch_up();
        before.elapsed()
    });
    print("learning it", took, call);
    let mut flows = Flows::default();
    flows.learn(side("a"), 1, &result);
    for (name, argument) in kinds {
        let arguments = json!({ "argument": argument }).to_string();
        let took = least(|| {
            let before = Instant::now();
            flows.inspect(&side("b"), &arguments, "");
            before.elapsed()
        });
        print(name, took, call);
    }
    Ok(())
}

/// One call with such an argument, in a gate with one server, where nothing is
/// looked at.
async fn call() -> Result<Duration> {
    let server = ServerSpec::stdio("s", binary("callgate-odd-server"), ["flaky"]);
    let gate = Gate::builder().server(server);
    let gate = gate.rules(Rules::new(["*"], [], [])?).build().await?;
    let script = format!(
        "const argument = 'some text '.repeat({BYTES} / 10);
         const took = [];
         for (let i = 0; i < {TIMES}; i++) {{
           const before = performance.now();
           await s_fails({{ argument }}).catch(() => null);
           took.push(performance.now() - before);
         }}
         return Math.min(...took);"
    );
    let report = gate.run(script.as_str()).await;
    if report.status != Status::Completed {
        return Err(report.to_string().into());
    }
    let value = report.value.and_then(|value| value.json);
    let millis: f64 = serde_json::from_str(value.ok_or("no value")?.get())?;
    gate.shutdown().await;
    Ok(Duration::from_secs_f64(millis / 1e3))
}

fn side(server: &str) -> Side {
    Side::new(&format!("{server}_tool"), server, "tool")
}

/// Medians say how busy the machine is.
fn least(mut once: impl FnMut() -> Duration) -> Duration {
    let times = (0..TIMES).map(|_| once());
    times.min().unwrap_or_default()
}

fn print(name: &str, took: Duration, call: Duration) {
    let part = took.as_secs_f64() / call.as_secs_f64() * 100.0;
    println!("{name:<58} {:>10} {part:>5.1} %", ms(took));
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Numbers that look drawn by lot.
fn lots(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    }
}

/// Words of two to nine letters: texts have most of them in common, and few
/// rows of them.
fn prose(seed: u64) -> String {
    let mut lot = lots(seed);
    let mut text = String::with_capacity(BYTES + 16);
    while text.len() < BYTES {
        // Some words are much more frequent than others.
        let word = (lot() % 200) * (lot() % 200);
        let mut letters = lots(word + 1_000);
        for _ in 0..2 + letters() % 8 {
            text.push(char::from(b'a' + (letters() % 26) as u8));
        }
        text.push(' ');
    }
    text.truncate(BYTES);
    text
}

fn data(seed: u64) -> Vec<u8> {
    let mut lot = lots(seed);
    (0..BYTES / 4 * 3).map(|_| lot() as u8).collect()
}

fn records(seed: u64) -> Value {
    let mut lot = lots(seed);
    let mut record = || {
        let mut id = String::new();
        // Writing to a string does not fail.
        let _written = write!(id, "{:08x}-{:04x}-4000-8000", lot() as u32, lot() as u16);
        json!({ "id": id, "count": lot() % 100_000_000, "state": "open", "done": false })
    };
    (0..BYTES / 75).map(|_| record()).collect()
}

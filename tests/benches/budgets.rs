//! Time and memory of what a user waits for, each beside its budget.
//!
//! `cargo xtask bench` builds what this needs and runs it. `CALLGATE_BENCH_PROGRAM` names another
//! `callgate`, for figures to compare with.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use callgate_tests::host;
use callgate_tests::{Workbench, binary, odd};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CALLS: u32 = 500;
const ROUNDS: usize = 11;
/// A pause in which a worker is ready again.
const PAUSE: Duration = Duration::from_millis(100);
/// A mebibyte of different words, as text of a script.
const WORDS: &str = "Array.from({ length: 180_000 }, (_, i) => 'w' + (i * 2654435761 % 4294967296)\
                     .toString(36)).join(' ').slice(0, 1 << 20)";

fn main() -> Result<()> {
    println!("{:<66} {:>11} {:>11}", "medians", "budget", "measured");
    calls()?;
    print("a call by the server's pipes alone", "", by_pipes()?);
    large_arguments()?;
    large_results()?;
    runs()
}

/// One call of a script, under the settings that add work to it.
fn calls() -> Result<()> {
    let in_turn = format!("for (let i = 0; i < {CALLS}; i++) await s_echo({{ i }});");
    let at_once =
        format!("await Promise.all(Array.from({{ length: {CALLS} }}, (_, i) => s_echo({{ i }})));");
    let with_data = format!(
        "const argument = {WORDS}.slice(0, 65_536);
         await t_rows({{ bytes: 65_536 }});
         await s_echo({{ argument }});
         start = performance.now();
         for (let i = 0; i < {CALLS}; i++) await s_echo({{ argument }});"
    );
    let rule = |n: usize| json!({ "tool": "s_*", "arguments": [{ "at": "/path", "regex": format!("/data/[a-z]+/{n}/.*") }] });
    let rules: Vec<Value> = (0..199).map(rule).chain([json!("*")]).collect();
    let servers = json!({ "s": odd("flaky") });
    let all = json!({ "allow": ["*"] });
    let file = json!({ "path": "calls.jsonl" });
    let plain = json!({ "mcpServers": servers, "permissions": all });
    let ledger = json!({ "mcpServers": servers, "permissions": all, "ledger": file });
    let ruled = json!({ "mcpServers": servers, "permissions": { "allow": rules } });
    let both = json!({ "s": odd("flaky"), "t": odd("big") });
    let flows = json!({ "mcpServers": both, "permissions": all, "ledger": file });
    let cases = [
        (
            "a call of a script, one after the other",
            "≤ 1 ms",
            &plain,
            &in_turn,
        ),
        ("the same, 500 at once", "≤ 1 ms", &plain, &at_once),
        ("a call, with a ledger on disk", "≤ 1 ms", &ledger, &in_turn),
        (
            "a call, with 200 rules over its arguments",
            "+ ≤ 0.05 ms",
            &ruled,
            &in_turn,
        ),
        (
            "a call with 64 KiB, a ledger, another server's data",
            "≤ 1 ms",
            &flows,
            &with_data,
        ),
    ];
    for (what, budget, config, script) in cases {
        let mut host = Host::start(config)?;
        let script = format!(
            "let start = performance.now(); {script} return (performance.now() - start) / {CALLS};"
        );
        print(what, budget, host.median(&script)?);
    }
    Ok(())
}

/// A mebibyte of arguments, with and without another server's data to look for.
fn large_arguments() -> Result<()> {
    let mut host = Host::start(&json!({
        "permissions": { "allow": ["*"] }, "mcpServers": { "s": odd("flaky"), "t": odd("big") },
    }))?;
    let script = |before: &str| {
        format!(
            "const argument = {WORDS}; await s_echo({{}}); {before}
             const start = performance.now(); await s_echo({{ argument }});
             return performance.now() - start;"
        )
    };
    let alone = host.median(&script(""))?;
    let learned = host.median(&script("await t_rows({ bytes: 1 << 20 });"))?;
    print("a call with 1 MiB of arguments", "", alone);
    print(
        "search of 1 MiB of arguments for 1 MiB of data",
        "+ ≤ 50 ms",
        learned - alone,
    );
    Ok(())
}

/// Large results as JavaScript values, and the memory of the host.
fn large_results() -> Result<()> {
    let config = json!({
        "mcpServers": { "t": odd("big") }, "permissions": { "allow": ["*"] },
        "limits": { "memory": "2GiB", "timeout": "60s" },
    });
    let script = |tool: &str, bytes: u32| {
        format!(
            "const start = performance.now();
             const result = await {tool}({{ bytes: {bytes} }}) as {{ rows: unknown[] }};
             return result.rows.length > 9 ? performance.now() - start : 'no rows';"
        )
    };
    let mut host = Host::start(&config)?;
    for (what, tool) in [("with", "t_rows"), ("without", "t_rows_unchecked")] {
        let time = host.median(&script(tool, 10_000_000))?;
        print(
            &format!("10 MB result to a value, {what} outputSchema"),
            "≤ 300 ms",
            time,
        );
    }
    drop(host);
    let mut host = Host::start(&config)?;
    host.run(&script("t_rows_unchecked", 60_000_000))?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.client.process.id()))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: f64 = peak
        .and_then(|peak| peak.split_whitespace().next())
        .ok_or("VmHWM")?
        .parse()?;
    println!(
        "{:<66} {:>11} {:>7.0} MiB",
        "peak memory of the host, 60 MB result",
        "",
        peak / 1024.0
    );
    Ok(())
}

/// Whole runs: warm, checked against many tools, and cold.
fn runs() -> Result<()> {
    let mut host = Host::start(&json!({ "mcpServers": {} }))?;
    let time = host.requests("return 0")?;
    print(
        "warm run of an empty script, from request to answer",
        "≤ 5 ms",
        time,
    );
    let servers = (0..13).map(|n| (format!("many{n}"), odd("many")));
    let servers: serde_json::Map<String, Value> = servers.collect();
    let script = "const more = async () => many0_search_records_1({ query: '', project: '' });
                  return 0";
    let mut checked = Host::start(&json!({ "mcpServers": servers }))?;
    let mut free = Host::start(&json!({ "mcpServers": servers, "check": { "mode": "off" } }))?;
    let check = checked.requests(script)? - free.requests(script)?;
    print("type check against 520 tools, warm", "≤ 15 ms", check);
    drop((host, checked, free));
    let bench = Workbench::with_config(json!({ "mcpServers": {} }));
    bench.write("hello.ts", "console.log('hello')");
    let cold = |command: &mut Command| -> Result<f64> {
        let start = Instant::now();
        let status = command
            .current_dir(bench.path())
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(status.to_string().into());
        }
        Ok(milliseconds(start))
    };
    let run = ["run", "hello.ts"];
    let ours = (0..ROUNDS).map(|_| cold(&mut bench.command(&run)));
    print(
        "cold `callgate run` of a script with one line",
        "",
        median(ours)?,
    );
    let node = (0..ROUNDS).map(|_| cold(Command::new("node").args(["-e", "console.log('hello')"])));
    print("the same line by `node -e`", "", median(node)?);
    Ok(())
}

/// Time of a call by the pipes of a server, without a client.
fn by_pipes() -> Result<f64> {
    let mut child = Command::new(binary("callgate-odd-server"))
        .arg("flaky")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut requests = child.stdin.take().ok_or("it is piped")?;
    let mut answers = BufReader::new(child.stdout.take().ok_or("it is piped")?).lines();
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        for id in 0..CALLS {
            let params = json!({ "name": "echo", "arguments": { "i": id } });
            let request =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            writeln!(requests, "{request}")?;
            answers.next().ok_or("the server has ended")??;
        }
        Ok(milliseconds(start) / f64::from(CALLS))
    });
    let time = median(times)?;
    drop(requests);
    child.wait()?;
    Ok(time)
}

/// `callgate serve`, to measure runs of scripts.
struct Host {
    client: host::Host,
    _bench: Workbench,
}

impl Host {
    fn start(config: &Value) -> Result<Self> {
        let bench = Workbench::with_config(config.clone());
        let mut host = Self {
            client: host::Host::start(&bench, &[])?,
            _bench: bench,
        };
        // The first run of a process takes longer.
        host.run("return 0")?;
        Ok(host)
    }

    /// Median of the milliseconds that a script returns.
    fn median(&mut self, script: &str) -> Result<f64> {
        median((0..ROUNDS).map(|_| self.run(script)))
    }

    /// Median of the milliseconds from request to answer.
    fn requests(&mut self, script: &str) -> Result<f64> {
        let times = (0..5 * ROUNDS).map(|_| {
            std::thread::sleep(PAUSE);
            let start = Instant::now();
            self.run(script)?;
            Ok(milliseconds(start))
        });
        median(times)
    }

    /// Runs a script that returns a number.
    fn run(&mut self, script: &str) -> Result<f64> {
        let (text, _) = self.client.call("run_script", &json!({ "code": script }))?;
        let number = text.lines().next().unwrap_or_default().parse();
        number.map_err(|_| format!("no number: {text}").into())
    }
}

fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn median(times: impl Iterator<Item = Result<f64>>) -> Result<f64> {
    let mut times = times.collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    times
        .get(times.len() / 2)
        .copied()
        .ok_or_else(|| "no times".into())
}

fn print(what: &str, budget: &str, milliseconds: f64) {
    println!("{what:<66} {budget:>11} {milliseconds:>8.3} ms");
}

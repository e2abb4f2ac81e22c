//! Many clients at `callgate serve --http` for minutes, while servers are killed and switched.
//!
//! `soak [--minutes 10] [--runs N] [--clients 50]`: ends after that time, or with that many runs,
//! without which it fails. Half of the clients speak 2025-11-25, half 2026-07-28. Each sends a
//! request a second and checks the answer. Exits with 1 if an answer is wrong or lost, an issue is
//! not filed exactly once, or the host has grown.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callgate_tests::served::{self, Served};
use callgate_tests::{Workbench, children, demo_ticketing};
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Servers that are killed and switched.
const PASSING: [&str; 3] = ["passing0", "passing1", "passing2"];
/// The environment variable that names a server in its process.
const MARK: &str = "SOAK_SERVER";
const OLDER: ProtocolVersion = ProtocolVersion::V_2025_11_25;
const NEWEST: ProtocolVersion = ProtocolVersion::V_2026_07_28;
const SECOND: Duration = Duration::from_secs(1);
/// The time after which an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let option = |name: &str| {
        let mut arguments = std::env::args().skip_while(|argument| argument != name);
        let value = arguments.nth(1).map(|value| value.parse::<f64>());
        value.transpose()
    };
    let time = SECOND.mul_f64(60.0 * option("--minutes")?.unwrap_or(10.0));
    let runs = option("--runs")?.map(|runs| runs as usize);
    let clients = option("--clients")?.unwrap_or(50.0) as u32;
    let bench = Workbench::with_config(config());
    let mut host = Served::start(&bench, &[]);
    let tally = Arc::new(Tally::default());
    let (stop, stopped) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..clients {
        let (url, tally, stopped) = (host.url.clone(), Arc::clone(&tally), stopped.clone());
        let version = [OLDER, NEWEST][(number % 2) as usize].clone();
        tasks.spawn(async move {
            tokio::time::sleep(SECOND * number / clients).await;
            match Client::connect(&url, version, "code").await {
                Ok(client) => client.work(number, &tally, &stopped).await,
                Err(error) => tally.wrong("connect", error),
            }
        });
    }
    let switching = Client::connect(&host.url, OLDER, "discovery").await?;
    let began = Instant::now();
    let mut samples = vec![sample(host.pid())];
    let mut every = tokio::time::interval(SECOND);
    for step in 0_usize.. {
        every.tick().await;
        if began.elapsed() > time || runs.is_some_and(|runs| tally.runs() >= runs) {
            break;
        }
        let server = PASSING[step / 3 % PASSING.len()];
        let (switch, given) = match step % 3 {
            0 => {
                kill(host.pid(), server);
                ("list_servers", json!({}))
            }
            1 => ("disable_server", json!({ "server": server })),
            _ => ("enable_server", json!({ "server": server })),
        };
        if let Err(error) = switching.call(switch, given).await {
            tally.wrong("switch", error);
        }
        samples.push(sample(host.pid()));
    }
    stop.send(true)?;
    tasks.join_all().await;
    let last = Client::connect(&host.url, NEWEST, "code").await?;
    if let Err(error) = last.compare_filed(&tally).await {
        tally.wrong("issues", error);
    }
    let mut wrong = tally.print(began.elapsed());
    wrong.extend(growth(&samples));
    if runs.is_some_and(|runs| tally.runs() < runs) {
        wrong.push(format!("only {} runs; give it more time", tally.runs()));
    }
    host.terminate();
    let (code, log) = host.wait();
    if code != Some(0) {
        wrong.push(format!("it ended with {code:?}: {log}"));
    }
    let panics = log.lines().filter(|line| line.contains("panicked"));
    wrong.extend(panics.map(str::to_owned));
    for line in &wrong {
        println!("WRONG: {line}");
    }
    if wrong.is_empty() {
        println!("all well");
        return Ok(ExitCode::SUCCESS);
    }
    println!("not well");
    Ok(ExitCode::FAILURE)
}

fn config() -> Value {
    let server = |name: &str| {
        let mut server = demo_ticketing();
        server["env"] = json!({ MARK: name });
        (name.to_owned(), server)
    };
    let names = std::iter::once("steady").chain(PASSING);
    let servers: serde_json::Map<String, Value> = names.map(server).collect();
    json!({ "mcpServers": servers, "permissions": { "allow": ["*"] } })
}

/// A revision that a client announces.
struct Announced(ProtocolVersion);

impl ClientHandler for Announced {
    fn get_info(&self) -> ClientConfig {
        let who = Implementation::new("soak", "1");
        let mut config = ClientConfig::new(ClientCapabilities::default(), who);
        config.protocol_version = self.0.clone();
        config
    }
}

struct Client(RunningService<RoleClient, Announced>);

impl Client {
    async fn connect(url: &str, version: ProtocolVersion, mode: &str) -> Result<Self> {
        let url = format!("{url}?tool_mode={mode}");
        Ok(Self(served::connect(&url, Announced(version), None).await?))
    }

    /// Sends a request per second until it is stopped.
    async fn work(&self, number: u32, tally: &Tally, stopped: &watch::Receiver<bool>) {
        let mut every = tokio::time::interval(SECOND);
        for step in number.. {
            every.tick().await;
            if *stopped.borrow() {
                return;
            }
            // An answer that can be no other's.
            let own = format!("own-{number}-{step}");
            let (kind, expected, code) = match step % 4 {
                1 => ("run with calls", own.clone(), filing(&own)),
                3 => ("run with passing servers", "true".to_owned(), passing()),
                _ => ("empty run", own.clone(), format!("return '{own}'")),
            };
            if step % 4 == 1 {
                tally.lock().sent += 5;
            }
            let start = Instant::now();
            match self.call("run_script", json!({ "code": code })).await {
                Ok(text) if text.lines().next() == Some(&expected) => {
                    tally.took(kind, start.elapsed());
                }
                Ok(text) => tally.wrong(kind, text.into()),
                Err(error) => tally.wrong(kind, error),
            }
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<String> {
        let Value::Object(arguments) = arguments else {
            return Err("arguments are an object".into());
        };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = tokio::time::timeout(PATIENCE, self.0.call_tool(request)).await;
        let result = answer.map_err(|_| "no answer in a minute")??;
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let text: String = texts.map(|text| text.text.as_str()).collect();
        if result.is_error == Some(true) {
            Err(text.into())
        } else {
            Ok(text)
        }
    }

    /// An error unless the steady server has each issue that was sent, once.
    async fn compare_filed(&self, tally: &Tally) -> Result<()> {
        let code = "const { issues } = await steady_listIssues({});
                    return `${issues.length} ${new Set(issues.map((one) => one.title)).size}`";
        let text = self.call("run_script", json!({ "code": code })).await?;
        let sent = tally.lock().sent;
        let there = text.trim_end();
        println!("issues sent, there, and different ones there: {sent} {there}");
        if there == format!("{sent} {sent}") {
            return Ok(());
        }
        Err("issues were lost, or filed twice".into())
    }
}

/// Five issues, each of which comes back as it was sent.
fn filing(own: &str) -> String {
    format!(
        "const titles = [0, 1, 2, 3, 4].map((n) => `{own}.${{n}}`);
         const filed = await Promise.all(titles.map((title) => steady_createIssue({{ title }})));
         return titles.every((title, n) => filed[n].title === title) ? '{own}' : 'mixed up'"
    )
}

/// Calls that may fail, but only as a call of a server that is away does.
fn passing() -> String {
    format!(
        "const settled = await Promise.allSettled({}.map((server) =>
             mcp.callTool<{{ issues: unknown[] }}>(`${{server}}_listIssues`, {{}})));
         const errors = ['McpProtocolError', 'McpDeniedError', 'McpToolError'];
         return settled.every((one) => one.status === 'rejected'
             ? errors.includes(one.reason.name) : Array.isArray(one.value.issues))",
        json!(PASSING)
    )
}

/// Counts of all clients.
#[derive(Default)]
struct Tally(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    took: BTreeMap<&'static str, Vec<Duration>>,
    wrong: BTreeMap<String, u64>,
    sent: u64,
}

impl Tally {
    fn took(&self, kind: &'static str, time: Duration) {
        self.lock().took.entry(kind).or_default().push(time);
    }

    fn wrong(&self, kind: &str, why: Box<dyn Error + Send + Sync>) {
        let why: String = why.to_string().chars().take(200).collect();
        let mut counts = self.lock();
        *counts.wrong.entry(format!("{kind}: {why}")).or_default() += 1;
    }

    fn runs(&self) -> usize {
        self.lock().took.values().map(Vec::len).sum()
    }

    /// Prints the times. Gives what was wrong.
    fn print(&self, time: Duration) -> Vec<String> {
        let rate = self.runs() as f64 / time.as_secs_f64();
        println!("{rate:.1} answers a second");
        let mut counts = self.lock();
        for (kind, times) in &mut counts.took {
            times.sort_unstable();
            let [half, max] = [50, 99].map(|percent| times[(times.len() - 1) * percent / 100]);
            let count = times.len();
            println!("{kind:<26} {count:>7}  p50 {half:>9.1?}  p99 {max:>9.1?}");
        }
        let wrong = counts.wrong.iter();
        wrong
            .map(|(what, count)| format!("{count} x {what}"))
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory and threads of a process.
fn sample(pid: u32) -> Sample {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse().ok()).unwrap_or_default()
    };
    [number("VmRSS:"), number("Threads:")]
}

/// Kills the process of a server of this host.
fn kill(host: u32, server: &str) {
    let mark = format!("{MARK}={server}");
    for pid in children(host) {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|one| one == mark.as_bytes()) {
            // SAFETY: a system call with numbers; the process is a child of our host.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
    }
}

/// Resident memory in KiB and threads of the host.
type Sample = [u64; 2];

/// Resources that grew between the second and the last tenth of the time.
fn growth(samples: &[Sample]) -> Vec<String> {
    let tenth = samples.len() / 10;
    let early = &samples[tenth..2 * tenth];
    let late = &samples[samples.len() - tenth..];
    let mut grown = Vec::new();
    for (kind, (name, slack)) in [("memory (KiB)", 8 * 1024), ("threads", 8)]
        .into_iter()
        .enumerate()
    {
        let [before, after] = [early, late].map(|part| {
            let mut values: Vec<u64> = part.iter().map(|sample| sample[kind]).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        });
        println!("{name}, median of the second and of the last tenth: {before}, {after}");
        // A short run is still warming up.
        if samples.len() >= 120 && after > before + before / 10 + slack {
            grown.push(format!("{name} grew from {before} to {after}"));
        }
    }
    grown
}

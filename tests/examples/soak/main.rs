//! Many clients at once at `callgate serve --http`, for a long time, while servers
//! come and go: is anything lost, does anything grow, how long does an empty
//! script take?
//!
//! `soak [--minutes 10] [--runs N] [--clients 50] [--period-ms 1000]`. It ends after that time,
//! or with that many runs, without which it fails. Half of the clients
//! speak a revision with sessions, half the newest, which has none. Each sends a
//! request a period, if the last one is answered, and checks the answer. It exits
//! with code 1 if anything is wrong.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

mod client;
mod host;
mod tally;
mod trouble;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_tests::{Workbench, fixture};
use serde_json::{Value, json};
use tokio::sync::watch;

use client::{Client, Era};
use host::{Host, Sample};
use tally::Tally;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Servers that are killed, taken out of use and into it.
const PASSING: [&str; 3] = ["passing0", "passing1", "passing2"];
/// The environment variable by which a server's process is known.
const MARK: &str = "SOAK_SERVER";
/// How often memory and the like are looked at.
const SAMPLE: Duration = Duration::from_secs(2);
/// The time in which workers and connections end when all clients have.
const REST: Duration = Duration::from_secs(10);
/// The longest that 99 of 100 empty scripts may take, in a release build.
const BOUND: Duration = Duration::from_millis(50);

struct Options {
    time: Duration,
    /// How many runs are enough, and a must.
    runs: Option<usize>,
    clients: usize,
    period: Duration,
}

#[tokio::main]
async fn main() -> Fallible<ExitCode> {
    let options = options()?;
    let bench = Workbench::with_config(config());
    let mut host = Host::start(&bench)?;
    println!(
        "{} clients, a request each {} ms, {} s, {} build",
        options.clients,
        options.period.as_millis(),
        options.time.as_secs(),
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        }
    );
    let tally = Arc::new(Tally::default());
    let (stop, stopped) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..options.clients {
        let era = Era::of(number);
        let (url, tally, stopped) = (host.url.clone(), Arc::clone(&tally), stopped.clone());
        // They do not come all in the same instant.
        let offset = options
            .period
            .mul_f64(number as f64 / options.clients as f64);
        let period = options.period;
        tasks.spawn(async move {
            tokio::time::sleep(offset).await;
            let client = Client::connect(&url, era, "code").await?;
            client.work(number, period, &tally, stopped).await;
            client.end().await
        });
    }
    let troubles = tokio::spawn(trouble::make(
        host.url.clone(),
        host.pid(),
        Arc::clone(&tally),
        stopped,
    ));
    let samples = watch_for(&host, &options, &tally).await;
    stop.send(true)?;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended? {
            tally.wrong("client", &error.to_string());
        }
    }
    if let Err(error) = troubles.await? {
        tally.wrong("trouble", &error.to_string());
    }
    let last = Client::connect(&host.url, Era::Newest, "code").await?;
    let lost = last.compare_filed(&tally).await;
    last.end().await?;
    tokio::time::sleep(REST).await;
    let rest = host.sample();
    let said = host.end()?;
    Ok(judge(&options, &tally, &samples, &rest, lost, &said))
}

fn config() -> Value {
    let server = |name: &str| {
        let mut server = fixture("callgate-demo-ticketing", &[]);
        server["env"] = json!({ MARK: name });
        (name.to_owned(), server)
    };
    let servers: serde_json::Map<String, Value> = std::iter::once("steady")
        .chain(PASSING)
        .map(server)
        .collect();
    json!({
        "mcpServers": servers,
        "permissions": { "allow": ["*"] },
        // So small that nothing is inlined: clients then have search_tools too.
        "serve": { "context": { "window": 1000 } },
    })
}

async fn watch_for(host: &Host, options: &Options, tally: &Tally) -> Vec<Sample> {
    let enough = || options.runs.is_some_and(|runs| tally.runs() >= runs);
    let began = Instant::now();
    let mut samples = Vec::new();
    let mut every = tokio::time::interval(SAMPLE);
    while began.elapsed() < options.time && !enough() {
        every.tick().await;
        samples.push(host.sample());
        if samples.len() % 30 == 0
            && let Some(last) = samples.last()
        {
            println!("after {:>4} s: {last}", began.elapsed().as_secs());
        }
    }
    samples
}

fn judge(
    options: &Options,
    tally: &Tally,
    samples: &[Sample],
    rest: &Sample,
    lost: Fallible<()>,
    said: &str,
) -> ExitCode {
    let mut wrong = tally.print(SAMPLE * samples.len() as u32);
    if options.runs.is_some_and(|runs| tally.runs() < runs) {
        wrong.push(format!("only {} runs; give it more time", tally.runs()));
    }
    if let Err(error) = lost {
        wrong.push(error.to_string());
    }
    if tally.p99("empty run") > BOUND && !cfg!(debug_assertions) {
        wrong.push(format!("p99 of the empty run is over {BOUND:?}"));
    }
    // A tenth of the time to warm up in.
    let warm = samples.get(samples.len() / 10);
    if let (Some(first), Some(warm), Some(last)) = (samples.first(), warm, samples.last()) {
        println!("host, at first:        {first}");
        println!("host, after a tenth:   {warm}");
        println!("host, at last:         {last}");
        if let Some(most) = samples.iter().max_by_key(|sample| sample.memory) {
            println!("host, at its largest:  {most}");
        }
        println!("host, at rest again:   {rest}");
        wrong.extend(host::left(first, rest));
        // What is kept of the last runs, and what the allocator has, is full by then.
        if samples.len() >= 60 {
            wrong.extend(host::growth(samples));
        }
    }
    let panics = said.lines().filter(|line| line.contains("panicked"));
    wrong.extend(panics.map(str::to_owned));
    for line in &wrong {
        println!("WRONG: {line}");
    }
    println!(
        "{}",
        if wrong.is_empty() {
            "all well"
        } else {
            "not well"
        }
    );
    match wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn options() -> Fallible<Options> {
    let mut options = Options {
        time: Duration::from_secs(600),
        runs: None,
        clients: 50,
        period: Duration::from_secs(1),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next();
        let value = value.ok_or_else(|| format!("{name} needs a number"))?;
        match name.as_str() {
            "--minutes" => {
                options.time = Duration::try_from_secs_f64(60.0 * value.parse::<f64>()?)?
            }
            "--runs" => options.runs = Some(value.parse()?),
            "--clients" => options.clients = value.parse()?,
            "--period-ms" => options.period = Duration::from_millis(value.parse::<u64>()?.max(1)),
            _ => return Err(format!(
                "{name} is not known; usage: soak [--minutes 10] [--runs N] [--clients 50] [--period-ms 1000]"
            )
            .into()),
        }
    }
    Ok(options)
}

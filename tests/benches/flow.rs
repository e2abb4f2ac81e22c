//! What the look at data between servers costs: by itself, over and over and with nothing of
//! what it needs in the processor's caches, and what it adds to a call
//! from a script, where nothing depends on what is found and where a rule may; the call
//! being one of a server that does nothing but read its arguments, and one of
//! server-filesystem, which writes them to a file.
//!
//! `cargo xtask bench` builds what this needs and runs it. `CALLGATE_BENCH_ROUNDS`
//! sets how many rounds (default 21).

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callgate::{Gate, Rules, ServerSpec, Status, Verdict};
use callgate_policy::flow::{FlowEnd, FlowRule, FlowRules, Flows, Side};
use callgate_tests::paired::Ratios;
use callgate_tests::{node_server, stand_in};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const BYTES: usize = 1 << 20;
const TIMES: usize = 201;
/// What is gone through between two looks, so that the second finds nothing of the first
/// in the processor's caches: as much as those have.
const OTHER_BYTES: usize = 32 << 20;
/// The seed of the text that is learnt.
const LEARNT: u64 = 1;

/// What arguments are made of: as it is called in the table, and as a server knows it.
const KINDS: [(&str, &str); 6] = [
    ("other text", "prose"),
    ("other text in lines", "lines"),
    ("other text in base64", "base64 of prose"),
    ("other data in base64", "base64 of data"),
    ("other records", "records"),
    ("a copy of it", "copy"),
];

fn main() -> Result<()> {
    callgate::worker_main_if_requested();
    if std::env::args().nth(1).as_deref() == Some("--serve") {
        return serve();
    }
    println!(
        "{:<44} {:>8}   {:>8}",
        "1 MiB of arguments, after 1 MiB was learnt", "look", "afresh"
    );
    let result = json!(prose(LEARNT)).to_string();
    let mut flows = Flows::default();
    flows.learn(side("a"), 1, &result);
    for (what, name) in KINDS {
        let arguments = json!({ "argument": argument(name) }).to_string();
        let mut look = |before: &mut dyn FnMut()| {
            let times = (0..TIMES).map(|_| {
                before();
                let begun = Instant::now();
                flows.inspect(&side("b"), &arguments, "");
                begun.elapsed()
            });
            least(times)
        };
        let over_and_over = look(&mut || {});
        let mut other = vec![0_u8; OTHER_BYTES];
        let afresh = look(&mut || other.iter_mut().step_by(64).for_each(|byte| *byte ^= 1));
        println!("{what:<44} {:>8}   {:>8}", ms(over_and_over), ms(afresh));
    }
    let learning = least((0..TIMES).map(|_| {
        let mut flows = Flows::default();
        let before = Instant::now();
        flows.learn(side("a"), 1, &result);
        flows.catch_up();
        before.elapsed()
    }));
    println!("{:<44} {:>8}", "learning it, once a run", ms(learning));

    let rounds = match std::env::var("CALLGATE_BENCH_ROUNDS") {
        Ok(rounds) => rounds.parse()?,
        Err(_) => 21,
    };
    let folder = TempDir::with_prefix("callgate-bench-")?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(compare("a server that reads them", &Sink::own()?, rounds))?;
    match Sink::files(&folder.path().canonicalize()?)? {
        Some(files) => runtime.block_on(compare("server-filesystem, write_file", &files, rounds)),
        None => {
            println!("server-filesystem: not installed; run `cargo xtask setup --tests`");
            Ok(())
        }
    }
}

/// Prints what looks add to a call of this server.
async fn compare(name: &str, sink: &Sink, rounds: usize) -> Result<()> {
    println!(
        "{name:<44} {:>8}   {:<18}   {:<18}",
        "call", "× with look (95 %)", "× and rule (95 %)"
    );
    for ((what, _), rounds) in KINDS.iter().zip(calls(sink, rounds).await?) {
        let [plain, ruled] = [0, 2];
        let call = least(rounds.iter().map(|round| round[plain]));
        let more = |without: usize| {
            let rounds = rounds.iter();
            let seconds = |time: Duration| time.as_secs_f64();
            Ratios::of(rounds.map(|round| (seconds(round[without + 1]), seconds(round[without]))))
                .to_string()
        };
        println!(
            "{what:<44} {:>8}   {:<18}   {:<18}",
            ms(call),
            more(plain),
            more(ruled),
        );
    }
    Ok(())
}

/// The server that takes the arguments, `b`.
struct Sink {
    command: String,
    args: Vec<String>,
    /// The expression by which it gives a text of a kind, which stands for `KIND`, back to
    /// front.
    give: String,
    /// The expression that calls it with `text`.
    take: String,
    /// How many calls a run makes.
    calls: usize,
}

impl Sink {
    /// One that does nothing but read them.
    fn own() -> Result<Self> {
        Ok(Self {
            command: own_program()?,
            args: vec!["--serve".to_owned()],
            give: "String(await b_turned({ kind: 'KIND' }))".to_owned(),
            take: "b_take({ argument: text.startsWith('[') ? records : text })".to_owned(),
            calls: 21,
        })
    }

    /// One in Node, by the SDK of most servers, that writes them to a file.
    fn files(folder: &Path) -> Result<Option<Self>> {
        let Some(program) = node_server("server-filesystem") else {
            return Ok(None);
        };
        for (_, kind) in KINDS {
            std::fs::write(folder.join(kind), turned(&text(kind)))?;
        }
        let folder = folder.display();
        Ok(Some(Self {
            command: "node".to_owned(),
            args: vec![program.display().to_string(), folder.to_string()],
            give: format!("(await b_read_text_file({{ path: '{folder}/KIND' }})).content"),
            take: format!("b_write_file({{ path: '{folder}/written', content: text }})"),
            calls: 11,
        }))
    }
}

/// How a run's calls are made.
#[derive(Clone, Copy)]
struct Way {
    /// By a gate that has a rule over flows, which might stop them.
    ruled: bool,
    /// After the other server gave its text: before that, nothing is looked at.
    looks: bool,
}

/// Each gate's two ways, which are compared: the processes are the same.
const WAYS: [Way; 4] = [
    Way::of(false, false),
    Way::of(false, true),
    Way::of(true, false),
    Way::of(true, true),
];

impl Way {
    const fn of(ruled: bool, looks: bool) -> Self {
        Self { ruled, looks }
    }

    /// What a script does before it is measured.
    fn before(self, sink: &Sink) -> String {
        match self.looks {
            false => format!("{};", sink.give.replace("KIND", "copy")),
            true => "await a_text({ kind: 'copy' });".to_owned(),
        }
    }
}

async fn gate(ruled: bool, sink: &Sink) -> Result<Gate> {
    let mut gate = Gate::builder()
        .server(ServerSpec::stdio("a", own_program()?, ["--serve"]))
        .server(ServerSpec::stdio("b", &sink.command, &sink.args))
        .rules(Rules::new(["*"], [], [])?);
    if ruled {
        let mut rules = FlowRules::default();
        rules.push(FlowRule {
            from: FlowEnd::parse("a").ok_or("an end")?,
            to: FlowEnd::parse("b").ok_or("an end")?,
            min_bytes: Some(usize::MAX),
            action: Verdict::Ask,
        });
        gate = gate.flow_rules(rules);
    }
    Ok(gate.build().await?)
}

/// The call in the middle of those of a run, for each way.
type Round = [Duration; WAYS.len()];

async fn calls(sink: &Sink, rounds: usize) -> Result<[Vec<Round>; KINDS.len()]> {
    let gates = try_join_all([false, true].map(|ruled| gate(ruled, sink))).await?;
    let mut times: [Vec<Round>; KINDS.len()] = Default::default();
    for round in 0..rounds {
        for ((_, name), times) in KINDS.iter().zip(&mut times) {
            let mut typical = Round::default();
            for step in 0..WAYS.len() {
                let nth = (round + step) % WAYS.len();
                let way = WAYS[nth];
                let gate = &gates[usize::from(way.ruled)];
                typical[nth] = run(gate, sink, name, &way.before(sink)).await?;
            }
            times.push(typical);
        }
    }
    for gate in gates {
        gate.shutdown().await;
    }
    Ok(times)
}

/// The one in the middle of calls with an argument that is of nobody's making: what the server gave
/// is turned round by the script.
async fn run(gate: &Gate, sink: &Sink, kind: &str, learn: &str) -> Result<Duration> {
    let give = sink.give.replace("KIND", kind);
    let Sink { take, calls, .. } = sink;
    let script = format!(
        "{learn}
         const text: string = {give}.split('').reverse().join('');
         const records = text.startsWith('[') ? JSON.parse(text) : null;
         const took: number[] = [];
         for (let i = 0; i < {calls}; i++) {{
           const before = performance.now();
           await {take};
           took.push(performance.now() - before);
         }}
         // The first look has to learn.
         return took.slice(1).sort((a, b) => a - b)[(took.length - 1) >> 1];"
    );
    let report = gate.run(script.as_str()).await;
    if report.status != Status::Completed {
        return Err(report.to_string().into());
    }
    let value = report.value.and_then(|value| value.json);
    let millis: f64 = serde_json::from_str(value.ok_or("no value")?.get())?;
    Ok(Duration::from_secs_f64(millis / 1e3))
}

/// A server that gives texts of each kind, as they are or back to front, and takes
/// arguments.
fn serve() -> Result<()> {
    let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
    let tools = json!([tool("text"), tool("turned"), tool("take")]);
    let called = |tool: &str, arguments: &Value| {
        let text = arguments["kind"].as_str().map(text).unwrap_or_default();
        let text = match tool {
            "turned" => turned(&text),
            _ => text,
        };
        Some(json!({ "content": [{ "type": "text", "text": text }] }))
    };
    Ok(stand_in::serve(&tools, called)?)
}

fn own_program() -> Result<String> {
    Ok(std::env::current_exe()?.display().to_string())
}

/// What the arguments of a kind hold, as a text.
fn text(kind: &str) -> String {
    match argument(kind) {
        Value::String(text) => text,
        records => records.to_string(),
    }
}

fn turned(text: &str) -> String {
    text.chars().rev().collect()
}

/// What the arguments of a kind hold.
fn argument(kind: &str) -> Value {
    match kind {
        "prose" => json!(prose(2)),
        "lines" => json!(prose(3).replace("q ", "\n    ")),
        "base64 of prose" => json!(STANDARD.encode(&prose(4)[..BYTES / 4 * 3])),
        "base64 of data" => json!(STANDARD.encode(data(5))),
        "records" => records(6),
        _ => json!(prose(LEARNT)),
    }
}

fn side(server: &str) -> Side {
    Side::new(&format!("{server}_tool"), server, "tool")
}

/// What the machine can do when it does nothing else.
fn least(times: impl Iterator<Item = Duration>) -> Duration {
    times.min().unwrap_or_default()
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

//! Cost of starting a worker, and of runs of many clients.
//!
//! `cargo xtask bench workers` builds what this needs and runs it. `CALLGATE_BENCH_ROUNDS` sets
//! how many workers are started (default 200; ten times as many runs).
//! `CALLGATE_BENCH_PROGRAM` names another `callgate`, for figures to compare with; its workers are
//! the `callgate-worker` beside it, or it is its own.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use callgate_tests::{Workbench, binary};
use callgate_wire::{Decoder, HostFrame, Start, Stretch, ToWire as _, WorkerFrame, WorkerLimits};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CLIENTS: usize = 8;
/// A pause in which a worker is ready again.
const PAUSE: Duration = Duration::from_millis(60);

fn main() -> Result<()> {
    let rounds = match std::env::var("CALLGATE_BENCH_ROUNDS") {
        Ok(rounds) => rounds.parse()?,
        Err(_) => 200,
    };
    let program = match std::env::var_os("CALLGATE_BENCH_PROGRAM") {
        Some(program) => PathBuf::from(program),
        None => binary("callgate"),
    };
    let beside = program.with_file_name("callgate-worker");
    let worker = if beside.exists() { &beside } else { &program };
    for file in [&program, worker] {
        let megabytes = std::fs::metadata(file)?.len() as f64 / 1e6;
        println!("{:<60} {megabytes:>8.1} MB", file.display());
    }

    let mut host = Host::start(&program, json!({}))?;
    let mut starts = vec![(", in its jail,", Starts::default())];
    starts[0].1.arguments = host.arguments_of_worker()?;
    // An older build may have no jail.
    if let Ok(free) = Host::start(&program, json!({ "level": "process" })) {
        starts.push((", without it,", Starts::default()));
        starts[1].1.arguments = free.arguments_of_worker()?;
        free.end()?;
    }
    for _ in 0..rounds {
        for (_, starts) in &mut starts {
            starts.one(worker)?;
        }
    }
    for (which, starts) in starts {
        starts.show(which);
    }
    let mut times = Vec::new();
    for _ in 0..rounds {
        std::thread::sleep(PAUSE);
        times.extend(host.run(1, 1)?);
    }
    show("run of a script with a line, worker ready", times);
    host.end()?;

    let mut host = Host::start(&program, json!({}))?;
    let before = processor_time(host.child.id())?;
    let runs = 10 * rounds;
    let began = Instant::now();
    let times = host.run(runs, CLIENTS)?;
    let took = began.elapsed();
    show(
        &format!("{runs} such runs of {CLIENTS} clients at once"),
        times,
    );
    let used = processor_time(host.child.id())?.saturating_sub(before);
    let each = |time: Duration| time.as_secs_f64() * 1e3 / runs as f64;
    println!("{:<60} {:>8.2} ms", "processor time each", each(used));
    println!("{:<60} {:>8.0}", "runs a second", 1e3 / each(took));
    host.end()
}

/// Costs of starts with the same arguments.
#[derive(Default)]
struct Starts {
    arguments: Vec<String>,
    ready: Vec<Duration>,
    line: Vec<Duration>,
    processor: Duration,
    faults: i64,
}

impl Starts {
    /// Starts a worker and has it print a line.
    fn one(&mut self, program: &Path) -> Result<()> {
        let before = usage_of_children();
        let (ours, theirs) = UnixStream::pair()?;
        let began = Instant::now();
        let mut child = Command::new(program)
            .arg0("callgate-worker")
            .args(&self.arguments)
            .env_clear()
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .spawn()?;
        // Its first word is that it is ready.
        if (&ours).read(&mut [0; 4096])? == 0 {
            return Err("a worker does not start".into());
        }
        self.ready.push(began.elapsed());
        let began = Instant::now();
        // A worker of another build may not understand the script.
        if let Ok(()) = first_line(&ours) {
            self.line.push(began.elapsed());
        }
        child.kill()?;
        child.wait()?;
        let (processor, faults) = usage_of_children();
        self.processor += processor.saturating_sub(before.0);
        self.faults += faults - before.1;
        Ok(())
    }

    fn show(self, which: &str) {
        let count = self.ready.len().max(1);
        let each = self.processor.as_secs_f64() * 1e3 / count as f64;
        let faults = self.faults / count as i64;
        show(
            &format!("start of a worker{which} until it is ready"),
            self.ready,
        );
        println!(
            "{:<60} {each:>8.2} ms, {faults} page faults",
            "processor time of it"
        );
        show(
            "from then, start of a script until its first line",
            self.line,
        );
    }
}

/// Has a worker run a script, and waits for what it prints.
fn first_line(mut socket: &UnixStream) -> Result<()> {
    let script = HostFrame::Start(script()).encode(1 << 20)?;
    socket.write_all(&script.to_vec())?;
    let mut decoder = Decoder::<WorkerFrame>::new(1 << 20);
    let mut bytes = [0; 4096];
    loop {
        match socket.read(&mut bytes)? {
            0 => return Err("the worker has ended".into()),
            read => decoder.push(&bytes[..read]),
        }
        while let Some(frame) = decoder.next()? {
            if let WorkerFrame::Output(_) = frame {
                return Ok(());
            }
        }
    }
}

fn script() -> Start {
    Start {
        source_name: "script.ts".into(),
        functions: Vec::new(),
        stretches: vec![Stretch {
            line: 2,
            column: 1,
            author: Some((1, 1)),
        }],
        limits: WorkerLimits {
            output_bytes: 16 << 10,
            output_lines: 2048,
            message_bytes: 64 << 10,
            depth: 4,
            more_bytes: 0,
            emits: 64,
            emit_bytes: 8 << 20,
            result_bytes: 16 << 10,
            frame_bytes: 16 << 20,
            buffer_bytes: 128 << 20,
        },
        code: "(async () => {\nconsole.log('line')\n})".into(),
    }
}

/// `callgate serve` over stdio, without servers and without type checks.
struct Host {
    child: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    _bench: Workbench,
}

impl Host {
    fn start(program: &Path, sandbox: Value) -> Result<Self> {
        let mut config = json!({ "mcpServers": {}, "check": { "mode": "off" } });
        if sandbox != json!({}) {
            config["sandbox"] = sandbox;
        }
        let bench = Workbench::with_config(config);
        let mut child = Command::new(program)
            .arg("serve")
            .current_dir(bench.path())
            .env("XDG_CACHE_HOME", bench.cache())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut host = Self {
            requests: child.stdin.take().ok_or("it is piped")?,
            answers: BufReader::new(child.stdout.take().ok_or("it is piped")?).lines(),
            child,
            _bench: bench,
        };
        host.send(json!({ "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" } } }))?;
        host.answer()?;
        host.send(json!({ "method": "notifications/initialized" }))?;
        // The first run of a process takes longer.
        host.run(1, 1)?;
        Ok(host)
    }

    /// The arguments of the worker that waits, as if this process were its host.
    fn arguments_of_worker(&self) -> Result<Vec<String>> {
        std::thread::sleep(10 * PAUSE);
        let host = self.child.id().to_string();
        let ours = std::process::id().to_string();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let children = std::fs::read_to_string(task?.path().join("children"))?;
            for pid in children.split_whitespace() {
                let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"))?;
                let mut arguments = line.trim_end_matches('\0').split('\0').map(str::to_owned);
                if arguments.next().as_deref() == Some("callgate-worker") {
                    let of_host = |argument: String| match argument == host {
                        true => ours.clone(),
                        false => argument,
                    };
                    return Ok(arguments.map(of_host).collect());
                }
            }
        }
        Err("no worker waits".into())
    }

    /// So many runs, as many at once as there are clients; how long each took.
    fn run(&mut self, runs: usize, clients: usize) -> Result<Vec<Duration>> {
        let mut began = Vec::new();
        let mut times = Vec::new();
        while times.len() < runs {
            while began.len() < runs && began.len() - times.len() < clients {
                self.send(
                    json!({ "id": began.len(), "method": "tools/call", "params": {
                    "name": "run_script", "arguments": { "code": "console.log('line')" } } }),
                )?;
                began.push(Instant::now());
            }
            let answer = self.answer()?;
            let id = answer["id"].as_u64().ok_or("an id")?;
            let began: &Instant = began.get(usize::try_from(id)?).ok_or("an id of ours")?;
            times.push(began.elapsed());
            if answer["result"]["isError"] == json!(true) || answer["result"].is_null() {
                return Err(answer.to_string().into());
            }
        }
        Ok(times)
    }

    fn send(&mut self, mut message: Value) -> Result<()> {
        message["jsonrpc"] = json!("2.0");
        Ok(writeln!(self.requests, "{message}")?)
    }

    /// The next answer; notifications are passed over.
    fn answer(&mut self) -> Result<Value> {
        loop {
            let line = self.answers.next().ok_or("the host has ended")??;
            let message: Value = serde_json::from_str(&line)?;
            if message.get("id").is_some() {
                return Ok(message);
            }
        }
    }

    fn end(mut self) -> Result<()> {
        drop(self.requests);
        self.child.wait()?;
        Ok(())
    }
}

/// Processor time and page faults of the children that this process has waited for.
fn usage_of_children() -> (Duration, i64) {
    let mut usage = std::mem::MaybeUninit::zeroed();
    // SAFETY: writes to one live value, of which all zeros is one, too.
    let usage: libc::rusage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        let micros = time.tv_sec * 1_000_000 + time.tv_usec;
        Duration::from_micros(u64::try_from(micros).unwrap_or_default())
    };
    (time(usage.ru_utime) + time(usage.ru_stime), usage.ru_minflt)
}

/// Processor time of a process and of the children that it has waited for.
fn processor_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("a name in brackets")?;
    // utime, stime, cutime, cstime, in hundredths of a second.
    let fields = fields.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields
        .map(str::parse::<u64>)
        .sum::<std::result::Result<_, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| {
        let time = times.get(times.len() * percent / 100).copied();
        time.unwrap_or_default().as_secs_f64() * 1e3
    };
    if times.is_empty() {
        println!("{what:<60} not measured");
        return;
    }
    let (p50, p99) = (at(50), at(99));
    println!(
        "{what:<60} {p50:>8.2} ms, p99 {p99:.2} ms ({:.1}×)",
        p99 / p50
    );
}

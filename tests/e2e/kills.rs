//! A ledger on disk, and SIGKILL at any moment: for hosts, servers, workers and
//! the whole program.
//!
//! Whoever is killed: each call that the server made has a line before it, each
//! call whose answer came back has a line after it too, and everything in the
//! file can be read. What a script was answered its later calls say.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use callgate::{JournalLine, JournalReader};
use callgate_tests::{Workbench, binary, profile_dir};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Hosts that are killed at one time, with one ledger for all.
const HOSTS: usize = 2;

#[test]
fn hosts_that_are_killed_lose_no_line() {
    let bench = Bench::new();
    each_of(HOSTS, |host| {
        let mut random = Random::new(1, host);
        let mut acknowledged = Vec::new();
        for round in 0..425 {
            let mut host = Host::start(&bench, &format!("{host}.{round}"));
            host.read(&mut acknowledged, 1 + random.below(12));
            random.spin();
            host.kill();
            host.read(&mut acknowledged, usize::MAX);
        }
        bench.check(&acknowledged);
    });
    bench.check_all(HOSTS * 425);
}

#[test]
fn servers_that_are_killed_lose_no_line() {
    let bench = Bench::new();
    each_of(HOSTS, |host| {
        let mut random = Random::new(2, host);
        let mut acknowledged = Vec::new();
        let mut running = Host::start(&bench, &host.to_string());
        let mut killed = String::new();
        let mut kills = 0;
        while kills < 50 {
            running.read(&mut acknowledged, random.below(6));
            // One that has answered a call, and not the last one's last answers.
            let server = loop {
                let line = running.read_one(&mut acknowledged).expect("it goes on");
                let server = line
                    .strip_prefix("done ")
                    .and_then(|done| done.split_once(' '));
                if let Some((_, server)) = server.filter(|(_, server)| *server != killed) {
                    break server.to_owned();
                }
            };
            random.spin();
            // It may have come up beside a call that failed, and be ended with it.
            kills += usize::from(kill(&server));
            killed = server;
        }
        running.kill();
        running.read(&mut acknowledged, usize::MAX);
        bench.check(&acknowledged);
    });
    // Hosts are killed once each, so no more lines than that are cut off.
    bench.check_all(HOSTS);
}

#[test]
fn programs_and_workers_that_are_killed_lose_no_line() {
    let bench = Bench::new();
    let config = Workbench::with_config(json!({
        "mcpServers": { "effects": {
            "command": binary("callgate-odd-server"), "args": ["effects"],
            "env": { "EFFECTS": bench.effects() },
        } },
        "permissions": { "allow": ["*"] },
        "ledger": { "path": bench.ledger(), "bodies": true },
        "check": { "mode": "off" },
    }));
    config.write(
        "loop.ts",
        "let answered: string[] = [];
         const note = async (i: number) => {
           const id = `${new Date().getTime()}.${Math.random()}.${i}`;
           await effects_note({ id, answered });
           return id;
         };
         for (let i = 0; ; i++)
           answered = await Promise.all(Array.from({ length: 1 + i % 4 }, (_, j) => note(j)));",
    );
    let mut random = Random::new(3, 0);
    for round in 0..100 {
        let before = lines_of(&bench.effects());
        let mut command = config.command(&["run", "loop.ts", "--json"]);
        let mut program = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("callgate starts");
        let enough = before + 2 + random.below(20);
        while lines_of(&bench.effects()) < enough {
            std::thread::yield_now();
        }
        random.spin();
        if round % 2 == 0 {
            program.kill().expect("it runs");
            program.wait().expect("it ends");
            continue;
        }
        let workers = workers_of(program.id());
        assert!(!workers.is_empty(), "a script runs in a worker");
        for worker in workers {
            // One that waited may be gone by now, with the one that ran.
            let _there = kill(&worker);
        }
        let ended = program.wait_with_output().expect("it ends");
        let report: Value = serde_json::from_slice(&ended.stdout).expect("a report");
        assert_eq!(report["error"]["kind"], "crashed", "{report:#}");
        // What the report has, the ledger has too.
        let run = report["run"].as_str().expect("a run");
        let book = Book::read(&bench.ledger());
        for call in report["calls"].as_array().expect("calls") {
            let line = &book.by_run[&(run.to_owned(), call["ordinal"].as_u64().expect("one"))];
            assert!(line.before, "{call}");
            assert_eq!(line.outcome.as_deref(), call["outcome"].as_str(), "{call}");
        }
    }
    let answered = bench.check_all(100);
    assert!(answered >= 100, "{answered} calls were answered");
}

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: TempDir::with_prefix("callgate-").expect("a temporary folder"),
        }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger.jsonl")
    }

    fn effects(&self) -> PathBuf {
        self.folder.path().join("effects")
    }

    /// Each call that was answered has a line before it and one after it.
    fn check(&self, acknowledged: &[String]) {
        let book = Book::read(&self.ledger());
        assert!(!acknowledged.is_empty());
        for id in acknowledged
            .iter()
            .filter_map(|line| line.strip_prefix("done ")?.split(' ').next())
        {
            let line = book
                .by_id
                .get(id)
                .unwrap_or_else(|| panic!("{id} has no line"));
            assert!(line.before, "{id} has no line before it");
            assert_eq!(line.outcome.as_deref(), Some("ok"), "{id}");
        }
    }

    /// Each call that the server made has a line before it, those that it says were answered have
    /// one after them, and no more of the file is cut off than there were kills. How many were
    /// said to be answered.
    fn check_all(&self, kills: usize) -> usize {
        let book = Book::read(&self.ledger());
        assert!(book.torn <= kills, "{} pieces, {kills} kills", book.torn);
        let (mut made, mut answered) = (0, 0);
        let effects = fs::read_to_string(self.effects()).expect("the server's own file");
        let mut once = HashSet::new();
        for id in effects
            .lines()
            .filter_map(|line| line.strip_prefix("done "))
        {
            assert!(once.insert(id), "{id} was made twice");
            let line = book.by_id.get(id);
            let line = line.unwrap_or_else(|| panic!("{id} has no line"));
            assert!(line.before, "{id} was made without a line before it");
            made += 1;
            for id in &line.answered {
                let line = book.by_id.get(id);
                let line = line.unwrap_or_else(|| panic!("{id} has no line"));
                assert!(line.before, "{id} has no line before it");
                assert_eq!(line.outcome.as_deref(), Some("ok"), "{id}");
                answered += 1;
            }
        }
        assert!(made >= kills, "{made} calls, {kills} kills");
        answered
    }
}

/// What a ledger has of each call.
#[derive(Default)]
struct Book {
    by_id: HashMap<String, Line>,
    by_run: HashMap<(String, u64), Line>,
    torn: usize,
}

#[derive(Default, Clone)]
struct Line {
    before: bool,
    outcome: Option<String>,
    /// What had been answered when it was made.
    answered: Vec<String>,
}

impl Book {
    fn read(path: &Path) -> Self {
        let mut book = Self::default();
        let mut ids: HashMap<(String, u64), String> = HashMap::new();
        let file = BufReader::new(File::open(path).expect("a ledger"));
        for line in JournalReader::new(file) {
            let JournalLine::Record(record) = line.expect("it is read") else {
                book.torn += 1;
                continue;
            };
            let run = record["run"].as_str().expect("a run").to_owned();
            let call = (run, record["call"].as_u64().expect("a call"));
            let line = book.by_run.entry(call.clone()).or_default();
            if let Some(text) = record["arguments"]["text"].as_str() {
                let arguments: Value = serde_json::from_str(text).expect("arguments");
                let id = arguments["id"].as_str().expect("an id").to_owned();
                let answered = arguments["answered"].as_array();
                let answered = answered.into_iter().flatten().filter_map(Value::as_str);
                line.answered.extend(answered.map(str::to_owned));
                assert!(
                    ids.insert(call.clone(), id).is_none(),
                    "two lines before {call:?}"
                );
            }
            line.before |= record["event"] == "before";
            if record["event"] == "after" {
                assert_eq!(line.outcome, None, "two lines after {call:?}");
                line.outcome = record["outcome"].as_str().map(str::to_owned);
            }
        }
        for (call, id) in ids {
            book.by_id.insert(id, book.by_run[&call].clone());
        }
        book
    }
}

/// A host that makes calls until it is killed.
struct Host {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Host {
    fn start(bench: &Bench, name: &str) -> Self {
        let mut child = Command::new(profile_dir().join("examples/journal_host"))
            .args([bench.ledger(), bench.effects()])
            .args([binary("callgate-odd-server").as_path(), Path::new(name)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("run `cargo build --workspace --bins --examples` first");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output }
    }

    /// Reads so many lines, or all that there are until its end.
    fn read(&mut self, lines: &mut Vec<String>, count: usize) {
        for _ in 0..count {
            if self.read_one(lines).is_none() {
                return;
            }
        }
    }

    fn read_one<'l>(&mut self, lines: &'l mut Vec<String>) -> Option<&'l str> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a pipe is read");
        let line = line.strip_suffix('\n')?;
        lines.push(line.to_owned());
        lines.last().map(String::as_str)
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may be killed already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Whether there was such a process.
fn kill(pid: &str) -> bool {
    let killed = Command::new("kill").args(["-KILL", pid]).output();
    killed.expect("kill is there").status.success()
}

/// The workers of a program, the one with the script and those that wait: its
/// children that are not another program.
fn workers_of(program: u32) -> Vec<String> {
    let own = fs::read_link(format!("/proc/{program}/exe")).expect("it runs");
    let tasks = fs::read_dir(format!("/proc/{program}/task")).expect("it runs");
    let mut workers = Vec::new();
    for task in tasks.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace() {
            // A worker may let nobody but root look.
            let exe = fs::read_link(format!("/proc/{pid}/exe"));
            if exe.is_ok_and(|exe| exe != own) {
                continue;
            }
            workers.push(pid.to_owned());
        }
    }
    workers
}

fn lines_of(path: &Path) -> usize {
    fs::read(path)
        .unwrap_or_default()
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

fn each_of(count: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        for index in 0..count {
            scope.spawn(move || work(index));
        }
    });
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn new(test: u64, thread: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ test << 32 ^ thread as u64)
    }

    fn below(&mut self, limit: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit) as usize
    }

    /// Lets up to a call's time pass, so that kills do not come in step with
    /// what was read.
    fn spin(&mut self) {
        for _ in 0..self.below(200_000) {
            std::hint::spin_loop();
        }
    }
}

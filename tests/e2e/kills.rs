//! A ledger on disk, and SIGKILL at any moment: for hosts, servers, workers and
//! the whole program.
//!
//! Whoever is killed: each call that the server made has a line before it, each
//! call whose answer came back has a line after it too, and everything in the
//! file can be read. What a script was answered its later calls say.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callgate::{JournalLine, JournalReader, recover_ledger};
use callgate_tests::{Workbench, binary, profile_dir};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Hosts that are killed at one time.
const HOSTS: usize = 2;

/// A few calls fill a file of this size in bytes, and this many are kept that are full.
const SMALL: u64 = 16 << 10;
const KEEP: u32 = 4;

/// What a kill in the middle of a `write` leaves.
const TORN: &str = r#"{"v":1,"event":"before","run":"torn"#;

#[test]
fn hosts_that_are_killed_lose_no_line() {
    let bench = Bench::new();
    let legs = each_of(HOSTS, |host| {
        kill_hosts(&bench, host, 240, |round| round % 4 == 0)
    });
    bench.check_all(&legs);
}

/// Each has a ledger for itself, whose end nobody mends before it is opened.
#[test]
fn hosts_that_are_killed_at_a_torn_end_lose_no_line() {
    each_of(HOSTS, |host| {
        let mut bench = Bench::new();
        bench.tears = true;
        let leg = kill_hosts(&bench, host, 100, |round| round % 2 == 0);
        bench.check_all(&[leg]);
        let ledger = fs::read_to_string(bench.ledger()).expect("a ledger");
        for line in ledger.lines() {
            let behind = line.rsplit_once(TORN).map_or("", |(_, behind)| behind);
            assert_eq!(behind, "", "a record has no line of its own");
        }
    });
}

#[test]
fn hosts_that_are_killed_while_files_are_moved_aside_lose_no_line() {
    let mut bench = Bench::new();
    bench.max_bytes = SMALL;
    let legs = each_of(HOSTS, |host| {
        kill_hosts(&bench, host, 150, |round| round % 4 == 0)
    });
    bench.check_all(&legs);
    let moved = bench.ledgers().len();
    let kills: usize = legs.iter().map(|leg| leg.kills).sum();
    assert!(moved >= kills, "{moved} files were moved, {kills} kills");
}

/// Kills so many hosts one after the other: after some lines of theirs, and, where it is to be
/// `early`, before the first.
fn kill_hosts(bench: &Bench, host: usize, rounds: usize, early: impl Fn(usize) -> bool) -> Leg {
    let mut random = Random::new(1, host);
    let mut leg = Leg::default();
    let mut start = Start::default();
    for round in 1..=rounds {
        let begun = Instant::now();
        let mut host = Host::start(bench, &format!("{host}.{round}"));
        let heard = leg.acknowledged.len();
        if early(round) {
            start.spin(&mut random);
        } else {
            host.read(&mut leg.acknowledged, 1);
            start.was(begun.elapsed());
            host.read(&mut leg.acknowledged, random.below(12));
            random.spin();
        }
        host.kill();
        host.read(&mut leg.acknowledged, usize::MAX);
        leg.kills += 1;
        leg.silent += usize::from(leg.acknowledged.len() == heard);
    }
    let early = (1..=rounds).filter(|round| early(*round)).count();
    assert!(leg.silent * 2 >= early, "{} of {early}", leg.silent);
    leg
}

#[test]
fn servers_that_are_killed_lose_no_line() {
    let bench = Bench::new();
    let legs = each_of(HOSTS, |host| {
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
        // Of the host, so no more lines than that are cut off.
        Leg {
            acknowledged,
            kills: 1,
            silent: 0,
        }
    });
    bench.check_all(&legs);
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
    let mut start = Start::default();
    let mut leg = Leg::default();
    for round in 0..100 {
        let before = lines_of(&bench.effects());
        let begun = Instant::now();
        let mut command = config.command(&["run", "loop.ts", "--json"]);
        let mut program = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("callgate starts");
        leg.kills += 1;
        // Each second is a program, and half of those do not come to a call.
        if round % 4 == 2 {
            start.spin(&mut random);
            leg.silent += 1;
            kill_child(&mut program);
            continue;
        }
        bench.wait_for_effects(before + 1);
        start.was(begun.elapsed());
        bench.wait_for_effects(before + 2 + random.below(20));
        random.spin();
        if round % 4 == 0 {
            kill_child(&mut program);
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
        let book = bench.book();
        for call in report["calls"].as_array().expect("calls") {
            let line = &book.by_run[&(run.to_owned(), call["ordinal"].as_u64().expect("one"))];
            assert!(line.before, "{call}");
            assert_eq!(line.outcome.as_deref(), call["outcome"].as_str(), "{call}");
        }
    }
    let answered = bench.check_all(&[leg]);
    assert!(answered >= 100, "{answered} calls were answered");
}

/// What was done to one ledger by one thread.
#[derive(Default)]
struct Leg {
    /// What hosts said of their calls.
    acknowledged: Vec<String>,
    /// Of whoever writes to the ledger.
    kills: usize,
    /// Those that came before anything was said, and may have come before any call.
    silent: usize,
}

struct Bench {
    folder: TempDir,
    /// The size that a file of the ledger may have.
    max_bytes: u64,
    /// Whether a line is torn before each host.
    tears: bool,
    torn: AtomicUsize,
    /// Names for files that are moved away.
    names: AtomicUsize,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: TempDir::with_prefix("callgate-").expect("a temporary folder"),
            max_bytes: u64::MAX,
            tears: false,
            torn: AtomicUsize::new(0),
            names: AtomicUsize::new(0),
        }
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger.jsonl")
    }

    fn effects(&self) -> PathBuf {
        self.folder.path().join("effects")
    }

    fn wait_for_effects(&self, count: usize) {
        while lines_of(&self.effects()) < count {
            std::thread::yield_now();
        }
    }

    /// Tears a line, if that is to be, after the last one.
    fn tear(&self) {
        if self.tears {
            let mut options = File::options();
            options.append(true).create(true);
            let mut file = options.open(self.ledger()).expect("a ledger");
            file.write_all(TORN.as_bytes()).expect("a part of a line");
            self.torn.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Moves full files away, so that none is deleted, and another can be moved aside at once:
    /// one that lies there bars the next for a second.
    fn put_away(&self) {
        for number in 1..=KEEP {
            let full = self.folder.path().join(format!("ledger.jsonl.{number}"));
            let name = self.names.fetch_add(1, Ordering::Relaxed);
            let away = self.folder.path().join(format!("ledger.jsonl.away.{name}"));
            // There is none, or another thread has it.
            let _moved = fs::rename(full, away);
        }
    }

    /// All files of the ledger.
    fn ledgers(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path()).expect("its folder");
        let files = files.map(|file| file.expect("a file").path());
        let files: Vec<PathBuf> = files.filter(|path| *path != self.effects()).collect();
        let beside = |path: &&PathBuf| path.to_string_lossy().contains(".wal-");
        assert_eq!(files.iter().find(beside), None);
        files
    }

    fn book(&self) -> Book {
        let mut book = Book::default();
        let recovered = recover_ledger(&self.ledger()).expect("a ledger");
        assert_eq!((recovered.left.as_slice(), recovered.in_use), (&[][..], 0));
        for path in self.ledgers() {
            book.read(&path);
        }
        book
    }

    /// Each call that the server made has a line before it, those that it or a host says were
    /// answered have one after them, and no more of the files is cut off than there were kills.
    /// How many the server says were answered.
    fn check_all(&self, legs: &[Leg]) -> usize {
        let book = self.book();
        let kills: usize = legs.iter().map(|leg| leg.kills).sum();
        let silent: usize = legs.iter().map(|leg| leg.silent).sum();
        let torn = self.torn.load(Ordering::Relaxed);
        assert!(
            (torn..=torn + kills).contains(&book.torn),
            "{} pieces, {kills} kills and {torn} torn lines",
            book.torn
        );
        for line in legs.iter().flat_map(|leg| &leg.acknowledged) {
            let id = line
                .strip_prefix("done ")
                .and_then(|done| done.split(' ').next());
            if let Some(id) = id {
                book.assert_answered(id);
            }
        }
        let (mut made, mut answered) = (0, 0);
        let effects = fs::read_to_string(self.effects()).expect("the server's own file");
        let mut once = HashSet::new();
        for id in effects
            .lines()
            .filter_map(|line| line.strip_prefix("done "))
        {
            assert!(once.insert(id), "{id} was made twice");
            let line = book.line(id);
            assert!(line.before, "{id} was made without a line before it");
            made += 1;
            for id in &line.answered {
                book.assert_answered(id);
                answered += 1;
            }
        }
        let least = kills - silent;
        assert!(made >= least, "{made} calls, {kills} kills, {silent} early");
        answered
    }
}

/// What a ledger has of each call.
#[derive(Default)]
struct Book {
    by_run: HashMap<(String, u64), Line>,
    /// The run and the number of the call with each id.
    calls: HashMap<String, (String, u64)>,
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
    /// Takes in what a file has.
    fn read(&mut self, path: &Path) {
        let file = BufReader::new(File::open(path).expect("a ledger"));
        for line in JournalReader::new(file) {
            let JournalLine::Record(record) = line.expect("it is read") else {
                self.torn += 1;
                continue;
            };
            let run = record["run"].as_str().expect("a run").to_owned();
            let call = (run, record["call"].as_u64().expect("a call"));
            let line = self.by_run.entry(call.clone()).or_default();
            if let Some(text) = record["arguments"]["text"].as_str() {
                let arguments: Value = serde_json::from_str(text).expect("arguments");
                let id = arguments["id"].as_str().expect("an id").to_owned();
                let answered = arguments["answered"].as_array();
                let answered = answered.into_iter().flatten().filter_map(Value::as_str);
                line.answered.extend(answered.map(str::to_owned));
                let other = self.calls.insert(id, call.clone());
                assert!(other.is_none(), "two lines before {call:?}");
            }
            line.before |= record["event"] == "before";
            if record["event"] == "after" {
                assert_eq!(line.outcome, None, "two lines after {call:?}");
                line.outcome = record["outcome"].as_str().map(str::to_owned);
            }
        }
    }

    fn line(&self, id: &str) -> &Line {
        let call = self.calls.get(id);
        let call = call.unwrap_or_else(|| panic!("{id} has no line"));
        &self.by_run[call]
    }

    fn assert_answered(&self, id: &str) {
        let line = self.line(id);
        assert!(line.before, "{id} has no line before it");
        assert_eq!(line.outcome.as_deref(), Some("ok"), "{id}");
    }
}

/// A host that makes calls until it is killed.
struct Host<'b> {
    bench: &'b Bench,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl<'b> Host<'b> {
    fn start(bench: &'b Bench, name: &str) -> Self {
        bench.tear();
        let mut child = Command::new(profile_dir().join("examples/journal_host"))
            .args([bench.ledger(), bench.effects()])
            .args([binary("callgate-odd-server").as_path(), Path::new(name)])
            .args([bench.max_bytes.to_string(), KEEP.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("run `cargo build --workspace --bins --examples` first");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self {
            bench,
            child,
            output,
        }
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
        self.bench.put_away();
        let line = line.strip_suffix('\n')?;
        lines.push(line.to_owned());
        lines.last().map(String::as_str)
    }

    fn kill(&mut self) {
        kill_child(&mut self.child);
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        // It may be killed already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Kills a process that would not have ended by itself.
fn kill_child(child: &mut Child) {
    child.kill().expect("it runs");
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(libc::SIGKILL), "{ended}");
}

/// Whether there was such a process.
fn kill(pid: &str) -> bool {
    let killed = Command::new("kill").args(["-KILL", pid]).output();
    killed.expect("kill is there").status.success()
}

/// The workers of a program, the one with the script and those that wait: its
/// children that are not another program.
fn workers_of(program: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{program}/task")).expect("it runs");
    let mut workers = Vec::new();
    for task in tasks.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace() {
            // A worker may let nobody but root look.
            let exe = fs::read_link(format!("/proc/{pid}/exe"));
            if exe.is_ok_and(|exe| !exe.ends_with("callgate-worker")) {
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

fn each_of<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count)
            .map(|index| scope.spawn(move || work(index)))
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.expect("no panic")).collect()
    })
}

/// How long something takes from its start to its first call.
#[derive(Default)]
struct Start(Option<Duration>);

impl Start {
    fn was(&mut self, took: Duration) {
        self.0 = Some(self.0.map_or(took, |least| least.min(took)));
    }

    /// Lets a part of the least time pass that it took.
    fn spin(&self, random: &mut Random) {
        let least = self.0.expect("one has come to its first call");
        let part = u32::try_from(random.below(100)).expect("a small number");
        let begun = Instant::now();
        while begun.elapsed() < least * part / 100 {
            std::hint::spin_loop();
        }
    }
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

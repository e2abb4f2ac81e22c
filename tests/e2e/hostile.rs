//! The scripts in `tests/hostile`, each of which attacks the sandbox, in one gate: each ends in
//! time and as its first line says, with its ledger whole and nothing left, and the next script
//! is served. Each runs once, type-checked unless it ends by its short time limit; twice, with a
//! check and without, if that makes a difference.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use callgate::config::Config;
use callgate::settings::CheckMode;
use callgate::{Gate, RunRequest};
use callgate_tests::{Workbench, binary, children, odd, repository, typescript_modules};
use serde_json::{Value, json};

/// The time limit of scripts that must reach it.
const SHORT: Duration = Duration::from_millis(150);
/// The time limit of all other scripts, far above their time on a busy machine.
const LONG: Duration = Duration::from_secs(20);
/// The time over its limit after which a run counts as hanging, even on a busy machine. The latest
/// run is printed.
const LATE: Duration = Duration::from_secs(60);
/// The limit of heap and of array buffers for scripts that must fill it, and for all others.
const MEMORY: [u64; 2] = [32 << 20, 64 << 20];
/// The calls that a script may make.
const CALLS: u64 = 1000;
/// Servers and their modes. Scripts may call all but `shut`.
const SERVERS: [(&str, &str); 4] = [
    ("odd", "flaky"),
    ("big", "big"),
    ("never", "hang-on-call"),
    ("shut", "flaky"),
];
/// Texts that no report may contain: words of a panic, and paths of the build.
const INTERNAL: [&str; 5] = [
    "panicked",
    "RUST_BACKTRACE",
    ".cargo",
    "registry/src",
    ".rs:",
];
/// Marks a script's imitation of a line of the sandbox.
const FORGED: &str = "FORGED";
/// The script after each hostile one. When it ends, all servers have read all earlier messages,
/// including the server with the short call timeout.
const NEXT: &str = "await Promise.all([odd_echo({}), big_blob({ bytes: 1 })]);
while (!(await never_cancelled({}).then(() => true, () => false)));
return typeof (globalThis as any).left + Reflect.ownKeys(Object.prototype).length;";
const SERVED: &str = r#"returned "undefined12""#;

#[tokio::test]
async fn each_hostile_script_ends_in_time_as_stated() {
    Suite::new().await.run().await;
}

#[test]
fn security_document_states_the_number_of_hostile_scripts() {
    let scripts = std::fs::read_dir(repository().join("tests/hostile")).expect("the scripts");
    let count = scripts.count();
    let text = std::fs::read_to_string(repository().join("SECURITY.md")).expect("a document");
    let phrase = format!("`tests/hostile` holds {count} scripts");
    assert!(text.contains(&phrase), "SECURITY.md lacks {phrase:?}");
}

struct Suite {
    bench: Workbench,
    gate: Gate,
    /// Bytes of the ledger's file that were read.
    ledger_read: usize,
    wrong: Vec<String>,
}

impl Suite {
    async fn new() -> Self {
        let bench = Workbench::empty();
        let servers = SERVERS.map(|(name, mode)| {
            let mut server = odd(mode);
            server["env"] = json!({ "CALLS": bench.path().join(name) });
            if name == "never" {
                server["callTimeout"] = json!("500ms");
            }
            (name.to_owned(), server)
        });
        let config = json!({
            "mcpServers": serde_json::Map::from_iter(servers),
            "permissions": { "allow": ["*"], "deny": ["shut_*"] },
            "ledger": { "path": "ledger.jsonl" },
        });
        let path = bench.write("callgate.json", &config.to_string());
        let gate = Gate::builder()
            .config(&Config::load(&path).expect("a configuration"))
            .worker_binary(binary("callgate-worker"))
            .spare_workers(0)
            .typescript(typescript_modules().with_file_name(""));
        Self {
            gate: gate.build().await.expect("a gate"),
            bench,
            ledger_read: 0,
            wrong: Vec::new(),
        }
    }

    #[expect(
        clippy::print_stderr,
        reason = "the figure is for a reader of the test"
    )]
    async fn run(mut self) {
        let scripts = scripts();
        let mut latest = (Duration::ZERO, String::new());
        for path in &scripts {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let script = std::fs::read_to_string(path).expect("a script");
            for (check, expected) in ends(&script) {
                let late = self.attack(&name, &script, check, expected).await;
                latest = latest.max((late, name.clone().into_owned()));
            }
        }
        self.gate.shutdown().await;
        let (late, name) = latest;
        eprintln!(
            "{} scripts; the latest is {name}, {late:?} after its limit",
            scripts.len()
        );
        assert!(self.wrong.is_empty(), "\n{}", self.wrong.join("\n"));
    }

    /// Runs a script and then the next one. Gives the time that it took beyond its limit.
    async fn attack(
        &mut self,
        name: &str,
        script: &str,
        check: CheckMode,
        expected: &str,
    ) -> Duration {
        let limit = if may_time_out(expected) { SHORT } else { LONG };
        let request = |script: &str, limit| {
            let mut limits = self.gate.limits().clone();
            limits.script_time = limit;
            limits.wait_time = limit;
            limits.heap_bytes = MEMORY[usize::from(!expected.contains("limit memory"))];
            limits.buffer_bytes = limits.heap_bytes;
            limits.calls = CALLS;
            RunRequest::new(script).limits(limits).check(check)
        };
        let (attack, next) = (request(script, limit), request(NEXT, LONG));
        let began = Instant::now();
        let report = self.report(name, attack).await;
        let late = began.elapsed().saturating_sub(limit);
        let ended = outcome(&report);
        let as_expected = |one: &str| one == ended || ended.starts_with(&format!("{one} "));
        if !expected.split(" or ").any(as_expected) {
            let message = text(&report["error"]["message"]);
            self.wrong(name, format!("{ended} ({message:.200}), not {expected}"));
        }
        if late > LATE {
            self.wrong(name, format!("ended {late:?} after its limit"));
        }
        let next = self.report(name, next).await;
        let checked = check == CheckMode::Off || next["check"]["status"] == "passed";
        if outcome(&next) != SERVED || !checked {
            self.wrong(name, format!("the next script: {next}"));
        }
        self.compare_received(name, [&report, &next]);
        if let Some(left) = left_processes() {
            self.wrong(name, format!("left {left}"));
        }
        late
    }

    fn wrong(&mut self, name: &str, what: String) {
        self.wrong.push(format!("{name}: {what}"));
    }

    /// Runs a script, and checks its report and its ledger lines.
    async fn report(&mut self, name: &str, request: RunRequest) -> Value {
        let report = self.gate.run(request).await;
        let said = report.to_string();
        let report = serde_json::to_value(&report).expect("JSON");
        let all = format!("{said}\n{report}");
        let build = repository().to_string_lossy();
        for word in INTERNAL.iter().copied().chain([&*build]) {
            if all.contains(word) {
                self.wrong(name, format!("{word} in the report: {said:.500}"));
            }
        }
        let stack = text(&report["error"]["stack"]).lines().map(str::trim_start);
        let stack = stack.map(|line| line.trim_start_matches("Caused by: "));
        let stack = stack.map(|line| line.trim_start_matches("at "));
        let forged = said
            .lines()
            .chain(stack)
            .find(|line| line.starts_with(FORGED));
        if let Some(line) = forged {
            self.wrong(name, format!("a forged line: {line}"));
        }
        self.compare_ledger(name, &report);
        report
    }

    /// Expects lines in the ledger's file for each call in the report, and no others of calls.
    fn compare_ledger(&mut self, name: &str, report: &Value) {
        let ledger = std::fs::read(self.bench.path().join("ledger.jsonl")).unwrap_or_default();
        let new = ledger.get(self.ledger_read..).unwrap_or_default();
        self.ledger_read = ledger.len();
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            let arguments = &line["arguments"]["sha256"];
            json!([
                line["run"],
                line["call"],
                line["event"],
                line["function"],
                arguments
            ])
        };
        let mut in_file: Vec<Value> = String::from_utf8_lossy(new).lines().map(line).collect();
        in_file.retain(|line| line[2] != "runStarted" && line[2] != "runEnded");
        let mut in_report = Vec::new();
        for call in calls(report) {
            let [ordinal, function] = [&call["ordinal"], &call["function"]];
            let line = |event, sha| json!([report["run"], ordinal, event, function, sha]);
            let arguments = &call["argumentSha256"];
            if call.get("tookMs").is_some() {
                in_report.extend([line("before", arguments), line("after", &Value::Null)]);
            } else {
                in_report.push(line("notSent", arguments));
            }
        }
        in_file.sort_by_cached_key(Value::to_string);
        in_report.sort_by_cached_key(Value::to_string);
        if in_file != in_report {
            let differs = in_file
                .iter()
                .zip(&in_report)
                .find(|(one, other)| one != other);
            let [file, report] = [in_file.len(), in_report.len()];
            self.wrong(
                name,
                format!("{file} lines in the ledger, not {report}: {differs:?}"),
            );
        }
    }

    /// Expects each server to have received the calls that the reports say it answered, and no
    /// more than they say were sent.
    fn compare_received(&mut self, name: &str, reports: [&Value; 2]) {
        // Of each server and tool: answered, sent, received.
        let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
        for call in reports.into_iter().flat_map(calls) {
            let count = counts.entry(format!("{} {}", text(&call["server"]), text(&call["tool"])));
            let count = count.or_default();
            count[0] += usize::from(matches!(text(&call["outcome"]), "ok" | "toolError"));
            count[1] += usize::from(call.get("tookMs").is_some());
        }
        for (server, _) in SERVERS {
            let file = self.bench.path().join(server);
            for tool in std::fs::read_to_string(&file).unwrap_or_default().lines() {
                counts.entry(format!("{server} {tool}")).or_default()[2] += 1;
            }
            let _ = std::fs::remove_file(file);
        }
        for (tool, [answered, sent, received]) in counts {
            if received < answered || sent < received {
                self.wrong(
                    name,
                    format!("{tool}: {answered} answered, {sent} sent, {received} received"),
                );
            }
        }
    }
}

/// All scripts, or those with the text in their name that `CALLGATE_HOSTILE` has.
fn scripts() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(repository().join("tests/hostile")).expect("the scripts");
    let mut scripts: Vec<PathBuf> = folder.flatten().map(|file| file.path()).collect();
    // Sorted, because a script may look for leftovers of the script before it.
    scripts.sort_unstable();
    match std::env::var("CALLGATE_HOSTILE") {
        Ok(part) => scripts.retain(|path| path.to_string_lossy().contains(&part)),
        Err(_) => assert!(scripts.len() >= 120, "{} scripts", scripts.len()),
    }
    scripts
}

/// The checks that a script runs with and how it may end, by its first line:
/// `// expect: OUTCOME or OUTCOME`, and after `; checked: ` how it may end where it is
/// type-checked, if that is different.
fn ends(script: &str) -> Vec<(CheckMode, &str)> {
    let first = script.lines().next().unwrap_or_default();
    let Some(expected) = first.strip_prefix("// expect: ") else {
        panic!("no outcome in the first line: {first}");
    };
    match expected.split_once("; checked: ") {
        Some((unchecked, checked)) => vec![(CheckMode::Off, unchecked), (CheckMode::On, checked)],
        None if may_time_out(expected) => vec![(CheckMode::Off, expected)],
        None => vec![(CheckMode::On, expected)],
    }
}

fn may_time_out(expected: &str) -> bool {
    expected.contains("limit timeout") || expected.contains("limit waitTimeout")
}

/// The end of a run, such as `returned [1]`, `threw TypeError` or `limit memory`.
fn outcome(report: &Value) -> String {
    let error = &report["error"];
    match text(&error["kind"]) {
        "" if report["value"].is_null() => "returned nothing".to_owned(),
        "" => format!("returned {}", report["value"]["json"]),
        "exception" => format!("threw {}", error["name"].as_str().unwrap_or("a value")),
        "limit" => format!("limit {}", text(&error["limit"]["which"])),
        kind => kind.to_owned(),
    }
}

fn calls(report: &Value) -> impl Iterator<Item = &Value> {
    report["calls"].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A child process other than servers and TypeScript that does not end in time.
fn left_processes() -> Option<String> {
    let began = Instant::now();
    loop {
        let stat = |pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let mut stats = children(std::process::id()).into_iter().filter_map(stat);
        let left = stats.find(|stat| {
            let is_kept = stat.contains("(callgate-odd-se)") || stat.contains("(tsc)");
            !is_kept || stat.contains(") Z ")
        });
        if left.is_none() || began.elapsed() > LATE {
            return left;
        }
        std::thread::yield_now();
    }
}

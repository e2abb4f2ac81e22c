//! Ledger lines, counts and files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use callgate_catalog::ToolDefinition;
use callgate_policy::flow::{Detector, Finding, Side};
use callgate_policy::{Because, Decision, Effect, Pattern, Rule, Verdict};
use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::line::START;
use super::*;
use crate::ruling::Ruling;
use crate::setup::Records;

/// The ledger of a run whose script is `1` after a comment.
fn run_with(sinks: Vec<Arc<dyn LedgerSink>>) -> Arc<Ledger> {
    let mut setup = Setup {
        records: Records {
            sinks,
            ..Records::default()
        },
        ..Setup::default()
    };
    setup.options.script = Some("// one\n1".into());
    Ledger::new(&setup)
}

fn ruling(verdict: Verdict) -> Ruling {
    Ruling::by_rules(Decision::new(verdict, Because::NoRule))
}

fn open(ledger: &Arc<Ledger>, function: &str) -> OpenLine {
    let tool = Tool::new(function, ToolDefinition::new("s", "t"));
    let opened = ledger.open(&tool, RawValue::NULL, None);
    opened.expect("there is room")
}

fn parse(entry: &mut OpenLine, arguments: &str) {
    let given = RawValue::from_string(arguments.to_owned()).expect("JSON");
    entry.parse(&given, "arguments").expect("an object");
}

fn send(ledger: &Arc<Ledger>, function: &str) -> Result<OpenLine, CallError> {
    let mut entry = open(ledger, function);
    parse(&mut entry, r#"{"a":1}"#);
    entry.decided(&ruling(Verdict::Allow));
    entry.sending()?;
    Ok(entry)
}

fn deny(mut entry: OpenLine) {
    let ruling = ruling(Verdict::Deny);
    entry.decided(&ruling);
    let _ = entry.denied(ruling);
}

struct Files {
    folder: TempDir,
    options: LedgerOptions,
}

impl Files {
    fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a folder"),
            options: LedgerOptions::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ledger(&self) -> Arc<Ledger> {
        let file = LedgerFile::open(&self.path("l"), self.options.clone());
        run_with(vec![Arc::new(file.expect("it opens"))])
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The event and the number of each call's line that is whole.
    fn read(&self, name: &str) -> String {
        let text = self.text(name);
        let records = text.lines().filter_map(|line| {
            let record: Value = serde_json::from_str(line).ok()?;
            let call = record["call"].as_u64()?;
            Some(format!("{} {call}", record["event"].as_str()?))
        });
        records.collect::<Vec<_>>().join(", ")
    }

    /// The size of a ledger with the lines before two calls of one run.
    fn bytes_of_two_calls(&self) -> u64 {
        let other = Files {
            options: self.options.clone(),
            ..Files::new()
        };
        let ledger = other.ledger();
        let _entries = [(); 2].map(|()| send(&ledger, "f").expect("written"));
        other.text("l").len() as u64
    }

    /// The findings of a check of these files, the oldest first.
    fn check(&self, names: &[&str]) -> Vec<String> {
        let mut verifier = Verifier::new(Vec::new());
        for name in names {
            verifier.begin_file(name);
            for line in self.text(name).split_inclusive('\n') {
                verifier.line(line.as_bytes());
            }
            verifier.end_file();
        }
        let mut found = verifier.findings();
        found.extend(verifier.finish().0);
        found.iter().map(|it| it.to_string()).collect()
    }
}

/// Replaces the parts that differ from run to run.
fn same_each_time(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let record: Value = serde_json::from_str(line).expect("JSON");
        let differing = [
            "/run",
            "/time",
            "/prev",
            "/prevTime",
            "/writer/id",
            "/writer/prev",
            "/writer/prevTime",
            "/program",
            "/rules",
        ];
        let texts = differing
            .iter()
            .filter_map(|at| record.pointer(at)?.as_str());
        let line = texts.fold(line.to_owned(), |line, text| {
            line.replace(&format!("\"{text}\""), "\"…\"")
        });
        let times = ["tookMs", "totalMs"].map(|key| format!("\"{key}\":"));
        let line = times.iter().fold(line, |line, key| {
            let Some((before, rest)) = line.split_once(key.as_str()) else {
                return line;
            };
            let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}{key}0{rest}")
        });
        line + "\n"
    });
    lines.collect()
}

#[test]
fn lines_have_the_documented_form() {
    let mut files = Files::new();
    files.options.user = Some("token \"a\"".to_owned());
    let ledger = files.ledger();
    let rule = Rule::new(Effect::Allow, Pattern::new("f*").expect("a pattern"));
    let allowed = Decision::new(Verdict::Allow, Because::Rule(Arc::new(rule)));
    let mut entry = open(&ledger, "f");
    parse(&mut entry, r#"{"a":1}"#);
    entry.found(&flows(1));
    entry.decided(&Ruling::by_rules(allowed));
    entry.sending().expect("written");
    entry.close(Outcome::tool_error("secret"), Some("1"));
    deny(open(&ledger, "g"));
    drop(open(&ledger, "h"));
    ledger.end("completed", Some(7));
    drop((entry, ledger));
    expect![[r#"
        {"v":1,"event":"runStarted","run":"…","n":1,"writer":{"id":"…","n":1},"time":"…","script":{"bytes":8,"sha256":"4c2c811ed040602e4b077992f1da755f08bd2d9a104d37b29a8a09b70a5c1f82"},"program":"…","rules":"…","user":"token \"a\""}
        {"v":1,"event":"before","run":"…","n":2,"prev":"…","prevTime":"…","time":"…","call":1,"function":"f","server":"s","tool":"t","decision":"allowed by rule \"f*\" in permissions.allow","rule":"\"f*\"","flows":[{"from":"f0","to":"g","ordinal":1,"bytes":35,"encoding":"text","sha256":"75bebefe6604d4acbf664c63e66b16cca9211c4f9b450e3b5c206ce0be4dd3fc"}],"arguments":{"bytes":7,"sha256":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"},"user":"token \"a\""}
        {"v":1,"event":"after","run":"…","n":3,"prev":"…","prevTime":"…","time":"…","call":1,"function":"f","server":"s","tool":"t","outcome":"toolError","tookMs":0,"result":{"bytes":1,"sha256":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"},"user":"token \"a\""}
        {"v":1,"event":"notSent","run":"…","n":4,"prev":"…","prevTime":"…","time":"…","call":2,"function":"g","server":"s","tool":"t","decision":"denied: no rule matches","outcome":"denied","user":"token \"a\""}
        {"v":1,"event":"notSent","run":"…","n":5,"prev":"…","prevTime":"…","time":"…","call":3,"function":"h","server":"s","tool":"t","decision":"undecided: it was given up first","outcome":"cancelled","user":"token \"a\""}
        {"v":1,"event":"runEnded","run":"…","n":6,"prev":"…","prevTime":"…","writer":{"id":"…","n":2,"prev":"…","prevTime":"…"},"time":"…","status":"completed","totalMs":0,"scriptMs":7,"calls":3,"denied":1,"failed":1,"user":"token \"a\""}
    "#]].assert_eq(&same_each_time(&files.text("l")));
    assert_eq!(files.check(&["l"]), [] as [&str; 0]);

    files.options.bodies = true;
    files.options.user = None;
    fs::write(files.path("l"), "").expect("emptied");
    let ledger = files.ledger();
    let mut entry = send(&ledger, "f").expect("written");
    entry.close(Outcome::tool_error("secret"), Some("1"));
    drop((entry, ledger));
    expect![[r#"
        {"v":1,"event":"runStarted","run":"…","n":1,"writer":{"id":"…","n":1},"time":"…","script":{"bytes":8,"sha256":"4c2c811ed040602e4b077992f1da755f08bd2d9a104d37b29a8a09b70a5c1f82","text":"// one\n1"},"program":"…","rules":"…"}
        {"v":1,"event":"before","run":"…","n":2,"prev":"…","prevTime":"…","time":"…","call":1,"function":"f","server":"s","tool":"t","decision":"allowed: no rule matches","arguments":{"bytes":7,"sha256":"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862","text":"{\"a\":1}"}}
        {"v":1,"event":"after","run":"…","n":3,"prev":"…","prevTime":"…","time":"…","call":1,"function":"f","server":"s","tool":"t","outcome":"toolError","message":"secret","tookMs":0,"result":{"bytes":1,"sha256":"6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b","text":"1"}}
        {"v":1,"event":"runEnded","run":"…","n":4,"prev":"…","prevTime":"…","writer":{"id":"…","n":2,"prev":"…","prevTime":"…"},"time":"…","status":"lost","totalMs":0,"calls":1,"denied":0,"failed":1}
    "#]].assert_eq(&same_each_time(&files.text("l")));
}

#[test]
fn ledger_line_is_written_before_the_call() {
    let mut files = Files::new();
    files.options.sync = true;
    let ledger = files.ledger();
    let mut entry = send(&ledger, "f").expect("written");
    assert_eq!(files.read("l"), "before 1");
    // Another gate may write to the same file.
    let other = send(&files.ledger(), "f").expect("written");
    entry.close(Outcome::Ok, Some("1"));
    drop(other);
    assert_eq!(files.read("l"), "before 1, before 1, after 1, after 1");
    let mode = fs::metadata(files.path("l"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn truncated_line_does_not_affect_other_lines() {
    let files = Files::new();
    drop(send(&files.ledger(), "f").expect("written"));
    let text = files.text("l");
    let whole = text.split_inclusive('\n').nth(1).expect("a line");
    for cut in (0..whole.len()).step_by(7) {
        fs::write(files.path("l"), [&text, &whole[..cut]].concat()).expect("written");
        drop(open(&files.ledger(), "f"));
        let read = files.read("l");
        let (begins, ends) = ("before 1, after 1, ", "notSent 1");
        assert!(
            read.starts_with(begins) && read.ends_with(ends),
            "{cut}: {read}"
        );
        let found = files.check(&["l"]);
        assert_eq!(found.len(), cut.min(1), "{cut}: {found:?}");
        assert!(found.iter().all(|it| it.starts_with("l:5: ")), "{found:?}");
    }
}

#[test]
fn call_body_cannot_imitate_a_record() {
    let mut files = Files::new();
    files.options.bodies = true;
    let ledger = files.ledger();
    let mut entry = open(&ledger, START);
    let forged = serde_json::json!({ "x": START, START: {} });
    parse(&mut entry, &forged.to_string());
    deny(entry);
    // The run's first line, and the call's.
    assert_eq!(files.text("l").matches(START).count(), 2);
    assert_eq!(files.read("l"), "notSent 1");
}

#[test]
fn full_file_refuses_calls_but_records_results() {
    let mut files = Files::new();
    files.options.max_bytes = files.bytes_of_two_calls();
    let ledger = files.ledger();
    let mut first = send(&ledger, "f").expect("there is room");
    let second = send(&ledger, "f").expect("there is room");
    let error = send(&ledger, "f").err().expect("it is full").to_string();
    assert!(
        error.contains("is full") && error.contains("move the file away"),
        "{error}"
    );
    first.close(Outcome::Ok, Some("1"));
    drop(second);
    assert_eq!(files.read("l"), "before 1, before 2, after 1, after 2");
    fs::rename(files.path("l"), files.path("away")).expect("moved");
    drop(send(&ledger, "f").expect("a new file"));
    assert_eq!(files.read("l"), "before 4, after 4");
}

#[test]
fn line_over_the_size_limit_is_named() {
    let mut files = Files::new();
    files.options.max_bytes = 90;
    for (bodies, advice) in [(false, "it"), (true, "it, or turn \"bodies\" off")] {
        files.options.bodies = bodies;
        let error = send(&files.ledger(), "f").err().expect("no room");
        let error = error.to_string();
        let ends = format!(" bytes is over \"maxSize\"; raise {advice}");
        assert!(
            error.contains("a line of ") && error.contains(&ends),
            "{error}"
        );
    }
}

#[test]
fn full_files_are_rotated_and_oldest_deleted() {
    let mut files = Files::new();
    files.options.max_bytes = files.bytes_of_two_calls();
    files.options.keep = 2;
    let gates = [files.ledger(), files.ledger()];
    for _ in 0..5 {
        for ledger in &gates {
            drop(send(ledger, "f").expect("there is room"));
        }
    }
    for name in ["l", "l.1", "l.2"] {
        let read = files.read(name);
        assert!(!read.is_empty(), "{name}: {read}");
    }
    assert!(!files.path("l.3").exists());
    drop(gates);
    assert_eq!(files.check(&["l.2", "l.1", "l"]), [] as [&str; 0]);
}

#[test]
fn unwritable_file_stops_calls_until_lines_are_written() {
    let files = Files::new();
    let ledger = files.ledger();
    let mut entry = send(&ledger, "f").expect("written");
    // Nothing can be created where a folder is.
    fs::rename(files.path("l"), files.path("away")).expect("moved");
    fs::create_dir(files.path("l")).expect("a folder");
    entry.close(Outcome::Ok, Some("1"));
    let error = send(&ledger, "f")
        .err()
        .expect("the last call has no line")
        .to_string();
    assert!(error.contains("cannot be opened"), "{error}");
    fs::remove_dir(files.path("l")).expect("removed");
    drop(send(&ledger, "f").expect("written"));
    assert_eq!(files.read("l"), "after 1, before 3, after 3");
    drop((entry, ledger));
    assert_eq!(files.check(&["away", "l"]), [] as [&str; 0]);
}

#[test]
fn run_is_not_recorded_while_file_is_unwritable() {
    let files = Files::new();
    let file = LedgerFile::open(&files.path("l"), files.options.clone());
    let file: Arc<dyn LedgerSink> = Arc::new(file.expect("it opens"));
    fs::rename(files.path("l"), files.path("away")).expect("moved");
    fs::create_dir(files.path("l")).expect("a folder");
    let (never, later) = (run_with(vec![Arc::clone(&file)]), run_with(vec![file]));
    assert!(send(&later, "f").is_err());
    drop(never);
    fs::remove_dir(files.path("l")).expect("removed");
    drop(send(&later, "f").expect("written"));
    drop(later);
    let text = files.text("l");
    let events = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        format!("{} {}", line["n"], line["event"])
    });
    let events: Vec<String> = events.collect();
    let expected = [
        r#"1 "runStarted""#,
        r#"2 "before""#,
        r#"3 "after""#,
        r#"4 "runEnded""#,
    ];
    assert_eq!(events, expected);
    assert_eq!(files.check(&["l"]), [] as [&str; 0]);
}

#[test]
fn parallel_call_ends_stay_chained() {
    let files = Files::new();
    let ledger = files.ledger();
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                for _ in 0..25 {
                    let mut entry = send(&ledger, "f").expect("written");
                    entry.close(Outcome::Ok, Some("1"));
                }
            });
        }
    });
    drop(ledger);
    assert_eq!(files.text("l").lines().count(), 2 + 2 * 200);
    assert_eq!(files.check(&["l"]), [] as [&str; 0]);
}

#[test]
fn run_ids_are_given_or_new() {
    let mut setup = Setup::default();
    let new = [(); 2].map(|()| Ledger::new(&setup).run().to_owned());
    assert_ne!(new[0], new[1]);
    for id in new {
        let digits = id.strip_prefix("r-").expect("its form");
        assert!(
            digits.len() == 16 && digits.bytes().all(|it| it.is_ascii_hexdigit()),
            "{id}"
        );
    }
    setup.options.id = Some("r-of-host".to_owned());
    assert_eq!(Ledger::new(&setup).run(), "r-of-host");
}

#[test]
fn dropped_call_is_cancelled_and_dropped_script_lost() {
    let files = Files::new();
    let file = LedgerFile::open(&files.path("l"), files.options.clone());
    let mut setup = Setup::default();
    setup.records.sinks = vec![Arc::new(file.expect("it opens"))];
    for (is_one_call, status) in [(true, "cancelled"), (false, "lost")] {
        setup.options.one_call = is_one_call;
        drop(Ledger::new(&setup));
        let text = files.text("l");
        let last = text.lines().last().expect("a line");
        let last: Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(
            (&last["event"], &last["status"]),
            (&json!("runEnded"), &json!(status))
        );
    }
}

#[test]
fn changed_rules_have_another_hash() {
    let files = Files::new();
    let file = LedgerFile::open(&files.path("l"), files.options.clone());
    let file: Arc<dyn LedgerSink> = Arc::new(file.expect("it opens"));
    let mut setup = Setup::default();
    setup.records.sinks = vec![file];
    drop(Ledger::new(&setup));
    drop(Ledger::new(&setup));
    let rules = callgate_policy::Rules::builder().deny("f*").build();
    setup.rules.calls = Arc::new(rules.expect("rules"));
    drop(Ledger::new(&setup));
    let text = files.text("l");
    let hashes = text.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["rules"].as_str().map(str::to_owned)
    });
    let hashes: Vec<String> = hashes.collect();
    assert_eq!(hashes.len(), 3);
    assert!(
        hashes[0] == hashes[1] && hashes[1] != hashes[2],
        "{hashes:?}"
    );
}

#[test]
fn invalid_ledger_path_is_refused() {
    for (path, reason) in [
        ("/dev/null", "regular file"),
        ("/nowhere/l", "does not exist; create it"),
    ] {
        let opened = LedgerFile::open(path.as_ref(), LedgerOptions::default());
        let error = opened.expect_err(path).to_string();
        assert!(error.contains(path) && error.contains(reason), "{error}");
    }
}

#[test]
fn each_end_of_a_call_counts_once() {
    let ledger = run_with(Vec::new());
    let check = |expected: &str| {
        let done = ledger.done().into_iter().map(|done| {
            format!(
                "{} {}/{}/{}",
                done.function, done.sent, done.failed, done.denied
            )
        });
        assert_eq!(done.collect::<Vec<_>>().join(", "), expected);
    };
    let send = |function: &str| super::tests::send(&ledger, function).expect("no sink");
    let asked = open(&ledger, "a");
    let mut waits = send("b");
    check("b 1/0/0");
    waits.close(Outcome::Ok, Some("1"));
    send("b").close(Outcome::tool_error("no"), None);
    drop(send("c"));
    check("b 2/1/0, c 1/1/0");
    deny(asked);
    check("a 0/0/1, b 2/1/0, c 1/1/0");
    // None of these was sent, and none was denied.
    drop(open(&ledger, "d"));
    let _ = open(&ledger, "d").fail(-32602, "no object".to_owned(), false);
    open(&ledger, "d").answered_in_dry_run("needs approval", Some("1"));
    check("a 0/0/1, b 2/1/0, c 1/1/0");
}

/// This many flows, of as many functions.
fn flows(count: usize) -> Vec<Finding> {
    let detector = Detector::new("");
    let text = r#""one of the results of other servers""#;
    for number in 0..count {
        detector.learn(&Side::new(&format!("f{number}"), "a", "t"), 1, text);
    }
    let arguments = format!(r#"{{"a":{text}}}"#);
    let found = detector.find(&Side::new("g", "b", "t"), &arguments, "");
    assert_eq!(found.len(), count);
    found
}

#[test]
fn the_flows_of_lines_are_bounded() {
    let ledger = run_with(Vec::new());
    let found = flows(100);
    let full = MAX_FLOWS / MAX_FLOWS_OF_LINE;
    for _ in 0..full + 2 {
        open(&ledger, "g").found(&found);
    }
    open(&ledger, "g").found(&[]);
    let kept = |line: &LedgerLine| (line.flows.len(), line.more_flows);
    let lines = ledger.lines();
    assert!(
        lines[..full]
            .iter()
            .all(|line| kept(line) == (MAX_FLOWS_OF_LINE, 84))
    );
    let last: Vec<_> = lines[full..].iter().map(kept).collect();
    assert_eq!(last, [(1, 99), (1, 99), (0, 0)]);
    let line = json!(lines[0]);
    assert_eq!(line["flows"][0]["to"], "g");
}

//! The ledger file of real runs: its lines, and what `kill -9` leaves.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use callgate::faces::ledger::{Head, Verifier};
use callgate_tests::{Ran, Workbench, binary, demo_ticketing};
use expect_test::expect;
use serde_json::{Value, json};

#[test]
fn ledger_records_the_rule_of_unsent_calls() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "permissions": {
            "ask": [{ "tool": "ticketing_createIssue", "arguments": [{ "at": "/title", "equals": "b" }] }],
            "deny": ["ticketing_list*"],
        },
        "check": { "mode": "off" },
    }));
    let script = "const call = (made) => made.catch(() => {});
await call(ticketing_listIssues());
await call(ticketing_createIssue({ title: 'b' }));
await call(ticketing_createIssue({ title: 'c' }));";
    let ran = bench.run(script, &["--ledger", "calls.jsonl"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    bench.write(
        "results.json",
        r#"{ "ticketing_createIssue": { "issueId": "7" } }"#,
    );
    let flags = "--ledger calls.jsonl --dry-run --recorded results.json";
    let flags: Vec<&str> = flags.split(' ').collect();
    let ran = bench.run("await ticketing_createIssue({ title: 'b' })", &flags);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let lines = bench.ledger().into_iter().map(|line| {
        let members = ["event", "outcome", "rule", "result"].map(|key| line[key].to_string());
        members.join(" ") + "\n"
    });
    expect![[r#"
        "notSent" "denied" "\"ticketing_list*\"" null
        "notSent" "denied" "{\"tool\":\"ticketing_createIssue\",\"arguments\":[{\"at\":\"/title\",\"equals\":\"b\"}]}" null
        "notSent" "denied" null null
        "notSent" "recorded" "{\"tool\":\"ticketing_createIssue\",\"arguments\":[{\"at\":\"/title\",\"equals\":\"b\"}]}" {"bytes":18,"sha256":"13988b3ce814c59097d9c5419710c7d28d806cad9391eb3ff3de6cef2d1ce5b7"}
    "#]].assert_eq(&lines.collect::<String>());
}

/// The ticketing server, all of whose calls are allowed.
fn allowed() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "permissions": { "allow": ["ticketing_*"] },
        "check": { "mode": "off" },
    }))
}

fn members<const N: usize>(line: &Value, keys: [&str; N]) -> Value {
    keys.iter().map(|key| line[*key].clone()).collect()
}

#[test]
fn ledger_names_script_and_end_of_run() {
    let thrown = (
        "await ticketing_listIssues(); throw new Error('half');",
        "be80165d15698a4fa415ffde5da6c6dd0859fa024d04035e5aeb7d985c2c2653",
        vec!["runStarted", "before", "after", "runEnded"],
        json!(["failed", 1, 0, 0]),
    );
    // The hash is of the text as it was given.
    let block = (
        "```ts\nreturn 7\n```",
        "c9ad6346521fe68e2b2d099a37a9894afafd40d6291c5d1b36ec119aec93371e",
        vec!["runStarted", "runEnded"],
        json!(["completed", 0, 0, 0]),
    );
    for (script, hash, events, end) in [thrown, block] {
        let bench = allowed();
        let report = bench.report(script, &["--ledger", "calls.jsonl"]);
        let lines = bench.ledger_lines();
        let written: Vec<&Value> = lines.iter().map(|line| &line["event"]).collect();
        assert_eq!(written, events);
        let id = report["run"].as_str().expect("an id");
        assert!(id.starts_with("r-") && id.len() == 18, "{id}");
        assert!(lines.iter().all(|line| line["run"] == id), "{lines:#?}");
        let given = json!({ "bytes": script.len(), "sha256": hash });
        assert_eq!(lines[0]["script"], given);
        let last = lines.last().expect("a line");
        assert_eq!(members(last, ["status", "calls", "denied", "failed"]), end);
        assert_eq!(last["scriptMs"], report["scriptMs"]);
    }
}

#[test]
fn one_call_is_a_run_without_script() {
    let bench = allowed();
    let with_ledger = ["--ledger", "calls.jsonl"];
    for (flags, code, expected) in [
        (vec![], 0, json!(["completed", 1, 0])),
        (
            vec!["--deny", "ticketing_list*"],
            3,
            json!(["denied", 1, 1]),
        ),
    ] {
        let call = ["call", "ticketing_listIssues", "{}"];
        let ran = bench.callgate(&[&call[..], &with_ledger[..], &flags[..]].concat());
        assert_eq!(ran.code, code, "{ran:#?}");
        let lines = bench.ledger_lines();
        let last = lines.last().expect("a line");
        assert_eq!(members(last, ["status", "calls", "denied"]), expected);
        assert!(lines.iter().all(|line| line.get("script").is_none()));
    }
}

#[test]
fn verify_finds_changed_and_cut_ledgers() {
    let bench = allowed();
    let run = || {
        let flags = ["--ledger", "calls.jsonl"];
        let ran = bench.run("await ticketing_listIssues()", &flags);
        assert_eq!(ran.code, 0, "{ran:#?}");
    };
    let verify = |flags: &[&str]| {
        let ran = bench.callgate(&[&["ledger", "verify", "calls.jsonl"], flags].concat());
        (ran.code, ran.stdout)
    };
    run();
    run();
    let file = bench.path().join("calls.jsonl");
    let text = fs::read_to_string(&file).expect("a ledger");
    let heads = bench.callgate(&["ledger", "heads", "calls.jsonl"]);
    assert_eq!((heads.code, heads.stdout.lines().count()), (0, 1));
    bench.write("heads.jsonl", &heads.stdout);
    let with_heads = ["--heads", "heads.jsonl"];
    let whole = "files: 1, lines: 8, runs: 2, findings: 0, warnings: 0\n";
    assert_eq!(verify(&[]), (0, whole.to_owned()));
    assert_eq!(verify(&with_heads).0, 0);

    let change = |changed: String| fs::write(&file, changed).expect("written");
    change(text.replacen("listIssues", "listissues", 1));
    let (code, said) = verify(&[]);
    assert_eq!(code, 1);
    let found = "line 3 does not follow calls.jsonl:2: one of the two was changed";
    assert!(said.starts_with("calls.jsonl:3: run \"r-"), "{said}");
    assert!(said.contains(found), "{said}");

    let (cut, _) = text.trim_end().rsplit_once('\n').expect("lines");
    change(format!("{cut}\n"));
    let (code, said) = verify(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("calls.jsonl:7: warning: run"), "{said}");
    let (code, said) = verify(&with_heads);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("lines up to 8 are missing"), "{said}");

    // The file was rotated.
    change(text);
    fs::rename(&file, bench.path().join("calls.jsonl.1")).expect("renamed");
    run();
    let (code, said) = verify(&with_heads);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("files: 2, lines: 12, runs: 3,"), "{said}");

    let ran = bench.callgate(&["ledger", "verify", "nowhere.jsonl"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot open nowhere.jsonl"), "{ran:#?}");
    let ran = bench.callgate(&["ledger", "verify", "calls.jsonl", "--heads", "calls.jsonl"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("calls.jsonl:1 is no head"), "{ran:#?}");
}

#[test]
fn removed_ledger_differs_from_its_heads() {
    let bench = allowed();
    let run = || {
        let ran = bench.run("return 'noted'", &["--ledger", "calls.jsonl"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    };
    let verify = || {
        let command = "ledger verify calls.jsonl --heads heads.jsonl";
        bench.callgate(&command.split(' ').collect::<Vec<_>>())
    };
    run();
    let heads = bench.callgate(&["ledger", "heads", "calls.jsonl"]).stdout;
    bench.write("heads.jsonl", &heads);
    let file = bench.path().join("calls.jsonl");
    fs::remove_file(&file).expect("removed");
    run();
    let gone = "no file begins as \"calls.jsonl\" did";
    let ran = verify();
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.starts_with(gone), "{ran:#?}");

    // Rotation could have deleted the first file.
    fs::rename(&file, bench.path().join("calls.jsonl.1")).expect("renamed");
    run();
    let ran = verify();
    assert_eq!(ran.code, 0, "{ran:#?}");
    let warning = format!("warning: {gone}");
    assert!(ran.stdout.starts_with(&warning), "{ran:#?}");
}

/// Numbers that only look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// Changes a file in one place. Returns what was done.
fn damage(lines: &mut Vec<Vec<u8>>, numbers: &mut Numbers) -> String {
    let (at, other) = (numbers.below(lines.len()), numbers.below(lines.len()));
    let byte = numbers.below(lines[at].len());
    match numbers.below(6) {
        0 => {
            lines[at][byte] ^= 1 << numbers.below(7);
            format!("byte {byte} of line {at} is different")
        }
        1 => {
            lines.remove(at);
            format!("line {at} is removed")
        }
        2 => {
            lines.insert(other, lines[at].clone());
            format!("line {at} is there again as line {other}")
        }
        3 => {
            let other = if at == other {
                (at + 1) % lines.len()
            } else {
                other
            };
            lines.swap(at, other);
            format!("lines {at} and {other} are swapped")
        }
        4 => {
            let mut forged = lines[at].clone();
            forged[byte] ^= 1;
            lines.insert(other, forged);
            format!("a line like {at} is inserted as line {other}")
        }
        _ => {
            lines.truncate(at + 1);
            lines[at].truncate(byte);
            format!("the file is cut after byte {byte} of line {at}")
        }
    }
}

/// The number of findings, without warnings, in the text of a ledger.
fn findings(text: &[u8], heads: &[Head]) -> usize {
    let mut verifier = Verifier::new(heads.to_vec());
    verifier.begin_file("copy.jsonl");
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        verifier.line(line);
    }
    verifier.end_file();
    let (found, _) = verifier.finish();
    let findings = found.iter().filter(|it| !it.fault.is_warning());
    findings.count()
}

#[test]
fn each_of_200_changes_is_found_with_heads() {
    let bench = allowed();
    for (script, code) in [
        (
            "await ticketing_listIssues(); await ticketing_listIssues()",
            0,
        ),
        ("await ticketing_createIssue({ title: 'Roof' })", 0),
        ("throw new Error('early')", 1),
    ] {
        let ran = bench.run(script, &["--ledger", "calls.jsonl"]);
        assert_eq!(ran.code, code, "{ran:#?}");
    }
    let said = bench.callgate(&["ledger", "heads", "calls.jsonl"]).stdout;
    bench.write("heads.jsonl", &said);
    let heads = said.lines().map(serde_json::from_str);
    let heads: Vec<Head> = heads.collect::<Result<_, _>>().expect("heads");
    let whole = fs::read(bench.path().join("calls.jsonl")).expect("a ledger");
    assert_eq!((heads.len(), findings(&whole, &heads)), (1, 0));

    let lines = whole.split_inclusive(|byte| *byte == b'\n');
    let lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    let mut numbers = Numbers(49);
    for change in 0..200 {
        let mut lines = lines.clone();
        let done = damage(&mut lines, &mut numbers);
        let text = lines.concat();
        assert!(findings(&text, &heads) > 0, "{done}");
        if change % 25 == 0 {
            fs::write(bench.path().join("copy.jsonl"), text).expect("a copy");
            let command = "ledger verify copy.jsonl --heads heads.jsonl";
            let ran = bench.callgate(&command.split(' ').collect::<Vec<_>>());
            assert_eq!(ran.code, 1, "{done}: {ran:#?}");
        }
    }
}

/// Makes calls until it is killed. Each tells which calls had been answered by then.
const LOOP: &str = "let answered: string[] = [];
const note = async (i: number) => {
  const id = `${new Date().getTime()}.${Math.random()}.${i}`;
  await effects_note({ id, answered });
  return id;
};
for (let i = 0; ; i++)
  answered = await Promise.all(Array.from({ length: 1 + i % 4 }, (_, j) => note(j)));";

/// A line that was cut off.
const TORN: &str = r#"{"v":1,"event":"before","run":"torn"#;

/// Each call that reached the server has a line before it, and each answered call has a line after
/// it.
#[test]
fn file_size_limit_is_a_named_ledger_error() {
    for limit in ["2", "6"] {
        let bench = Workbench::with_config(json!({
            "mcpServers": { "ticketing": demo_ticketing() },
            "permissions": { "allow": ["ticketing_*"] },
            "check": { "mode": "off" },
        }));
        let script = "for (let i = 0; i < 50; i++) await ticketing_listIssues();";
        bench.write("many.ts", script);
        let run = bench.command(&["run", "many.ts", "--ledger", "calls.jsonl"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -f {limit}; exec \"$@\""), "sh"]);
        shell.arg(run.get_program()).args(run.get_args());
        shell.current_dir(bench.path()).stdin(Stdio::null());
        for (name, value) in run.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let ran: Ran = shell.output().expect("start a shell").into();
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        assert!(printed.contains("ulimit -f"), "{ran:#?}");
        let warnings = printed.matches("events of a run are missing").count();
        assert!(warnings <= 1 && !printed.contains(" ERROR "), "{ran:#?}");
        assert_eq!(ran.code, 1, "{ran:#?}");
    }
}

#[test]
fn killed_process_loses_no_ledger_line() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "effects": {
            "command": binary("callgate-odd-server"), "args": ["effects"],
            "env": { "EFFECTS": "effects" }, "cwd": ".",
        } },
        "permissions": { "allow": ["*"] },
        "ledger": { "path": "calls.jsonl", "bodies": true },
        "check": { "mode": "off" },
    }));
    bench.write("loop.ts", LOOP);
    let (ledger, effects) = (
        bench.path().join("calls.jsonl"),
        bench.path().join("effects"),
    );
    let kills = [1, 2, 3, 5, 8, 13, 21, 34];
    for more in kills {
        let before = lines_of(&effects);
        let mut command = bench.command(&["run", "loop.ts"]);
        let mut program = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("callgate starts");
        while lines_of(&effects) < before + more {
            std::thread::yield_now();
        }
        program.kill().expect("it runs");
        let ended = program.wait().expect("it ends");
        assert_eq!(ended.signal(), Some(libc::SIGKILL), "{ended}");
        let file = File::options().append(true).open(&ledger);
        let torn = file.expect("a ledger").write_all(TORN.as_bytes());
        torn.expect("a part of a line");
    }

    let text = fs::read_to_string(&ledger).expect("a ledger");
    let mut records: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let torn = text.lines().count() - records.len();
    records.retain(|record| record.get("call").is_some());
    let mut calls = HashMap::new();
    for record in &records {
        let call = (record["run"].as_str(), record["call"].as_u64());
        let (before, after) = calls.entry(call).or_insert((None, None));
        match record["event"].as_str() {
            Some("before") => *before = record["arguments"]["text"].as_str(),
            _ => *after = record["outcome"].as_str(),
        }
    }
    let ran = bench.callgate(&["ledger", "verify", "calls.jsonl"]);
    let ends = ["the line is torn", "has no end"];
    let mut findings = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("calls.jsonl:"));
    assert!(
        findings.all(|line| ends.iter().any(|end| line.contains(end))),
        "{ran:#?}"
    );
    assert!(ran.stdout.matches(ends[0]).count() >= torn, "{ran:#?}");
    // A kill may additionally truncate one line.
    assert!((kills.len()..=2 * kills.len()).contains(&torn), "{torn}");
    let mut by_id = HashMap::new();
    let mut answered = Vec::new();
    for (before, after) in calls.into_values() {
        let arguments: Value = serde_json::from_str(before.expect("a line before")).expect("JSON");
        let ids = arguments["answered"].as_array().expect("a list");
        answered.extend(ids.iter().filter_map(Value::as_str).map(str::to_owned));
        by_id.insert(arguments["id"].as_str().expect("an id").to_owned(), after);
    }
    let effects = fs::read_to_string(effects).expect("the server's own file");
    let made: Vec<&str> = effects
        .lines()
        .filter_map(|line| line.strip_prefix("done "))
        .collect();
    assert!(made.len() >= kills.len() && !answered.is_empty());
    for id in made {
        assert!(by_id.contains_key(id), "no line before {id}");
    }
    for id in &answered {
        assert_eq!(by_id[id], Some("ok"), "no line after {id}");
    }
}

fn lines_of(path: &Path) -> usize {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

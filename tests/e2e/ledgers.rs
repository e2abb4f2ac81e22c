//! What the file of a ledger says of calls that were not sent, and what comes into it of
//! processes that were killed.

use callgate_tests::{Workbench, fixture};
use expect_test::expect;
use serde_json::{Value, json};

#[test]
fn a_call_that_is_not_sent_has_its_rule() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
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
    let flags = [
        "--ledger",
        "calls.jsonl",
        "--dry-run",
        "--recorded",
        "results.json",
    ];
    let ran = bench.run("await ticketing_createIssue({ title: 'b' })", &flags);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ledger = std::fs::read_to_string(bench.path().join("calls.jsonl")).expect("a ledger");
    let lines = ledger.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
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

/// What a process that was killed left, as it would be: one line, and an older one that the ledger
/// had taken.
fn left(older: &str, line: &str) -> Vec<u8> {
    let [start, end] = [64 + older.len(), 64 + older.len() + line.len()].map(|at| at as u64);
    let mut left = b"callgate wal 1\n\0".to_vec();
    left.extend((start << 32 | end).to_ne_bytes());
    left.resize(64, 0);
    left.extend(older.bytes().chain(line.bytes()));
    left.resize(128 << 10, 0);
    left
}

#[test]
fn what_a_killed_process_left_comes_into_the_ledger_when_it_is_asked_for() {
    let bench = Workbench::with_config(json!({}));
    let lines = ["before", "after"].map(|event| format!("{{\"v\":1,\"event\":\"{event}\"}}\n"));
    let [older, line] = &lines;
    bench.write("calls.jsonl", older);
    let wal = bench.path().join("calls.jsonl.wal-1");
    std::fs::write(&wal, left(older, line)).expect("written");
    let recover = || bench.callgate(&["recover", "calls.jsonl"]);

    let ran = recover();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:#?}");
    assert_eq!(ran.stderr, "1 line came into calls.jsonl\n");
    let ledger = std::fs::read_to_string(bench.path().join("calls.jsonl")).expect("a ledger");
    assert_eq!(ledger, lines.concat());
    assert!(!wal.exists());

    bench.write("calls.jsonl.wal-2", "something else");
    let ran = recover();
    assert_eq!(ran.code, 1, "{ran:#?}");
    expect![[r#"
        callgate: calls.jsonl.wal-2: stays beside the ledger: it is too short
        no line came into calls.jsonl
    "#]]
    .assert_eq(&ran.stderr);

    let ran = bench.callgate(&["recover", "other.jsonl"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    expect![[r#"
        callgate: ledger other.jsonl: cannot be opened: No such file or directory (os error 2)
    "#]]
    .assert_eq(&ran.stderr);
    assert!(!bench.path().join("other.jsonl").exists());
}

/// Any command that opens the ledger takes them, too, and leaves nothing of its own.
#[test]
fn what_a_killed_process_left_comes_into_the_ledger_before_what_follows() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["*"] },
        "ledger": { "path": "calls.jsonl" },
        "check": { "mode": "off" },
    }));
    let line = "{\"v\":1,\"event\":\"before\",\"call\":7}\n";
    std::fs::write(bench.path().join("calls.jsonl.wal-1"), left("", line)).expect("written");
    let ran = bench.run("await ticketing_listIssues()", &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ran = bench.callgate(&["call", "ticketing_listIssues"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ledger = std::fs::read_to_string(bench.path().join("calls.jsonl")).expect("a ledger");
    let lines = ledger.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        format!("{} {}\n", line["event"], line["call"])
    });
    expect![[r#"
        "before" 7
        "before" 1
        "after" 1
        "before" 1
        "after" 1
    "#]]
    .assert_eq(&lines.collect::<String>());
    let files = std::fs::read_dir(bench.path()).expect("a folder").flatten();
    let beside = files.filter(|file| file.file_name().to_string_lossy().contains(".wal-"));
    assert_eq!(beside.count(), 0);
}

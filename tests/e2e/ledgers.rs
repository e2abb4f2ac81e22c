//! What the file of a ledger says of calls that were not sent.

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

//! Dry runs: the calls that are made, the answers in place of other calls, and the report.

use callgate_tests::{Workbench, demo_ticketing, odd};
use expect_test::expect;
use serde_json::{Value, json};

fn bench(trusted: bool) -> Workbench {
    let mut ticketing = demo_ticketing();
    ticketing["trusted"] = json!(trusted);
    Workbench::with_config(json!({ "mcpServers": { "ticketing": ticketing } }))
}

const SCRIPT: &str = "const { issues } = await ticketing_listIssues({});
console.log(issues.length, 'issues');
const made = await ticketing_createIssue({ title: 'one' });
console.log('made', made.issueId);";

#[test]
fn dry_run_continues_with_made_up_results() {
    let bench = bench(true);
    let ran = bench.run(SCRIPT, &["--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.stdout, "0 issues\nmade \n");
    expect![[r#"
        dry run: 1 call was not made
          2 ticketing_createIssue (line 3) {"title":"one"}: needs approval: no rule matches; answered with a made-up result
        note: made-up results are not real values; with real ones, a run may differ
    "#]].assert_eq(&ran.stderr);
    // The dry run created no issue.
    let ran = bench.run(SCRIPT, &["--yes"]);
    assert!(ran.stdout.starts_with("0 issues\n"), "{ran:#?}");
}

#[test]
fn dry_run_stops_where_no_result_fits() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    // Of `puzzles`, the `outputSchema` cannot be read; `text` has none.
    let script = "const { n } = await odd_counts({});
const text = await odd_text({ text: 'x' });
console.log(n + 1, JSON.stringify(text));
await odd_puzzles({ value: 1 });
console.log('after');";
    let ran = bench.run(script, &["--dry-run"]);
    assert_eq!((ran.code, &*ran.stdout), (0, "1 \"\"\n"), "{ran:#?}");
    for phrase in [
        "error: McpDryRunError: odd_puzzles was not called: this is a dry run",
        "dry run: 3 calls were not made",
        "; answered with an error\n",
    ] {
        assert!(ran.stderr.contains(phrase), "{phrase}: {ran:#?}");
    }
    // A single call prints no made-up result.
    let ran = bench.callgate(&["call", "odd_counts", "{}", "--dry-run"]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""), "{ran:#?}");
}

#[test]
fn recorded_result_lets_dry_run_continue() {
    let bench = bench(true);
    let recorded = json!({ "ticketing_createIssue": { "issueId": "T-1", "title": "one" } });
    let file = bench.write("recorded.json", &recorded.to_string());
    let file = file.to_str().expect("a path");
    let report = bench.report(SCRIPT, &["--dry-run", "--recorded", file]);
    assert_eq!(report["status"], "completed", "{report:#}");
    assert_eq!(
        report["output"]["text"], "0 issues\nmade T-1\n",
        "{report:#}"
    );
    expect![[r#"
        [
          {
            "ordinal": 2,
            "function": "ticketing_createIssue",
            "server": "ticketing",
            "tool": "createIssue",
            "line": 3,
            "arguments": {
              "title": "one"
            },
            "argumentBytes": 15,
            "decision": "needs approval: no rule matches",
            "recorded": true,
            "madeUp": false
          }
        ]"#]]
    .assert_eq(&format!("{:#}", report["dryRun"]));
    let outcomes = report["calls"].as_array().expect("calls").iter();
    let outcomes: Vec<&Value> = outcomes.map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["ok", "recorded"]);
}

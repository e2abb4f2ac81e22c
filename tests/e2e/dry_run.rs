//! Dry runs: the calls that are made, the answers in place of other calls, and the report.

use callgate_tests::{Workbench, demo_ticketing};
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
fn dry_run_ends_at_first_withheld_call() {
    let bench = bench(true);
    let ran = bench.run(SCRIPT, &["--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.stdout, "0 issues\n");
    expect![[r#"
        error: McpDryRunError: ticketing_createIssue was not called: this is a dry run, and it is not known to read only (needs approval: no rule matches)
          --> stdin.ts:3:20
          3 | const made = await ticketing_createIssue({ title: 'one' });
            |                    ^
        calls: 2
          ticketing_listIssues: 1 ok
          ticketing_createIssue: 1 not made
        dry run: 1 call was not made
          2 ticketing_createIssue (line 3) {"title":"one"}: needs approval: no rule matches; answered with an error
    "#]].assert_eq(&ran.stderr);
    // The dry run created no issue.
    let ran = bench.run(SCRIPT, &["--yes"]);
    assert!(ran.stdout.starts_with("0 issues\n"), "{ran:#?}");
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
            "recorded": true
          }
        ]"#]]
    .assert_eq(&format!("{:#}", report["dryRun"]));
    let outcomes = report["calls"].as_array().expect("calls").iter();
    let outcomes: Vec<&Value> = outcomes.map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["ok", "recorded"]);
}

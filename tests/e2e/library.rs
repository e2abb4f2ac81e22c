//! The library's example program does what its documentation says.

use std::process::Command;

use callgate::{Gate, RunReport, RunRequest, Status};
use callgate_tests::{Ran, Workbench, binary};
use serde_json::json;

#[test]
fn the_example_program_runs_a_script() {
    // Nothing lies beside an example; a project has its TypeScript in `node_modules`.
    let project = Workbench::empty();
    project.bring_typescript();
    let output = Command::new(binary("examples/embed"))
        .env("CALLGATE_DEMO_LOGGING", binary("callgate-demo-logging"))
        .current_dir(project.path())
        .output()
        .expect("start the example");
    let ran = Ran::from(output);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
    assert_eq!(
        ran.stdout,
        "completed after 1 call\n12 different errors in the past hour\n"
    );
}

/// Runs a recipe of the crate's documentation; gives what it printed.
fn recipe(name: &str) -> String {
    let output = Command::new(binary("examples/recipes"))
        .arg(name)
        .env("CALLGATE_DEMO_TICKETING", binary("callgate-demo-ticketing"))
        .env("CALLGATE_WORKER", binary("callgate-worker"))
        .output()
        .expect("start the recipe");
    let ran = Ran::from(output);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{name}: {ran:#?}");
    ran.stdout
}

#[test]
fn recipes_print_the_documented_output() {
    let check = |name: &str, expected: &str| assert_eq!(recipe(name), expected, "{name}");
    check("rules", "denied\n");
    check(
        "asker",
        "ticketing_createIssue {\"title\":\"x\"}\ncompleted\n",
    );
    check("reviewer", "denied\n");
    check(
        "events",
        "ticketing_createIssue …\nticketing_createIssue: Ok\ndone\n",
    );
    check("cancellation", "cancelled\n");
    check("ledger_sink", "ticketing_createIssue: sent true\n");
    for (name, phrase) in [
        ("call", "\"issueId\""),
        ("dry_run", "ticketing_createIssue: "),
        ("search", "declare function ticketing_createIssue"),
    ] {
        let printed = recipe(name);
        assert!(printed.contains(phrase), "{name}: {printed}");
    }
}

/// The report of a script that cannot run is an error that `?` passes on.
#[tokio::test]
async fn preview_error_converts_to_boxed_error() {
    async fn preview(script: &str) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
        let gate = Gate::builder().worker_binary(binary("callgate-worker"));
        let gate = gate.build().await?;
        Ok(gate.preview(RunRequest::new(script)).await?.tools.len())
    }
    assert_eq!(preview("return 1").await.expect("a script"), 0);
    let error = preview("let 1").await.expect_err("no script");
    let said = error.to_string();
    assert!(said.starts_with("error: "), "{said}");
    assert!(said.contains("--> script.ts:1:1"), "{said}");
}

#[tokio::test]
async fn run_request_gives_arguments_and_standard_input() {
    let gate = Gate::builder().worker_binary(binary("callgate-worker"));
    let gate = gate.build().await.expect("a gate");
    let script = "return [...mcp.args, mcp.stdin]";
    let report = gate.run(script).await;
    let value = |report: &RunReport| serde_json::to_value(report).expect("JSON")["value"].clone();
    assert_eq!(value(&report)["json"], json!([""]));
    let request = RunRequest::new(script).stdin("é\n\0");
    let words = vec!["--x".to_owned(), String::new()];
    let report = gate.run(request.clone().args(words)).await;
    assert_eq!(value(&report)["json"], json!(["--x", "", "é\n\0"]));
    for (request, limit) in [
        (request.clone().args(vec![String::new(); 10_001]), 10_000),
        (request.clone().args(vec!["x".repeat(700_000); 2]), 1 << 20),
        (request.stdin("x".repeat((16 << 20) + 1)), 16 << 20),
    ] {
        let report = gate.run(request).await;
        assert_eq!(report.status, Status::Limit, "{report}");
        let error = report.error.expect("an error");
        assert!(error.message.contains("nothing was run"), "{error:?}");
        assert_eq!(error.limit.map(|hit| hit.limit), Some(limit));
    }
}

//! Names that no tool has: the nearest that one has, for the first few names of a run,
//! and never one that the run may not use.

use callgate::{Gate, RunRequest, Status};
use expect_test::expect;
use serde_json::{Value, json};

use crate::meaning::builder;

/// `details` gives what stands beside an unknown name, `called` what a call of it is
/// told.
const ASK: &str = "
    const details = async (...names) =>
        (await mcp.getToolDetails(names)).unknown.map((unknown) => unknown.near);
    const called = (name) => mcp.callTool(name, {}).catch((error) => error.message);
";

async fn asked(gate: &Gate, request: RunRequest) -> Value {
    let report = gate.run(request).await;
    assert_eq!(report.status, Status::Completed, "{report}");
    let report = serde_json::to_value(&report).expect("JSON");
    report["value"]["json"].clone()
}

#[tokio::test]
async fn no_tool_is_named_that_the_run_may_not_use() {
    let gate = builder().build().await.expect("a gate");
    let script = format!(
        "{ASK}
        const names = ['ticketing_createIssu', 'createIssue', 'logging_getLog'];
        return [await details(...names), await called(names[0]), await called(names[2])];"
    );
    let of = |servers: &[&str], script: String| {
        let servers = servers.iter().map(|server| (*server).to_owned());
        RunRequest::new(script).servers(servers.collect())
    };
    assert_eq!(
        asked(&gate, of(&["logging"], script.clone())).await,
        json!([
            [null, null, "logging_getLogs"],
            "no tool is named \"ticketing_createIssu\"",
            "no tool is named \"logging_getLog\"; did you mean \"logging_getLogs\"?",
        ])
    );
    assert_eq!(
        asked(&gate, of(&["logging", "ticketing"], script)).await,
        json!([
            [
                "ticketing_createIssue",
                "ticketing_createIssue",
                "logging_getLogs"
            ],
            "no tool is named \"ticketing_createIssu\"; did you mean \"ticketing_createIssue\"?",
            "no tool is named \"logging_getLog\"; did you mean \"logging_getLogs\"?",
        ])
    );
    // Nor is it where a name is not defined.
    let undefined = |servers: &[&str]| of(servers, "await ticketing_createIssu({})".to_owned());
    let hint = async |servers: &[&str]| {
        let report = gate.run(undefined(servers)).await;
        report.error.expect("it throws").hint.unwrap_or_default()
    };
    expect![""].assert_eq(&hint(&["logging"]).await);
    expect![[r#"no tool is named "ticketing_createIssu"; did you mean "ticketing_createIssue"?"#]]
        .assert_eq(&hint(&["ticketing"]).await);
    gate.shutdown().await;
}

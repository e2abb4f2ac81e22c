//! The demo's script over the demo's servers.

use callgate_tests::Workbench;

#[test]
fn demo_script_files_one_ticket_per_error() {
    let script = include_str!("../../fixtures/scripts/file-tickets.ts");
    let bench = Workbench::demo();
    let report = bench.report(script, &[]);
    assert_eq!(report["status"], "completed", "{report:#}");
    let calls = report["calls"].as_array().expect("calls");
    let tickets = calls
        .iter()
        .filter(|call| call["function"] == "ticketing_createIssue")
        .count();
    assert_eq!(calls[0]["function"], "logging_getLogs");
    assert!(tickets > 1, "{report:#}");
    let stayed: u64 = calls
        .iter()
        .filter_map(|call| call["resultBytes"].as_u64())
        .sum();
    let returned = report["output"]["bytes"].as_u64().expect("bytes");
    assert!(
        stayed > 100 * returned,
        "{stayed} bytes stayed, {returned} came back"
    );
    let output = report["output"]["text"].as_str().expect("text");
    assert_eq!(output.lines().count(), 1, "{output}");
    assert!(output.contains(&tickets.to_string()), "{output}");
}

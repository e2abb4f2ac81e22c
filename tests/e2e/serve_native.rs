//! Servers' own tools, passed through by `callgate serve`: as they are, and by
//! the same gate as a script's calls.

use callgate_tests::{Workbench, odd};
use serde_json::json;

use crate::serve_client::{ERAS, User, connect, shown};

const NATIVE: [&str; 2] = ["--mode", "native"];

#[tokio::test]
async fn definitions_are_the_servers_own() {
    let bench = Workbench::new(json!({ "records": odd("many") }));
    for version in &ERAS {
        let session = connect(&bench, User::new(version, &[]), &NATIVE).await;
        let tools = session.tools().await;
        assert_eq!(tools.len(), 40);
        let tool = serde_json::to_value(&tools[7]).expect("JSON");
        assert_eq!(tool["name"], "records_search_records_7");
        assert_eq!(tool["title"], "Search records 7");
        // The configuration does not trust the server, so its annotations are left out.
        assert_eq!(tool.get("annotations"), None);
        assert_eq!(tool["_meta"], json!({ "example.com/kind": "records" }));
        assert_eq!(tool["inputSchema"]["required"], json!(["query", "project"]));
        assert_eq!(tool["outputSchema"]["required"], json!(["records"]));
    }
}

/// A call that needs approval is put to the client's user.
#[tokio::test]
async fn calls_are_asked_about() {
    let bench = Workbench::asking();
    let issue = || json!({ "title": "A", "body": "B" });
    for version in &ERAS {
        let user = User::new(version, &["once", "deny"]);
        let session = connect(
            &bench,
            user,
            &["--mode", "native", "--ledger", "calls.jsonl"],
        )
        .await;
        let called = session.call("ticketing_createIssue", issue()).await;
        assert_ne!(called.is_error, Some(true), "{version}: {called:?}");
        assert!(called.structured_content.is_some(), "{called:?}");
        let denied = session.call("ticketing_createIssue", issue()).await;
        let (is_error, said) = shown(&denied);
        assert!(is_error && said.contains("denied"), "{version}: {said}");
        assert_eq!(session.asked().len(), 2, "{version}");
    }
    let ledger = bench.ledger();
    let calls = ledger
        .iter()
        .filter(|line| line["function"] == "ticketing_createIssue");
    assert!(calls.count() >= 4, "{ledger:?}");
}

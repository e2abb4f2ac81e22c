//! Servers that come back, lists that change, folders, and progress, while
//! scripts run.

use std::sync::Arc;

use callgate::{Gate, Rules, SearchRequest, ServerSpec, Status};
use callgate_tests::{Workbench, binary, node};
use serde_json::json;

/// A tool added in one run has a name, a stub, a declaration and search hits in the next one.
#[tokio::test(flavor = "multi_thread")]
async fn added_tool_is_available_in_later_runs() {
    let server = ServerSpec::stdio("odd", binary("callgate-odd-server"), ["changes"]);
    let gate = Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .server(server)
        .rules(Rules::builder().allow("*").build().expect("a pattern"))
        .build()
        .await
        .expect("a gate");
    let gate = Arc::new(gate);
    let added = gate.run("await odd_add({ name: 'fresh' })").await;
    assert_eq!(added.status, Status::Completed, "{added}");
    let called = gate.run("return await odd_fresh({})").await;
    assert_eq!(called.status, Status::Completed, "{called}");
    assert!(gate.view().has_tool("odd_fresh"));
    let declared = gate.declarations(callgate::settings::Detail::Signature, |name| {
        name == "odd_fresh"
    });
    assert!(declared.contains("odd_fresh"), "{declared}");
    let request = SearchRequest::new("fresh");
    let found = async || {
        let found = gate.search(&request).await.expect("a search");
        found
            .hits
            .into_iter()
            .map(|hit| hit.function)
            .collect::<Vec<_>>()
    };
    assert_eq!(found().await, ["odd_fresh"]);
    let removed = gate.run("await odd_remove({ name: 'fresh' })").await;
    assert_eq!(removed.status, Status::Completed, "{removed}");
    // A run waits for lists only if a name in it is unknown; a search waits for them always.
    assert!(found().await.is_empty());
    let gone = gate.run("return await odd_fresh({})").await;
    assert_eq!(gone.status, Status::Failed, "{gone}");
    gate.shutdown().await;
}

#[test]
fn the_filesystem_server_works_in_the_configured_folders() {
    let folder = tempfile::TempDir::with_prefix("callgate-root-").expect("a folder");
    let path = folder.path().canonicalize().expect("a real path");
    let elsewhere = tempfile::TempDir::with_prefix("callgate-else-").expect("a folder");
    let fs = node("server-filesystem", &[&elsewhere.path().to_string_lossy()]);
    let bench = Workbench::with_config(json!({
        "mcpServers": { "fs": fs },
        "permissions": { "allow": ["*"] },
        "roots": [path],
    }));
    // The server asks for the folders after it has started; the answer counts
    // from then on.
    let ran = bench.run(
        "for (;;) {
           const allowed = String(JSON.stringify(await fs_list_allowed_directories({})));
           if (allowed.includes('callgate-root-')) return 'allowed';
         }",
        &[],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "allowed\n"),
        "{ran:#?}"
    );
}

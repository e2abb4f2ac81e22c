//! Connections that take no more calls, and processes that outlive theirs.

use std::path::Path;
use std::time::Duration;

use callgate_servers::{Phase, ServerSpec, Transport};
use serde_json::{Value, json};

use crate::support::{call, fixture, in_time, one, phase, until};

/// A line of a shell that answers a request.
fn answer(id: u32, result: &Value) -> String {
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    format!("echo '{answer}';")
}

/// A server whose first process runs `listing` when it gets `tools/list`, and then never ends. Later
/// processes are the odd server `changes`.
fn first(folder: &Path, listing: &str) -> ServerSpec {
    let greeting = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } });
    let script = format!(
        "if mkdir first 2>/dev/null; then \
           echo $$ > first/pid; read -r initialize; {} read -r initialized; read -r list; \
           {listing} exec tail -f /dev/null; \
         fi; exec \"$0\" changes",
        answer(0, &greeting),
    );
    let server = fixture("callgate-odd-server");
    let mut spec = ServerSpec::stdio("changes", "sh", ["-c", &script, &server]);
    spec.era = "2025-11-25".parse().expect("a revision");
    if let Transport::Stdio(stdio) = &mut spec.transport {
        stdio.cwd = Some(folder.to_owned());
    }
    spec
}

fn tool(name: &str) -> Value {
    json!({ "tools": [{ "name": name, "inputSchema": { "type": "object" } }] })
}

/// Waits until a process has ended. Before its parent waits for it, it is a zombie.
async fn gone(pid: &str) {
    let stat = format!("/proc/{}/stat", pid.trim());
    in_time(async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The first process goes on, and no longer reads.
#[tokio::test(flavor = "multi_thread")]
async fn unsent_call_uses_the_next_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "exec 0<&-; {} exec 3>&1 >/dev/null;",
        answer(1, &tool("pid"))
    );
    let servers = one(first(folder.path(), &script)).await;
    let pid = std::fs::read_to_string(folder.path().join("first/pid")).expect("it was started");
    let next = call(&servers, "changes", "pid", json!({})).await;
    assert!(next.parse::<u32>().is_ok() && next != pid.trim(), "{next}");
    gone(&pid).await;
    in_time(servers.shut_down()).await;
}

/// The first process still brings the answer to the call that it works on.
#[tokio::test(flavor = "multi_thread")]
async fn unsent_call_does_not_end_other_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = json!({ "content": [{ "type": "text", "text": "done" }] });
    let script = format!(
        "{} read -r call; mkfifo first/ends; exec 0<&-; mkdir first/works; cat first/ends; {}",
        answer(1, &tool("pid")),
        answer(2, &done),
    );
    let mut spec = first(folder.path(), &script);
    spec.call_timeout = Duration::from_secs(20);
    let servers = one(spec).await;
    let working = {
        let servers = servers.clone();
        tokio::spawn(async move { call(&servers, "changes", "pid", json!({})).await })
    };
    in_time(async {
        while !folder.path().join("first/works").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut next = std::pin::pin!(call(&servers, "changes", "pid", json!({})));
    let early = tokio::time::timeout(Duration::from_secs(1), next.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    std::fs::write(folder.path().join("first/ends"), "").expect("it works on it");
    assert_eq!(in_time(working).await.expect("no panic"), "done");
    let next = in_time(next).await;
    assert!(next.parse::<u32>().is_ok(), "{next}");
    in_time(servers.shut_down()).await;
}

/// A process that left the group of the server holds its output open.
#[tokio::test(flavor = "multi_thread")]
async fn server_exit_is_detected_despite_escaped_child() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "{} read -r call; \
         setsid sh -c 'echo $$ > first/left; exec tail -f /dev/null' & \
         while [ ! -s first/left ]; do :; done; exit 3;",
        answer(1, &tool("pid")),
    );
    let servers = one(first(folder.path(), &script)).await;
    let said = call(&servers, "changes", "pid", json!({})).await;
    assert_eq!(
        said,
        "the server ended with exit code 3 during the call [sent: true]"
    );
    until(&servers, |servers| phase(servers) == Phase::Up).await;
    let left = std::fs::read_to_string(folder.path().join("first/left")).expect("a process id");
    let killed = std::process::Command::new("kill").arg(left.trim()).status();
    assert!(killed.expect("kill runs").success());
    in_time(servers.shut_down()).await;
}

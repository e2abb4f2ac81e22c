//! Child processes: what they see, and that they end.

use std::path::Path;

use callgate_gate::Servers;
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{call, in_time, odd, odd_with_env, one, program, states};

#[tokio::test]
async fn a_server_sees_its_own_environment_only() {
    // Cargo puts dozens of variables into a test's environment; none may show.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let (broker, run, server) = one(odd_with_env("env", &[("TOKEN", "t"), ("EMPTY", "")])).await;
    let seen = in_time(call(&run, &server, "env", json!({}))).await;
    let mut seen: serde_json::Map<String, Value> = serde_json::from_str(&seen).expect("JSON");
    for inherited in ["HOME", "PATH"] {
        let value = seen.remove(inherited).unwrap_or_default();
        assert_eq!(value.as_str(), std::env::var(inherited).ok().as_deref());
    }
    seen.sort_keys();
    expect![[r#"{"EMPTY":"","TOKEN":"t"}"#]].assert_eq(&Value::Object(seen).to_string());
    broker.shut_down().await;
}

#[tokio::test]
async fn path_and_home_can_be_given() {
    let (broker, run, server) = one(odd_with_env(
        "env",
        &[("PATH", "/nowhere"), ("HOME", "/tmp")],
    ))
    .await;
    expect![[r#"{"HOME":"/tmp","PATH":"/nowhere"}"#]]
        .assert_eq(&in_time(call(&run, &server, "env", json!({}))).await);
    broker.shut_down().await;
}

/// Starts a server that ignores the end of its input and has a child.
async fn lingering() -> (Servers, [u64; 2]) {
    let (broker, run, server) = one(odd("lingers")).await;
    let pids = in_time(call(&run, &server, "pids", json!({}))).await;
    let pids: Value = serde_json::from_str(&pids).expect("JSON");
    let pids = ["server", "child"].map(|who| pids[who].as_u64().expect("a process id"));
    for pid in pids {
        assert!(is_alive(pid));
    }
    (broker, pids)
}

fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    // A zombie is dead; only its parent has not looked yet.
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    })
}

async fn both_gone(pids: [u64; 2]) {
    in_time(async {
        while pids.into_iter().any(is_alive) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn shutdown_ends_the_whole_group() {
    let (broker, pids) = lingering().await;
    in_time(broker.shut_down()).await;
    both_gone(pids).await;
}

#[tokio::test]
async fn dropping_the_broker_ends_the_whole_group() {
    let (broker, pids) = lingering().await;
    drop(broker);
    both_gone(pids).await;
}

/// A child that it leaves would hold its output open, and go on for nobody.
#[tokio::test]
async fn a_server_that_ends_takes_its_group_along() {
    let (broker, pids) = lingering().await;
    let server = libc::pid_t::try_from(pids[0]).expect("a process id");
    // SAFETY: kill takes two numbers; the process is one that this test started.
    assert_eq!(unsafe { libc::kill(server, libc::SIGKILL) }, 0);
    both_gone(pids).await;
    in_time(broker.shut_down()).await;
}

/// What left the group is no longer the server's, and holds its streams open: the
/// server's end is heard of all the same.
#[tokio::test]
async fn a_server_ends_whatever_left_its_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    // The server is started more than once, and leaves one behind, which does not end when
    // nobody reads.
    let script = format!(
        "[ -s {0} ] || setsid sh -c 'echo $$ > {0}; \
         exec 3>&1 4>&2 >/dev/null 2>&1; exec tail -f /dev/null' & \
         while [ ! -s {0} ]; do :; done; echo no database >&2; exit 3",
        pid.display()
    );
    let broker = in_time(Servers::connect(
        vec![program("leaves", "sh", &["-c", &script])],
        |_| {},
    ))
    .await;
    expect![[r#"
        server `leaves` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
          no database
    "#]]
    .assert_eq(&states(&broker));
    in_time(broker.shut_down()).await;
    end_left(&pid).await;
}

/// Ends what a server left behind, whose id is in this file.
async fn end_left(pid: &Path) {
    let left = std::fs::read_to_string(pid).expect("it was started");
    let left: u64 = left.trim().parse().expect("a process id");
    assert!(is_alive(left), "it is nobody's to end");
    let kill = std::process::Command::new("kill")
        .args(["-9", &left.to_string()])
        .status();
    assert!(kill.expect("kill").success());
    both_gone([left, left]).await;
}

/// What it leaves behind holds its output open: the answers that it has given are taken, and
/// nobody waits for others.
#[tokio::test]
async fn a_call_ends_with_its_server_whatever_left_its_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let script = r#"
        answer() { echo '{"jsonrpc":"2.0","id":'"$1"',"result":'"$2"'}'; }
        server='"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}'
        while read -r request; do case "$request" in
        *'"initialize"'*) answer 0 '{"protocolVersion":"2025-11-25",'"$server"'}' ;;
        *'"tools/list"'*) answer 1 '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
        *'"id":3,'*)
            setsid sh -c 'echo $$ > "$0"; exec tail -f /dev/null' "$0" &
            while [ ! -s "$0" ]; do :; done
            answer 3 '{"content":[{"type":"text","text":"well"}]}'
            exit 3 ;;
        esac; done"#;
    let path = pid.to_str().expect("a UTF-8 path");
    let mut spec = program("leaves", "sh", &["-c", script, path]);
    spec.era = "2025-11-25".parse().expect("a revision");
    let (broker, run, server) = one(spec).await;
    let calls = [(); 2].map(|()| call(&run, &server, "t", json!({})));
    let mut said = in_time(futures::future::join_all(calls)).await;
    said.sort();
    expect![[r#"
        "well"
        Protocol { server: "leaves", function: "leaves_t", code: -32000, message: "the server ended with exit code 3 during the call", data: None, retryable: false }"#]]
    .assert_eq(&said.join("\n"));
    in_time(broker.shut_down()).await;
    end_left(&pid).await;
}

#[test]
fn a_runtime_that_ends_takes_its_servers_along() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (broker, pids) = runtime.block_on(lingering());
    drop(runtime);
    drop(broker);
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(both_gone(pids));
}

/// Set in the process that plays the host.
const HOST: &str = "CALLGATE_TEST_PLAYS_HOST";

#[test]
fn a_killed_host_takes_its_servers_along() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Some(path) = std::env::var_os(HOST) {
        let (_broker, pids) = runtime.block_on(lingering());
        std::fs::write(path, format!("{pids:?}")).expect("a file");
        loop {
            std::thread::park();
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pids");
    let mut host = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args([
            "--exact",
            "processes::a_killed_host_takes_its_servers_along",
        ])
        .env(HOST, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("a process");
    let [server, child] = runtime.block_on(in_time(async {
        loop {
            let pids = std::fs::read_to_string(&path).unwrap_or_default();
            if let Ok(pids) = serde_json::from_str::<[u64; 2]>(&pids) {
                break pids;
            }
            tokio::task::yield_now().await;
        }
    }));
    host.kill().expect("a signal");
    host.wait().expect("an exit");
    runtime.block_on(both_gone([server, server]));
    // What the server started itself is beyond the kernel's promise.
    let kill = std::process::Command::new("kill")
        .args(["-9", &child.to_string()])
        .status();
    kill.expect("kill");
}

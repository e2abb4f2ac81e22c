//! Servers that end, become idle, change and restart.

use std::time::{Duration, Instant};

use callgate_servers::{Connect, Phase, Remembered, Status};
use serde_json::json;

use crate::support::{call, in_time, odd, odd_with_env, one, phase, start, tools, until};

#[tokio::test]
async fn ended_server_is_restarted() {
    let servers = one(odd("changes")).await;
    let pid = || call(&servers, "changes", "pid", json!({}));
    let first = pid().await;
    let answer = call(&servers, "changes", "end", json!({})).await;
    assert!(
        answer.starts_with("the server ended with exit code 7 during the call"),
        "{answer}"
    );
    // A call waits for the next process.
    let second = pid().await;
    assert_ne!(first, second);
    assert!(second.parse::<u32>().is_ok(), "{second}");
    in_time(servers.shut_down()).await;
}

/// A call that may have been sent is not sent again.
#[tokio::test]
async fn possibly_sent_call_is_not_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("effects");
    let shown = path.to_str().expect("UTF-8");
    let servers = one(odd_with_env("effects", &[("EFFECTS", shown)])).await;
    for id in 0..5 {
        let arguments = json!({ "id": id.to_string(), "then": "die" });
        let answer = call(&servers, "effects", "note", arguments).await;
        assert!(answer.ends_with("[sent: true]"), "{answer}");
    }
    in_time(servers.shut_down()).await;
    let done = std::fs::read_to_string(&path).expect("the file");
    assert_eq!(done, "done 0\ndone 1\ndone 2\ndone 3\ndone 4\n");
}

#[tokio::test]
async fn lazy_server_stops_when_idle_and_restarts() {
    let servers = one(odd("changes")).await;
    let Status::Ready(list) = servers.list().next().expect("a server").status else {
        panic!("it is ready");
    };
    in_time(servers.shut_down()).await;

    let mut spec = odd("changes");
    spec.connect = Connect::Lazy;
    spec.idle = Some(Duration::from_millis(50));
    spec.remembered = Some(Remembered {
        list,
        age: Duration::ZERO,
    });
    let servers = start(vec![spec]).await;
    assert_eq!(phase(&servers), Phase::Idle);
    assert!(servers.needs_connect("changes"));
    let first = call(&servers, "changes", "pid", json!({})).await;
    until(&servers, |servers| phase(servers) == Phase::Idle).await;
    let second = call(&servers, "changes", "pid", json!({})).await;
    assert_ne!(first, second);
    in_time(servers.shut_down()).await;
    assert_eq!(phase(&servers), Phase::Closed);
}

#[tokio::test]
async fn changes_of_the_list_are_followed() {
    for mode in ["changes", "changes --modern"] {
        let servers = one(odd(mode)).await;
        // In the newest revision the subscription may come after the call.
        let answer = call(&servers, mode, "add", json!({ "name": "new" })).await;
        assert_eq!(answer, "add was called");
        until(&servers, |servers| {
            tools(servers).contains(&"new".to_owned())
        })
        .await;
        call(&servers, mode, "remove", json!({ "name": "new" })).await;
        in_time(servers.settle(Duration::from_secs(30))).await;
        until(&servers, |servers| {
            !tools(servers).contains(&"new".to_owned())
        })
        .await;
        // Many changes cost few lists.
        call(&servers, mode, "flood", json!({ "count": 10_000 })).await;
        in_time(servers.settle(Duration::from_secs(30))).await;
        let lists = call(&servers, mode, "listed", json!({})).await;
        assert!(lists.parse::<u32>().expect("a number") < 12, "{lists}");
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn calls_do_not_wait_for_lists() {
    for (mode, tool, arguments) in [
        ("changes", "flood", json!({ "count": 1 })),
        ("changes --modern", "flood", json!({ "count": 100 })),
        ("holds-lists", "change", json!({})),
    ] {
        let servers = one(odd(mode)).await;
        let began = Instant::now();
        for _ in 0..10 {
            let said = call(&servers, mode, tool, arguments.clone()).await;
            assert_eq!(said, format!("{tool} was called"));
        }
        // Ten lists take nine seconds at least.
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{mode}: {took:?}");
        in_time(servers.shut_down()).await;
    }
}

#[tokio::test]
async fn wait_for_missing_list_is_bounded() {
    let servers = one(odd("holds-lists")).await;
    call(&servers, "holds-lists", "change", json!({})).await;
    until(&servers, |servers| !servers.is_settled()).await;
    in_time(servers.settle(Duration::from_millis(200))).await;
    assert!(!servers.is_settled());
    call(&servers, "holds-lists", "list", json!({})).await;
    in_time(servers.settle(Duration::from_secs(30))).await;
    until(&servers, |servers| servers.is_settled()).await;
    in_time(servers.shut_down()).await;
}

#[tokio::test]
async fn processes_end_with_the_servers() {
    let is_running = |pid: &str| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let servers = one(odd("changes")).await;
    let pid = call(&servers, "changes", "pid", json!({})).await;
    assert!(is_running(&pid));
    drop(servers);
    in_time(async {
        while is_running(&pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;

    // It ignores the end of its input, and SIGTERM.
    let servers = one(odd("lingers")).await;
    in_time(servers.shut_down()).await;
    let answer = call(&servers, "lingers", "echo", json!({})).await;
    assert_eq!(
        answer,
        "the connection was closed before the call [sent: false]"
    );
}

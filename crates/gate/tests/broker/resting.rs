//! Servers that are connected to when they are called, taken out of use and back,
//! or tried again after they did not start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_gate::{
    CallError, CallOptions, Connect, NobodyToAsk, Phase, Remembered, Servers, Status, ToolList,
};
use callgate_policy::Definition;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::counted::{Counted, state, until};
use crate::support::{Run, Runs as _, allow_all, call, in_time, odd, raw, show, target};

fn run(broker: &Servers) -> Run {
    broker.run(allow_all(), Arc::new(NobodyToAsk))
}

async fn pid(run: &Run, server: &str) -> String {
    let pid = in_time(call(run, server, "pid", json!({}))).await;
    let pid = pid.trim_matches('"').to_owned();
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    pid
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn gone(pid: &str) {
    in_time(async {
        while is_alive(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lazy_server_whose_tools_are_not_known_is_asked_for_them_at_the_start() {
    let counted = Counted::lazy("changes", Some(Duration::from_millis(20)));
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    assert!(matches!(state(&broker).status, Status::Ready(_)));
    until(&broker, |it| it.phase == Phase::Idle).await;
    assert_eq!(counted.starts(), 1);
    assert!(!state(&broker).stale, "its list still holds");
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_calls_connect_once_and_an_idle_server_has_no_process() {
    let counted = Counted::lazy("changes", Some(Duration::from_millis(50)))
        .remembered()
        .await;
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    assert_eq!(state(&broker).phase, Phase::Idle);
    assert_eq!(counted.starts(), 0);
    let run = run(&broker);
    let pids = in_time(join_all((0..20).map(|_| pid(&run, &name)))).await;
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
    assert_eq!(counted.starts(), 1);
    until(&broker, |it| it.phase == Phase::Idle).await;
    gone(&pids[0]).await;
    let next = pid(&run, &name).await;
    assert_ne!(next, pids[0]);
    assert_eq!(counted.starts(), 2);
    broker.shut_down().await;
    gone(&next).await;
}

/// It may be idle as soon as nobody calls it: each step to idle meets calls that
/// have just begun.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_lost_on_the_way_to_idle() {
    let counted = Counted::lazy("changes", Some(Duration::ZERO))
        .remembered()
        .await;
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let run = run(&broker);
    for round in 0..30 {
        in_time(join_all((0..3).map(|_| pid(&run, &name)))).await;
        // Every other time, calls come while it is on its way.
        if round % 2 == 0 {
            until(&broker, |it| it.phase == Phase::Idle).await;
        }
    }
    assert!(
        (15..=30).contains(&counted.starts()),
        "{}",
        counted.starts()
    );
    broker.shut_down().await;
}

/// Two calls that answer each other: the first waits for far longer than the server
/// may be idle.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_keeps_a_server_from_going_idle() {
    let counted = Counted::lazy("counter", Some(Duration::ZERO))
        .remembered()
        .await;
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let run = run(&broker);
    let first = tokio::spawn({
        let (run, name) = (run.clone(), name.clone());
        async move { call(&run, &name, "wait", json!({ "calls": 2 })).await }
    });
    until(&broker, |it| it.phase == Phase::Up).await;
    let second = call(&run, &name, "wait", json!({ "calls": 2 })).await;
    let first = in_time(first).await.expect("no panic");
    assert!(
        !first.contains("Err") && !second.contains("Err"),
        "{first} {second}"
    );
    assert_eq!(counted.starts(), 1);
    broker.shut_down().await;
}

/// It starts for a second, and never answers the call.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_takes_to_start_is_time_of_the_call() {
    let mut counted = Counted::new("hang-on-call", "sleep 1;");
    counted.spec.connect = Connect::Lazy;
    let counted = counted.remembered().await;
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let run = run(&broker);
    let options = CallOptions {
        timeout: Some(Duration::from_secs(4)),
        ..CallOptions::default()
    };
    let began = Instant::now();
    let called = run.call(target(&counted.spec.name, "hang"), raw(json!({})), options);
    let late = in_time(called).await.expect_err("it hangs");
    let took = began.elapsed();
    assert!(
        matches!(late, CallError::Timeout { limit, .. } if limit == Duration::from_secs(4)),
        "{late:?}"
    );
    assert!(took < Duration::from_millis(4_900), "{took:?}");
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_did_not_start_is_tried_again_and_its_tools_appear() {
    let counted = Counted::new("counter", "[ -e well ] || exit 3;");
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let down = state(&broker);
    assert!(matches!(down.status, Status::Failed(_)), "{down:?}");
    assert!(matches!(&down.phase, Phase::Down(reason) if reason.contains("exit code 3")));
    std::fs::write(counted.file("well"), "").expect("a file");
    let up = until(&broker, |it| it.phase == Phase::Up).await;
    assert!(matches!(up.status, Status::Ready(_)) && up.failed.is_none() && !up.stale);
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_down_is_known_from_an_earlier_time_and_stale() {
    let mut counted = Counted::new("changes", "[ -e well ] || exit 3;");
    std::fs::write(counted.file("well"), "").expect("a file");
    counted = counted.remembered().await;
    std::fs::remove_file(counted.file("well")).expect("it is there");
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let down = state(&broker);
    assert!(
        matches!(down.status, Status::Ready(_)) && down.stale,
        "{down:?}"
    );
    assert!(down.failed.is_some() && !down.heard);
    // Whoever enables it has it tried at once, and hears why it fails.
    let why = in_time(broker.enable(&down.name)).await.expect_err("down");
    assert!(why.contains("exit code 3"), "{why}");
    std::fs::write(counted.file("well"), "").expect("a file");
    in_time(broker.enable(&down.name)).await.expect("it starts");
    let up = state(&broker);
    assert!(up.failed.is_none() && !up.stale && up.heard, "{up:?}");
    broker.shut_down().await;
}

/// A call has a minute, and does not have it started over and over for so long.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_fails_with_the_start_that_it_was_for() {
    let mut counted = Counted::new("changes", "[ -e well ] || exit 3;");
    counted.spec.connect = Connect::Lazy;
    // Else each attempt starts it twice: it may be of either era.
    counted.spec.era = "2025-11-25".parse().expect("a revision");
    std::fs::write(counted.file("well"), "").expect("a file");
    counted = counted.remembered().await;
    std::fs::remove_file(counted.file("well")).expect("it is there");
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let run = run(&broker);
    for starts in 1..=3 {
        let said = in_time(call(&run, &name, "pid", json!({}))).await;
        assert!(said.contains("exit code 3"), "{said}");
        assert_eq!(counted.starts(), starts);
    }
    std::fs::write(counted.file("well"), "").expect("a file");
    pid(&run, &name).await;
    assert_eq!(counted.starts(), 4);
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_server_is_gone_until_it_is_enabled() {
    let mut counted = Counted::new("changes", "");
    counted.spec.connect = Connect::Manual;
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    assert_eq!(state(&broker).phase, Phase::Disabled);
    assert_eq!(counted.starts(), 0);
    let run = run(&broker);
    let said = in_time(call(&run, &name, "pid", json!({}))).await;
    assert!(said.contains("the server is disabled; enable it"), "{said}");
    in_time(broker.enable(&name)).await.expect("it starts");
    let first = pid(&run, &name).await;
    in_time(broker.disable(&name)).await.expect("it is known");
    gone(&first).await;
    assert_eq!(state(&broker).phase, Phase::Disabled);
    assert!(broker.enable("none").await.is_err());
    broker.shut_down().await;
    assert!(broker.enable(&name).await.is_err(), "it was shut down");
    assert_eq!(counted.starts(), 1);
}

/// It takes a while to end, and has something to do then.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_started_again_when_it_has_ended_in_its_own_time() {
    let script = r#""$0" "$@"; sleep 0.3; date +%s%N >> ends; exit;"#;
    let mut counted = Counted::new("changes", script);
    counted.spec.connect = Connect::Lazy;
    counted.spec.idle = Some(Duration::from_millis(50));
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    until(&broker, |it| it.phase == Phase::Idle).await;
    in_time(broker.enable(&name)).await.expect("it starts");
    let disabling = tokio::spawn({
        let (broker, name) = (broker.clone(), name.clone());
        async move { broker.disable(&name).await }
    });
    until(&broker, |it| it.phase == Phase::Disabled).await;
    in_time(broker.enable(&name)).await.expect("it starts");
    let disabled = in_time(disabling).await.expect("no panic");
    disabled.expect("it is known");
    in_time(broker.shut_down()).await;
    let (started, ended) = (counted.started(), counted.times("ends"));
    assert_eq!((started.len(), ended.len()), (3, 3));
    for (ended, started) in ended.iter().zip(&started[1..]) {
        assert!(ended < started, "{ended:?} {started:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_ends_when_its_server_is_disabled() {
    let broker = Servers::connect(vec![odd("hang-on-call")], |_| {}).await;
    let run = run(&broker);
    let hanging = tokio::spawn({
        let run = run.clone();
        async move { call(&run, "hang-on-call", "hang", json!({})).await }
    });
    // It is at the server: that answers another one after it.
    in_time(async {
        while run.ledger().is_empty() {
            tokio::task::yield_now().await;
        }
        call(&run, "hang-on-call", "cancelled", json!({})).await;
    })
    .await;
    in_time(broker.disable("hang-on-call"))
        .await
        .expect("known");
    let said = in_time(hanging).await.expect("no panic");
    assert!(
        said.contains("the server is disabled during the call"),
        "{said}"
    );
    broker.shut_down().await;
}

/// What was decided about is what is called, or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_another_on_the_next_connection_is_not_called() {
    let mut counted = Counted::lazy("changes", None).remembered().await;
    let name = counted.spec.name.clone();
    let tool = |description: Value| {
        let mut tool = json!({ "name": "pid", "inputSchema": { "type": "object" } });
        if !description.is_null() {
            tool["description"] = description;
        }
        tool
    };
    let remembered = counted.spec.remembered.take().expect("it is known");
    let ready = ToolList {
        tools: vec![tool("Does nothing.".into())],
        ..(*remembered.list).clone()
    };
    counted.spec.remembered = Some(Remembered {
        list: Arc::new(ready),
        age: Duration::ZERO,
    });
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let run = run(&broker);
    let call_as = |tool: Value| {
        let mut target = target(&name, "pid");
        target.definition = Some(Arc::new(Definition::of(&tool)));
        run.call(target, raw(json!({})), CallOptions::default())
    };
    let said = show(in_time(call_as(tool("Does nothing.".into()))).await);
    assert!(
        said.contains("another than the one that was decided about"),
        "{said}"
    );
    let said = show(in_time(call_as(tool(Value::Null))).await);
    assert!(said.trim_matches('"').parse::<u32>().is_ok(), "{said}");
    broker.shut_down().await;
}

/// Whatever order they come in, nothing is lost and nothing stands still.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_switches_at_once() {
    let counted = Counted::lazy("changes", Some(Duration::ZERO));
    let name = counted.spec.name.clone();
    let broker = Servers::connect(vec![counted.spec.clone()], |_| {}).await;
    let run = run(&broker);
    let switches = (0..10).map(|task| {
        let (broker, name, run) = (broker.clone(), name.clone(), run.clone());
        tokio::spawn(async move {
            for turn in 0..100 {
                match (task + turn) % 4 {
                    // It may be disabled meanwhile.
                    0 => drop(broker.enable(&name).await),
                    1 => broker.disable(&name).await.expect("it is known"),
                    2 => broker.refresh_stale(),
                    // It ends, well or not.
                    _ => drop(call(&run, &name, "add", json!({ "name": "x" })).await),
                }
            }
        })
    });
    let ended = tokio::time::timeout(Duration::from_secs(120), join_all(switches)).await;
    for ended in ended.expect("it hangs") {
        ended.expect("no panic");
    }
    in_time(broker.enable(&name)).await.expect("it starts");
    let last = pid(&run, &name).await;
    in_time(broker.disable(&name)).await.expect("it is known");
    gone(&last).await;
    in_time(broker.enable(&name)).await.expect("it starts");
    let Status::Ready(ready) = state(&broker).status else {
        panic!("it has tools");
    };
    assert!(ready.tools.iter().any(|tool| tool["name"] == "pid"));
    in_time(broker.shut_down()).await;
    // No process is left of any of the turns.
    let folder = counted.folder.path().canonicalize().expect("a path");
    in_time(async {
        while processes_in(&folder) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// How many processes have this as their folder.
fn processes_in(folder: &std::path::Path) -> usize {
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let there = processes.flatten().filter(|process| {
        let cwd = std::fs::read_link(process.path().join("cwd"));
        cwd.is_ok_and(|cwd| cwd == folder)
    });
    there.count()
}

//! Servers that end and come back, and lists that change.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_gate::{
    Answer, CallOptions, NobodyToAsk, Question, RunSetup, Servers, Status, ask_with,
};
use callgate_policy::{Definition, Rules};
use futures::poll;
use serde_json::json;

use crate::support::{
    Run, Runs as _, Target, allow_all, call, in_time, odd, one, raw, show, target,
};

/// The names of a server's tools that are not its own.
fn added(broker: &Servers) -> Vec<String> {
    let state = broker.list().next().expect("a server");
    let Status::Ready(ready) = state.status else {
        panic!("it is up");
    };
    let names = ready.tools.iter().filter_map(|tool| tool["name"].as_str());
    let own = [
        "add", "remove", "change", "quietly", "flood", "listed", "pid", "end",
    ];
    names
        .filter(|name| !own.contains(name))
        .map(str::to_owned)
        .collect()
}

/// Waits until all lists are the newest.
async fn settle(broker: &Servers) {
    broker.settle(None, Duration::from_secs(30)).await;
    assert!(broker.is_settled(None));
}

async fn changes_of(mode: &str) {
    let (broker, run, name) = one(odd(mode)).await;
    for (tool, argument, expected) in [
        ("add", "one", vec!["one"]),
        ("add", "two", vec!["one", "two"]),
        ("remove", "one", vec!["two"]),
    ] {
        call(&run, &name, tool, json!({ "name": argument })).await;
        in_time(async {
            // The newest revision tells of changes when it is listened to.
            let mut changes = broker.watch();
            while added(&broker) != expected {
                changes.changed().await.expect("the broker is there");
            }
        })
        .await;
    }
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_changed_is_asked_for_anew() {
    changes_of("changes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_newest_revision_is_listened_to() {
    changes_of("changes --modern").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_told_before_its_answer_is_known_with_it() {
    let (broker, run, name) = one(odd("changes")).await;
    call(&run, &name, "add", json!({ "name": "one" })).await;
    assert!(!broker.is_settled(None));
    settle(&broker).await;
    assert_eq!(added(&broker), ["one"]);
    broker.shut_down().await;
}

/// Servers that keep their lists to themselves hold nobody up for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_come_in_time_is_not_waited_for_again() {
    let (broker, run, name) = one(odd("holds-lists")).await;
    call(&run, &name, "change", json!({})).await;
    assert!(!broker.is_settled(None));
    // Another one is not waited for.
    let long = Duration::MAX;
    assert!(poll!(pin!(broker.settle(Some("another"), long))).is_ready());
    let short = Duration::from_millis(1);
    broker.settle(Some(&name), short).await;
    // So long it has been waited for, by whomever.
    assert!(poll!(pin!(broker.settle(None, short))).is_ready());
    assert!(poll!(pin!(broker.settle(None, long))).is_pending());
    assert!(!broker.is_settled(None));

    let mut changes = broker.watch();
    call(&run, &name, "list", json!({})).await;
    let listed = async {
        while !broker.is_settled(None) {
            changes.changed().await.expect("the broker is there");
        }
    };
    in_time(listed).await;
    // The next one is.
    call(&run, &name, "change", json!({})).await;
    let mut settled = pin!(broker.settle(None, long));
    assert!(poll!(settled.as_mut()).is_pending());
    call(&run, &name, "list", json!({})).await;
    in_time(settled).await;
    assert!(broker.is_settled(None));
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_changes_costs_a_list_or_two() {
    let (broker, run, name) = one(odd("changes")).await;
    call(&run, &name, "flood", json!({ "count": 10_000 })).await;
    settle(&broker).await;
    let listed = call(&run, &name, "listed", json!({})).await;
    let listed: u32 = listed.trim_matches('"').parse().expect("a number");
    assert!((2..=3).contains(&listed), "{listed} lists");
    broker.shut_down().await;
}

/// Whoever is asked says yes to what was shown, and the tool is another by then: it is
/// asked about anew, if there is somebody who knows what it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changed_while_somebody_was_asked_is_decided_about_anew() {
    let (broker, run, name) = one(odd("changes")).await;
    call(&run, &name, "add", json!({ "name": "one" })).await;
    settle(&broker).await;
    let definition = |broker: &Servers| {
        let state = broker.list().next().expect("a server");
        let Status::Ready(ready) = state.status else {
            panic!("it is up");
        };
        let listed = ready.tools.iter().find(|tool| tool["name"] == "one");
        Arc::new(Definition::of(listed.expect("it is listed")))
    };
    let call_as = async |run: &Run, definition: Arc<Definition>| {
        let target = Target {
            definition: Some(definition),
            ..target(&name, "one")
        };
        let called = run.call(target, raw(json!({})), CallOptions::default());
        show(in_time(called).await)
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    // Changes it during so many questions.
    let changing = |times: usize| {
        let (broker, run, name) = (broker.clone(), run.clone(), name.clone());
        let asked = Arc::clone(&asked);
        ask_with(move |question: Question| {
            let (broker, run, name) = (broker.clone(), run.clone(), name.clone());
            let mut asked = asked.lock().expect("no panic");
            asked.extend(question.description.map(|said| said.to_string()));
            let changes = asked.len() <= times;
            async move {
                if changes {
                    call(&run, &name, "change", json!({ "name": "one" })).await;
                    settle(&broker).await;
                }
                Answer::Once
            }
        })
    };
    let asked_since = || std::mem::take(&mut *asked.lock().expect("no panic"));
    let setup = RunSetup::new(Arc::new(Rules::default()), changing(1));
    let said = call_as(&broker.run_with(setup), definition(&broker)).await;
    assert!(said.contains("code: -32056"), "{said}");
    assert!(said.contains("retryable: true"), "{said}");
    assert_eq!(asked_since(), ["Changed 0 times"]);

    assert_eq!(
        call_as(&run, definition(&broker)).await,
        "\"one was called\""
    );
    broker.shut_down().await;
}

/// The call in flight fails, and is not made again; the next one waits for the
/// server to be back.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_comes_back_for_the_next_call() {
    let (broker, run, name) = one(odd("changes")).await;
    let pid = call(&run, &name, "pid", json!({})).await;
    let pid: i32 = pid.trim_matches('"').parse().expect("a process id");
    // SAFETY: kill takes two numbers; the process is one that this test started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    let next = in_time(async {
        loop {
            let next = call(&run, &name, "pid", json!({})).await;
            // The first may still have been sent to the one that was killed.
            if !next.contains("signal 9 during the call") {
                break next;
            }
        }
    })
    .await;
    let next: i32 = next
        .trim_matches('"')
        .parse()
        .unwrap_or_else(|_| panic!("{next}"));
    assert_ne!(next, pid);
    let again = broker.run(allow_all(), Arc::new(NobodyToAsk));
    assert_eq!(
        call(&again, &name, "pid", json!({})).await,
        format!("\"{next}\"")
    );
    broker.shut_down().await;
}

/// A server that is down for longer than a call may take says when it is tried
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_does_not_wait_for_longer_than_it_may() {
    let mut spec = odd("dies-on-call");
    spec.call_timeout = std::time::Duration::from_millis(1);
    let (broker, run, name) = one(spec).await;
    let said = in_time(async {
        loop {
            let said = call(&run, &name, "die", json!({})).await;
            if said.contains("it is started again in") {
                break said;
            }
        }
    })
    .await;
    assert!(said.contains("the server ended with exit code 5"), "{said}");
    broker.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_broker_starts_nothing_again() {
    let (broker, run, name) = one(odd("changes")).await;
    let pid = call(&run, &name, "pid", json!({})).await;
    let pid = pid.trim_matches('"').to_owned();
    drop((broker, run));
    let stat = format!("/proc/{pid}/stat");
    in_time(async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

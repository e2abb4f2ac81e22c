//! Servers that crash again and again: what they cost others, what calls are told,
//! and that they are there again when it is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_broker::{Broker, CallOptions, NobodyToAsk, Run};
use expect_test::expect;
use serde_json::json;

use crate::counted::Counted;
use crate::support::{allow_all, call, in_time, odd, raw, show, target};

/// A call that does not wait for its server.
async fn short(run: &Run, server: &str) -> String {
    let options = CallOptions {
        timeout: Some(Duration::from_millis(1)),
        ..CallOptions::default()
    };
    show(in_time(run.call(target(server, "pid"), raw(json!({})), options)).await)
}

async fn works(run: &Run, server: &str, tool: &str) -> bool {
    let said = in_time(call(run, server, tool, json!({}))).await;
    said == "null" || said.trim_matches('"').parse::<u32>().is_ok()
}

/// That it was started so often, and each time after half of the time at least that
/// doubles.
fn waited(counted: &Counted, times: usize) {
    let started = counted.started();
    assert_eq!(started.len(), times, "{started:?}");
    let mut least = Duration::from_millis(100);
    for pair in started.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause >= least, "{pause:?} is less than {least:?}");
        least *= 2;
    }
}

/// It is tried five times, and then a call has it started.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_starts_is_left_down_until_a_call_wants_it() {
    let mut counted = Counted::new(
        "changes",
        "[ -e well ] || { echo no database >&2; exit 3; };",
    );
    // So that each try is one process.
    counted.spec.era = "2025-11-25".parse().expect("a revision");
    std::fs::write(counted.file("well"), "").expect("a file");
    counted = counted.remembered().await;
    std::fs::remove_file(counted.file("well")).expect("it is there");
    let broker = Broker::start(vec![counted.spec.clone(), odd("flaky")]).await;
    let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
    let mut changes = broker.watch();
    let said = loop {
        changes.mark_unchanged();
        assert!(works(&run, "flaky", "empty").await);
        let said = short(&run, "changes").await;
        if said.contains("5 times in a row") {
            break said;
        }
        in_time(changes.changed())
            .await
            .expect("the broker is there");
    };
    let numbers = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    let wait = said
        .split("a call that waits ")
        .nth(1)
        .expect("it says when");
    let wait = wait.split(" ms").next().map(numbers).expect("in ms");
    let said = said.replace(&format!("waits {wait} ms"), "waits N ms");
    expect![[r#"Protocol { server: "changes", tool: "pid", code: -32000, message: "server `changes` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:\n  no database; it ended 5 times in a row and is started again by a call that waits N ms", data: None, retryable: true }"#]].assert_eq(&said);
    let wait = Duration::from_millis(wait.parse().expect("a number"));
    assert!(wait <= Duration::from_millis(3_200), "{wait:?}");
    // A try that nobody wants would be over by then; others go on meanwhile.
    let until = Instant::now() + wait + Duration::from_millis(200);
    while Instant::now() < until {
        // One run makes no more than ten thousand calls.
        let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
        assert!(works(&run, "flaky", "empty").await);
    }
    waited(&counted, 5);
    std::fs::write(counted.file("well"), "").expect("a file");
    assert!(works(&run, "changes", "pid").await);
    waited(&counted, 6);
    in_time(broker.shutdown()).await;
}

/// Each call ends it, and each next one waits for it to be back.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_each_call_ends_comes_back_ever_later() {
    let mut counted = Counted::new("changes", "");
    counted.spec.era = "2025-11-25".parse().expect("a revision");
    let broker = Broker::start(vec![counted.spec.clone(), odd("flaky")]).await;
    let run = broker.run(allow_all(), Arc::new(NobodyToAsk));
    for _ in 0..4 {
        let said = in_time(call(&run, "changes", "end", json!({}))).await;
        expect![[r#"Protocol { server: "changes", tool: "end", code: -32000, message: "the server ended with exit code 7 during the call", data: None, retryable: false }"#]].assert_eq(&said);
        assert!(works(&run, "flaky", "empty").await);
    }
    assert!(works(&run, "changes", "pid").await);
    assert!(works(&run, "changes", "pid").await);
    waited(&counted, 5);
    in_time(broker.shutdown()).await;
}

//! Servers that crash again and again: what they cost others, what calls are told,
//! and that they are there again when it is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_gate::{CallOptions, NobodyToAsk, Phase, Remembered, ServerSpec, Servers, Status};
use expect_test::expect;
use serde_json::json;

use crate::counted::{Counted, state};
use crate::support::{Run, Runs as _, allow_all, call, in_time, odd, raw, show, target};
use crate::unsteady::Unsteady;

fn run(broker: &Servers) -> Run {
    broker.run(allow_all(), Arc::new(NobodyToAsk))
}

/// A call that does not wait for its server.
async fn short(run: &Run, server: &str, tool: &str) -> String {
    let options = CallOptions {
        timeout: Some(Duration::from_millis(1)),
        ..CallOptions::default()
    };
    show(in_time(run.call(target(server, tool), raw(json!({})), options)).await)
}

async fn works(run: &Run, server: &str, tool: &str) -> bool {
    let said = in_time(call(run, server, tool, json!({}))).await;
    said == "null" || said.trim_matches('"').parse::<u32>().is_ok()
}

/// That it was started so often, and each time after half of the time at least that
/// doubles.
fn waited(started: &[Duration], times: usize) {
    assert_eq!(started.len(), times, "{started:?}");
    let mut least = Duration::from_millis(100);
    for pair in started.windows(2) {
        let pause = pair[1] - pair[0];
        assert!(pause >= least, "{pause:?} is less than {least:?}");
        least *= 2;
    }
}

/// The server, of whose starts each is one process, and `flaky` beside it.
async fn beside_another(mut counted: Counted) -> (Counted, Servers) {
    counted.spec.era = "2025-11-25".parse().expect("a revision");
    let broker = Servers::connect(vec![counted.spec.clone(), odd("flaky")], |_| {}).await;
    (counted, broker)
}

/// Calls the server `flaky` until the other one is left to a call. What calls are told
/// of the other one then, and how long one that has it started has to wait.
async fn left_to_a_call(broker: &Servers, server: &str, tool: &str) -> (String, Duration) {
    let first = run(broker);
    let mut changes = broker.watch();
    let said = loop {
        changes.mark_unchanged();
        assert!(works(&first, "flaky", "empty").await);
        let said = short(&first, server, tool).await;
        if said.contains("5 times in a row") {
            break said;
        }
        in_time(changes.changed())
            .await
            .expect("the broker is there");
    };
    let wait = said
        .split("a call that waits ")
        .nth(1)
        .and_then(|rest| rest.split(" ms").next())
        .expect("it says when");
    let told = said.replace(&format!("waits {wait} ms"), "waits N ms");
    let wait = Duration::from_millis(wait.parse().expect("a number"));
    assert!(wait <= Duration::from_millis(3_200), "{wait:?}");
    (told, wait)
}

/// Calls the server `flaky` for longer than one more try of the other one would wait.
async fn outlast(broker: &Servers, wait: Duration) {
    let until = Instant::now() + wait + Duration::from_millis(200);
    while Instant::now() < until {
        // One run makes no more than ten thousand calls.
        assert!(works(&run(broker), "flaky", "empty").await);
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
    let (counted, broker) = beside_another(counted).await;
    let (said, wait) = left_to_a_call(&broker, "changes", "pid").await;
    expect![[r#"Protocol { server: "changes", function: "changes_pid", code: -32000, message: "server `changes` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:\n  no database\nit failed to start 5 times in a row, and is tried again by a call that waits N ms", data: None, retryable: true }"#]].assert_eq(&said);
    outlast(&broker, wait).await;
    waited(&counted.started(), 5);
    std::fs::write(counted.file("well"), "").expect("a file");
    assert!(works(&run(&broker), "changes", "pid").await);
    waited(&counted.started(), 6);
    in_time(broker.shut_down()).await;
}

/// Nobody can call it, so that there is nothing to leave it to.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_which_nothing_is_known_is_tried_on() {
    let (counted, broker) = beside_another(Counted::new("exits", "")).await;
    let Status::Failed(error) = state(&broker).status else {
        panic!("it does not start");
    };
    expect![[r#"
        server `exits` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
          odd server: no database at localhost:5432"#]]
    .assert_eq(&error.to_string());
    let run = run(&broker);
    let mut changes = broker.watch();
    let said = loop {
        changes.mark_unchanged();
        assert!(works(&run, "flaky", "empty").await);
        let said = short(&run, "exits", "x").await;
        if said.contains("6 times in a row") {
            break said;
        }
        in_time(changes.changed())
            .await
            .expect("the broker is there");
    };
    waited(&counted.started(), 6);
    // No call can have it started, so none is promised to.
    let (told, rest) = said.split_once(" again in ").expect("it says when");
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    expect![[r#"Protocol { server: "exits", function: "exits_x", code: -32000, message: "server `exits` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:\n  odd server: no database at localhost:5432\nit failed to start 6 times in a row, and is tried again in N ms", data: None, retryable: true }"#]].assert_eq(&format!("{told} again in N{rest}"));
    in_time(broker.shut_down()).await;
    waited(&counted.started(), 6);
}

/// Each call ends it, and each next one waits for it to be back.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_each_call_ends_comes_back_ever_later() {
    let (counted, broker) = beside_another(Counted::new("changes", "")).await;
    let run = run(&broker);
    for _ in 0..4 {
        let said = in_time(call(&run, "changes", "end", json!({}))).await;
        expect![[r#"Protocol { server: "changes", function: "changes_end", code: -32000, message: "the server ended with exit code 7 during the call", data: None, retryable: false }"#]].assert_eq(&said);
        assert!(works(&run, "flaky", "empty").await);
    }
    assert!(works(&run, "changes", "pid").await);
    assert!(works(&run, "changes", "pid").await);
    waited(&counted.started(), 5);
    in_time(broker.shut_down()).await;
}

/// Five calls end it; no call starts it again that cannot wait, and one that can ends
/// it again.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_five_calls_ended_is_left_down_until_a_call_wants_it() {
    let (counted, broker) = beside_another(Counted::new("dies-on-call", "")).await;
    let run = run(&broker);
    let dies = async || {
        let said = in_time(call(&run, "dies-on-call", "die", json!({}))).await;
        expect![[r#"Protocol { server: "dies-on-call", function: "dies_on_call_die", code: -32000, message: "the server ended with exit code 5 during the call; its last words on stderr: odd server: out of luck", data: None, retryable: false }"#]].assert_eq(&said);
    };
    for _ in 0..5 {
        dies().await;
    }
    let (said, wait) = left_to_a_call(&broker, "dies-on-call", "die").await;
    expect![[r#"Protocol { server: "dies-on-call", function: "dies_on_call_die", code: -32000, message: "the server ended with exit code 5; its last words on stderr: odd server: out of luck; it ended 5 times in a row, and is started again by a call that waits N ms", data: None, retryable: true }"#]].assert_eq(&said);
    outlast(&broker, wait).await;
    waited(&counted.started(), 5);
    dies().await;
    waited(&counted.started(), 6);
    in_time(broker.shut_down()).await;
}

/// As one that is known from an earlier time.
async fn remembered(unsteady: &Unsteady, era: &str) -> ServerSpec {
    let well = Unsteady::present();
    let broker = in_time(Servers::connect(vec![well.spec(era)], |_| {})).await;
    let Status::Ready(ready) = state(&broker).status else {
        panic!("it starts");
    };
    broker.shut_down().await;
    let mut spec = unsteady.spec(era);
    spec.remembered = Some(Remembered {
        list: ready,
        age: Duration::ZERO,
    });
    spec
}

/// Connections to it are refused, and then it is there.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_not_there_is_left_alone_until_a_call_wants_it() {
    let mut web = Unsteady::absent();
    let spec = remembered(&web, "auto").await;
    let broker = Servers::connect(vec![spec, odd("flaky")], |_| {}).await;
    let (said, wait) = left_to_a_call(&broker, "web", "count").await;
    let said = said.replace(&web.port(), "PORT");
    expect![[r#"Protocol { server: "web", function: "web_count", code: -32000, message: "server `web` did not start: http://127.0.0.1:PORT/mcp did not answer as an MCP endpoint: the server cannot be reached: Connection refused (os error 111); it failed to start 5 times in a row, and is tried again by a call that waits N ms", data: None, retryable: true }"#]].assert_eq(&said);
    // What is tried from now on it hears of.
    web.appear();
    outlast(&broker, wait).await;
    assert_eq!(web.requests(), 0);
    assert!(works(&run(&broker), "web", "count").await);
    assert_eq!(web.asked("tools/call").len(), 1);
    in_time(broker.shut_down()).await;
}

/// Each try is answered, and the answer breaks off.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_whose_answers_break_off_is_left_alone_until_a_call_wants_it() {
    let web = Unsteady::present();
    web.breaks(true);
    let spec = remembered(&web, "auto").await;
    let broker = Servers::connect(vec![spec, odd("flaky")], |_| {}).await;
    let (said, wait) = left_to_a_call(&broker, "web", "count").await;
    let said = said.replace(&web.port(), "PORT");
    expect![[r#"Protocol { server: "web", function: "web_count", code: -32000, message: "server `web` did not start: http://127.0.0.1:PORT/mcp did not answer as an MCP endpoint: the server cannot be reached: unexpected EOF during chunk size line; it failed to start 5 times in a row, and is tried again by a call that waits N ms", data: None, retryable: true }"#]].assert_eq(&said);
    outlast(&broker, wait).await;
    waited(&web.asked("server/discover"), 5);
    // It may be an older one that does not know what it is asked first.
    assert_eq!(web.asked("initialize").len(), 5);
    assert_eq!(web.requests(), 10);
    web.breaks(false);
    assert!(works(&run(&broker), "web", "count").await);
    waited(&web.asked("server/discover"), 6);
    in_time(broker.shut_down()).await;
}

/// It stays up, since neither a process nor a session has ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_whose_answers_to_calls_break_off_is_called_once_for_each() {
    let mut both = Vec::new();
    for era in ["auto", "2025-11-25"] {
        let web = Unsteady::present();
        let broker = Servers::connect(vec![web.spec(era), odd("flaky")], |_| {}).await;
        let run = run(&broker);
        assert!(works(&run, "web", "count").await, "{era}");
        web.breaks(true);
        let mut said = Vec::new();
        for _ in 0..7 {
            said.push(in_time(call(&run, "web", "count", json!({}))).await);
            assert!(works(&run, "flaky", "empty").await);
            assert_eq!(state(&broker).phase, Phase::Up);
        }
        said.dedup();
        both.push(said.join("\n"));
        web.breaks(false);
        assert_eq!(in_time(call(&run, "web", "count", json!({}))).await, "9");
        in_time(broker.shut_down()).await;
    }
    assert_eq!(both[0], both[1]);
    expect![[r#"Protocol { server: "web", function: "web_count", code: -32000, message: "the server cannot be reached: unexpected EOF during chunk size line", data: None, retryable: false }"#]].assert_eq(&both[0]);
}

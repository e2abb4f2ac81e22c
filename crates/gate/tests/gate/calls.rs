//! The lines of calls, and calls of tools that change.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_gate::{Answer, CallOptions, Outcome, Question};
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{Runs as _, call, in_time, odd, one, raw, setup, show, target};

#[tokio::test]
async fn the_ledger_has_every_outcome() {
    let mut flaky = odd("flaky");
    flaky.name = "flaky".to_owned();
    let (servers, run, server) = one(flaky).await;
    for (tool, arguments) in [
        ("text", json!({ "text": "hello" })),
        ("fails", json!({})),
        ("rejects", json!({ "message": "x".repeat(1_000) })),
        ("echo", json!([])),
    ] {
        in_time(call(&run, &server, tool, arguments)).await;
    }
    in_time(call(&run, "nobody", "text", json!({}))).await;
    servers.shut_down().await;
    let lines = run.ledger().into_iter().map(|line| {
        let mut line = serde_json::to_value(line).expect("a line");
        assert!(line["startedMs"].is_u64() && line["at"].is_string());
        for field in ["startedMs", "tookMs", "at"] {
            line.as_object_mut().map(|line| line.remove(field));
        }
        format!("{line}\n")
    });
    expect![[r#"
        {"ordinal":1,"function":"flaky_text","server":"flaky","tool":"text","decision":"allowed by rule \"*\" in permissions.allow","outcome":"ok","argumentBytes":16,"argumentSha256":"cbbbdcd27692344de5dbab3abcaba413fb0f45307267de7081401576df1cb176","resultBytes":7,"resultSha256":"5aa762ae383fbb727af3c7a36d4940a5b8c40a989452d2304fc958ff3f354e7a"}
        {"ordinal":2,"function":"flaky_fails","server":"flaky","tool":"fails","decision":"allowed by rule \"*\" in permissions.allow","outcome":"toolError","argumentBytes":2,"argumentSha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","resultBytes":97,"resultSha256":"c863cb86a67b951e0c723782c51e19a9f8f922f293785d61b9f9b064f477262d","message":"disk is full"}
        {"ordinal":3,"function":"flaky_rejects","server":"flaky","tool":"rejects","decision":"allowed by rule \"*\" in permissions.allow","outcome":"protocolError","argumentBytes":1014,"argumentSha256":"b7ac8b29fbf7593e99bf111c3b003a42492ddee7d47ac0261f4a27a192941bee","message":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…","code":-32602}
        {"ordinal":4,"function":"flaky_echo","server":"flaky","tool":"echo","decision":"","code":-32602,"argumentBytes":2,"message":"the arguments must be one JSON object","outcome":"protocolError"}
        {"ordinal":5,"function":"nobody_text","server":"nobody","tool":"text","decision":"allowed by rule \"*\" in permissions.allow","outcome":"protocolError","argumentBytes":2,"argumentSha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","message":"there is no server `nobody`","code":-32000}
    "#]].assert_eq(&lines.collect::<String>());
}

#[tokio::test]
async fn hanging_call_times_out_and_is_cancelled() {
    let mut spec = odd("hang-on-call");
    spec.call_timeout = Duration::from_millis(100);
    let (servers, run, server) = one(spec).await;
    expect![[r#"CallError { server: "hang-on-call", function: "hang_on_call_hang", kind: Timeout { limit: 100ms, unused: "", retryable: false } }"#]]
    .assert_eq(&in_time(call(&run, &server, "hang", json!({}))).await);
    // Dropped before its answer: cancelled as well.
    let hang = call(&run, &server, "hang", json!({}));
    let hang = tokio::time::timeout(Duration::from_millis(20), hang);
    assert!(hang.await.is_err());
    while in_time(call(&run, &server, "cancelled", json!({}))).await != "2" {
        tokio::task::yield_now().await;
    }
    let lines = run.ledger().into_iter().take(2);
    let outcomes: Vec<_> = lines.map(|line| format!("{:?}", line.outcome)).collect();
    assert_eq!(outcomes, ["TimedOut { limit_ms: 100 }", "Cancelled"]);
    servers.shut_down().await;
}

/// The person allows the definition in the question; the tool has changed by then.
#[tokio::test(flavor = "multi_thread")]
async fn changed_tool_is_asked_about_again() {
    let (servers, run, name) = one(odd("changes")).await;
    call(&run, &name, "add", json!({ "name": "one" })).await;
    in_time(servers.settle(Duration::MAX)).await;
    let shown = Arc::new(Mutex::new(Vec::new()));
    let asker = Arc::new({
        let (servers, run, name) = (servers.clone(), run.clone(), name.clone());
        let shown = Arc::clone(&shown);
        move |question: Question| {
            let (servers, run, name) = (servers.clone(), run.clone(), name.clone());
            let mut shown = shown.lock().expect("no panic");
            let before = question.changed.and_then(|changed| changed.before);
            let before = before.map(|it| it.text().contains("Changed 0 times"));
            shown.extend(question.description.map(|now| (now, before)));
            let is_first = shown.len() == 1;
            async move {
                if is_first {
                    call(&run, &name, "change", json!({ "name": "one" })).await;
                    servers.settle(Duration::MAX).await;
                }
                Answer::Run
            }
        }
    });
    let asked = servers.run_with(setup(Arc::default(), asker));
    let called = asked.call(target(&name, "one"), raw(json!({})), CallOptions::default());
    expect![[r#""one was called""#]].assert_eq(&show(in_time(called).await));
    assert_eq!(
        *shown.lock().expect("no panic"),
        [
            ("Changed 0 times".to_owned(), None),
            ("Changed 1 times".to_owned(), Some(true)),
        ]
    );
    // The line before the first call was written, and it was not sent.
    let outcomes: Vec<_> = asked
        .ledger()
        .into_iter()
        .map(|line| line.outcome)
        .collect();
    assert!(
        matches!(
            outcomes[..],
            [Outcome::ProtocolError { code: -32056, .. }, Outcome::Ok]
        ),
        "{outcomes:?}"
    );
    servers.shut_down().await;
}

/// The answer allows a call whose server is gone by then. It is asked once more, and not sent twice.
#[tokio::test]
async fn unsent_call_is_asked_about_again() {
    for (answer, comes_back) in [
        (Answer::Once, true),
        (Answer::Session, true),
        (Answer::Run, false),
    ] {
        let (servers, _, name) = one(odd("flaky")).await;
        let reasons = Arc::new(Mutex::new(Vec::new()));
        let asker = Arc::new({
            let (servers, name) = (servers.clone(), name.clone());
            let reasons = Arc::clone(&reasons);
            move |question: Question| {
                let (servers, name) = (servers.clone(), name.clone());
                reasons.lock().expect("no panic").push(question.reason());
                let is_first = reasons.lock().expect("no panic").len() == 1;
                async move {
                    let changed = if is_first {
                        servers.disable(&name).await
                    } else if comes_back {
                        servers.enable(&name).await
                    } else {
                        Ok(())
                    };
                    changed.expect("a known server");
                    answer
                }
            }
        });
        let run = servers.run_with(setup(Arc::default(), asker));
        let arguments = raw(json!({ "text": "Starveling" }));
        let called = run.call(target(&name, "echo"), arguments, CallOptions::default());
        let said = show(in_time(called).await);
        assert_eq!(said.contains("Starveling"), comes_back, "{said}");
        let reasons = reasons.lock().expect("no panic").clone();
        let [first, second] = &reasons[..] else {
            panic!("{reasons:?}");
        };
        assert!(!first.contains("not sent"), "{first}");
        assert!(second.contains("not sent"), "{second}");
        servers.shut_down().await;
    }
}

/// An answer of the tool or the server is final, whatever the tool says of itself. A lost answer
/// can be asked for again from a tool that only reads.
#[tokio::test]
async fn only_safe_temporary_failures_are_retryable() {
    let retryable = async |mode: &str, tool: &str, arguments: Value| {
        let mut shown = Vec::new();
        for (read_only, idempotent) in [(false, false), (false, true), (true, true)] {
            let mut spec = odd(mode);
            spec.call_timeout = Duration::from_millis(100);
            let (servers, run, server) = one(spec).await;
            let mut target = target(&server, tool);
            target.hints.read_only = Some(read_only);
            target.hints.idempotent = Some(idempotent);
            let called = run.call(target, raw(arguments.clone()), CallOptions::default());
            let said = show(in_time(called).await);
            shown.push(said.contains("retryable: true"));
            servers.shut_down().await;
        }
        shown
    };
    for (mode, tool, arguments, expected) in [
        ("flaky", "fails", json!({}), [false, false, false]),
        ("flaky", "fails_silently", json!({}), [false, false, false]),
        (
            "flaky",
            "rejects",
            json!({ "code": -32602 }),
            [false, false, false],
        ),
        ("flaky", "not_an_object", json!({}), [false, false, false]),
        ("hang-on-call", "hang", json!({}), [false, false, true]),
        ("dies-on-call", "die", json!({}), [false, false, true]),
    ] {
        assert_eq!(
            retryable(mode, tool, arguments).await,
            expected,
            "{mode} {tool}"
        );
    }
}

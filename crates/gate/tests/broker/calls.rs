//! Calls and what becomes of them: errors, time, size, concurrency.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use callgate_gate::{CallError, CallOptions, code};
use expect_test::expect;
use futures::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{call, in_time, odd, odd_with_env, one, raw, target};

#[tokio::test]
async fn what_a_server_says_of_a_failure_has_no_secrets_and_a_bound() {
    let spec = odd_with_env("flaky", &[("TOKEN", "hunter2-hunter2")]);
    let (broker, run, server) = one(spec).await;
    let long = "é".repeat(20_000);
    let arguments = json!({
        "message": format!("no hunter2-hunter2 {long}"),
        "data": { "hunter2-hunter2": ["hunter2-hunter2"] },
    });
    let result = run
        .call(
            target(&server, "rejects"),
            raw(arguments),
            CallOptions::default(),
        )
        .await;
    match result {
        Err(CallError::Protocol { message, data, .. }) => {
            assert!(message.starts_with("no [TOKEN] éé"), "{message}");
            assert!(message.len() <= (16 << 10) + "…".len(), "{}", message.len());
            let data = data.map(|data| data.to_string());
            assert_eq!(data.as_deref(), Some(r#"{"[TOKEN]":["[TOKEN]"]}"#));
        }
        other => panic!("{other:?}"),
    }
    broker.shut_down().await;
}

#[tokio::test]
async fn the_ledger_has_every_outcome() {
    let mut flaky = odd("flaky");
    flaky.name = "flaky".to_owned();
    let (broker, run, server) = one(flaky).await;
    for (tool, arguments) in [
        ("text", json!({ "text": "hello" })),
        ("fails", json!({})),
        ("rejects", json!({ "message": "x".repeat(1_000) })),
        ("echo", json!([])),
    ] {
        in_time(call(&run, &server, tool, arguments)).await;
    }
    in_time(call(&run, "nobody", "text", json!({}))).await;
    broker.shut_down().await;
    let lines: Vec<Value> = run
        .ledger()
        .into_iter()
        .map(|line| {
            let mut line = serde_json::to_value(line).expect("a line");
            assert!(line["startedMs"].is_u64());
            assert!(line["at"].is_string());
            for field in ["startedMs", "tookMs", "at"] {
                line.as_object_mut().map(|line| line.remove(field));
            }
            line
        })
        .collect();
    expect![[r#"
        [
          {
            "ordinal": 1,
            "function": "flaky_text",
            "server": "flaky",
            "tool": "text",
            "decision": "allowed by rule \"*\" in permissions.allow",
            "outcome": "ok",
            "argumentBytes": 16,
            "argumentSha256": "cbbbdcd27692344de5dbab3abcaba413fb0f45307267de7081401576df1cb176",
            "resultBytes": 7,
            "resultSha256": "5aa762ae383fbb727af3c7a36d4940a5b8c40a989452d2304fc958ff3f354e7a"
          },
          {
            "ordinal": 2,
            "function": "flaky_fails",
            "server": "flaky",
            "tool": "fails",
            "decision": "allowed by rule \"*\" in permissions.allow",
            "outcome": "toolError",
            "argumentBytes": 2,
            "argumentSha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "resultBytes": 97,
            "resultSha256": "c863cb86a67b951e0c723782c51e19a9f8f922f293785d61b9f9b064f477262d",
            "message": "disk is full"
          },
          {
            "ordinal": 3,
            "function": "flaky_rejects",
            "server": "flaky",
            "tool": "rejects",
            "decision": "allowed by rule \"*\" in permissions.allow",
            "outcome": "protocolError",
            "argumentBytes": 1014,
            "argumentSha256": "b7ac8b29fbf7593e99bf111c3b003a42492ddee7d47ac0261f4a27a192941bee",
            "message": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…",
            "code": -32602
          },
          {
            "ordinal": 4,
            "function": "flaky_echo",
            "server": "flaky",
            "tool": "echo",
            "decision": "",
            "code": -32602,
            "argumentBytes": 2,
            "message": "the arguments must be one JSON object: invalid type: sequence, expected a map at line 1 column 0",
            "outcome": "protocolError"
          },
          {
            "ordinal": 5,
            "function": "nobody_text",
            "server": "nobody",
            "tool": "text",
            "decision": "",
            "code": -32000,
            "argumentBytes": 2,
            "argumentSha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            "message": "there is no server `nobody`",
            "outcome": "protocolError"
          }
        ]"#]].assert_eq(&serde_json::to_string_pretty(&lines).expect("JSON"));
}

#[tokio::test]
async fn large_arguments_have_their_hash_however_their_call_ends() {
    let (broker, run, server) = one(odd("hang-on-call")).await;
    let arguments = json!({ "text": "x".repeat(100_000) });
    let hash = Sha256::digest(arguments.to_string());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    in_time(call(&run, &server, "cancelled", arguments.clone())).await;
    in_time(call(&run, "nobody", "text", arguments.clone())).await;
    {
        // Given up while its server has it.
        let mut hangs = pin!(call(&run, &server, "hang", arguments.clone()));
        let waits = poll_fn(|context| Poll::Ready(hangs.as_mut().poll(context).is_pending()));
        assert!(waits.await);
    }
    broker.shut_down().await;
    let lines = run.ledger();
    let shown: Vec<_> = lines
        .iter()
        .map(|line| {
            let outcome = serde_json::to_value(&line.outcome).expect("JSON");
            let has_hash = line.argument_sha256.as_ref() == Some(&hash);
            format!("{} {has_hash}", outcome["outcome"])
        })
        .collect();
    expect![[r#"
        "ok" true
        "protocolError" true
        "cancelled" true"#]]
    .assert_eq(&shown.join("\n"));
}

#[tokio::test]
async fn a_hundred_calls_are_in_flight_together() {
    for mode in ["counter", "counter --modern"] {
        let (broker, run, server) = one(odd(mode)).await;
        let calls = (0..100).map(|_| call(&run, &server, "wait", json!({ "calls": 100 })));
        let results = in_time(join_all(calls)).await;
        assert_eq!(results, vec![r#"{"inFlight":100}"#; 100]);
        broker.shut_down().await;
    }
}

#[tokio::test]
async fn a_call_that_hangs_times_out_and_is_cancelled() {
    let mut spec = odd("hang-on-call");
    spec.call_timeout = Duration::from_millis(100);
    let (broker, run, server) = one(spec).await;
    expect![[r#"Timeout { server: "hang-on-call", function: "hang_on_call_hang", limit: 100ms, retryable: false }"#]]
    .assert_eq(&in_time(call(&run, &server, "hang", json!({}))).await);
    // Dropped before its answer: cancelled as well.
    let hang = tokio::time::timeout(
        Duration::from_millis(20),
        call(&run, &server, "hang", json!({})),
    );
    assert!(hang.await.is_err());
    while in_time(call(&run, &server, "cancelled", json!({}))).await != "2" {
        tokio::task::yield_now().await;
    }
    let outcomes: Vec<_> = run
        .ledger()
        .into_iter()
        .take(2)
        .map(|line| format!("{:?}", line.outcome))
        .collect();
    assert_eq!(outcomes, ["TimedOut { limit_ms: 100 }", "Cancelled"]);
    broker.shut_down().await;
}

#[tokio::test]
async fn a_result_over_the_limit_costs_only_its_call() {
    let mut spec = odd("big");
    spec.max_message_bytes = 100_000;
    let (broker, run, server) = one(spec).await;
    let (large, small) = futures::join!(
        call(&run, &server, "blob", json!({ "bytes": 10_000_000 })),
        call(&run, &server, "blob", json!({ "bytes": 3 })),
    );
    expect![[r#"Protocol { server: "big", function: "big_blob", code: -32050, message: "the answer is over the limit of 100000 bytes; ask the tool for less (a filter, a page), or raise \"result\" under \"limits\"", data: None, retryable: false }"#]].assert_eq(&large);
    assert_eq!(small, "\"xxx\"");
    let rows = run
        .call(
            target(&server, "rows"),
            raw(json!({ "bytes": 200_000 })),
            CallOptions::default(),
        )
        .await;
    match rows {
        Err(CallError::Protocol { code, .. }) => assert_eq!(code, code::RESULT_TOO_LARGE),
        other => panic!("{other:?}"),
    }
    broker.shut_down().await;
}

#[tokio::test]
async fn ten_megabytes_arrive_whole() {
    let (broker, run, server) = one(odd("big")).await;
    let rows = in_time(call(&run, &server, "rows", json!({ "bytes": 10_000_000 }))).await;
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(10_000_000 / 99));
    let blob = in_time(call(&run, &server, "blob", json!({ "bytes": 10_000_000 }))).await;
    assert_eq!(blob.len(), 10_000_002);
    broker.shut_down().await;
}

#[tokio::test]
async fn a_server_that_dies_ends_its_calls_and_comes_back() {
    let (broker, run, server) = one(odd("dies-on-call")).await;
    for _ in 0..2 {
        let said = in_time(call(&run, &server, "die", json!({}))).await;
        expect![[r#"Protocol { server: "dies-on-call", function: "dies_on_call_die", code: -32000, message: "the server ended with exit code 5 during the call; its last words on stderr: odd server: out of luck", data: None, retryable: false }"#]].assert_eq(&said);
    }
    // Neither call was made a second time.
    assert_eq!(run.ledger().len(), 2);
    broker.shut_down().await;
}

#[tokio::test]
async fn requests_of_the_server_are_declined() {
    let (broker, run, server) = one(odd("asks")).await;
    expect![[r#"{"elicitation/create":{"action":"decline"},"ping":{},"roots/list":{"error":-32601},"sampling/createMessage":{"error":-32601}}"#]].assert_eq(&in_time(call(&run, &server, "ask", json!({}))).await);
    broker.shut_down().await;
}

#[tokio::test]
async fn junk_between_messages_does_no_harm() {
    let (broker, run, server) = one(odd("junk")).await;
    for n in 0..10 {
        let result = in_time(call(&run, &server, "echo", json!({ "n": n }))).await;
        assert_eq!(result, format!(r#""{{\"n\":{n}}}""#));
    }
    broker.shut_down().await;
}

#[tokio::test]
async fn after_shutdown_calls_fail_at_once() {
    let (broker, run, server) = one(odd("flaky")).await;
    broker.shut_down().await;
    expect![[r#"Protocol { server: "flaky", function: "flaky_empty", code: -32000, message: "the connection was closed before the call", data: None, retryable: true }"#]].assert_eq(&in_time(call(&run, &server, "empty", json!({}))).await);
}

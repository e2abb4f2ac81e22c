//! Calls and what comes back: results, errors, time, size, concurrency.

use std::time::Duration;

use callgate_broker::{CallError, CallOptions, LedgerLine, Outcome, code};
use callgate_schema::Declared;
use expect_test::{Expect, expect};
use futures::future::join_all;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{call, in_time, odd, odd_with_env, one, raw, show, target};

#[tokio::test]
async fn results_of_every_kind() {
    let (broker, run, server) = one(odd("flaky")).await;
    let check = async |tool: &str, arguments: Value, expected: Expect| {
        expected.assert_eq(&in_time(call(&run, &server, tool, arguments)).await);
    };
    for value in [
        json!(null),
        json!(true),
        json!(1.5),
        json!("s"),
        json!([1]),
        json!({"a": 1}),
    ] {
        let structured =
            in_time(call(&run, &server, "structured", json!({ "value": value }))).await;
        assert_eq!(structured, value.to_string());
    }
    check(
        "text",
        json!({ "text": "{\"a\":1}" }),
        expect![[r#""{\"a\":1}""#]],
    )
    .await;
    check(
        "lines",
        json!({ "texts": ["a", "é\n"] }),
        expect![[r#""a\né\n""#]],
    )
    .await;
    check(
        "image",
        json!({}),
        expect![[r#"{"content":[{"type":"image","data":"AAEC","mimeType":"image/png"}]}"#]],
    )
    .await;
    check("mixed", json!({}), expect![[r#"{"content":[{"type":"text","text":"three more"},{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"a"}},{"type":"resource_link","uri":"file:///b","name":"b"}]}"#]]).await;
    check("empty", json!({}), expect!["null"]).await;
    check("bare", json!({}), expect!["null"]).await;
    check(
        "unknown_block",
        json!({}),
        expect![[r#"{"content":[{"type":"hologram","data":"?"}]}"#]],
    )
    .await;
    check(
        "echo",
        json!({ "a": [1e300, "\u{2028}", {}] }),
        expect![[r#"{"a":[1e+300," ",{}]}"#]],
    )
    .await;
    check("echo", json!(null), expect!["{}"]).await;
    check("echo", json!([1]), expect![[r#"Protocol { server: "flaky", tool: "echo", code: -32602, message: "the arguments must be one JSON object: invalid type: sequence, expected a map at line 1 column 0", data: None, retryable: false }"#]]).await;
    for (given, shown) in [
        (
            r#"{"a": 590295810358705700000, "b": 1E5}"#,
            r#"{"a":5.902958103587057e+20,"b":100000.0}"#,
        ),
        (
            r#"{"a": 12345678901234567890123}"#,
            "the arguments have an integer that would not be kept exactly: 12345678901234567890123; \
             give it as text, or with an exponent",
        ),
    ] {
        let given = RawValue::from_string(given.to_owned()).expect("JSON");
        let result = run.call(target(&server, "echo"), given, CallOptions::default());
        let said = show(in_time(result).await);
        assert!(said.contains(shown), "{said}");
    }
    check("fails", json!({}), expect![[r#"Tool { server: "flaky", tool: "fails", message: "disk is full", content: RawValue([{"type":"text","text":"disk is full"}]), structured_content: Some(RawValue({"free":0})), retryable: false }"#]]).await;
    check("fails_silently", json!({}), expect![[r#"Tool { server: "flaky", tool: "fails_silently", message: "the tool failed and did not say why", content: RawValue([]), structured_content: None, retryable: false }"#]]).await;
    check("rejects", json!({}), expect![[r#"Protocol { server: "flaky", tool: "rejects", code: -32602, message: "no such row", data: None, retryable: false }"#]]).await;
    check(
        "rejects",
        json!({ "code": -1, "message": "é", "data": { "a": 1 } }),
        expect![[r#"Protocol { server: "flaky", tool: "rejects", code: -1, message: "é", data: Some(RawValue({"a":1})), retryable: false }"#]],
    )
    .await;
    check("not_an_object", json!({}), expect![[r#"Protocol { server: "flaky", tool: "not_an_object", code: -32051, message: "the answer is malformed: invalid type: integer, expected an object at line 1 column 1", data: None, retryable: false }"#]]).await;
    check("input_required", json!({}), expect![[r#"Protocol { server: "flaky", tool: "input_required", code: -32052, message: "the tool wants input in a way that the protocol revision it speaks does not have", data: None, retryable: false }"#]]).await;
    check("no_such_tool", json!({}), expect![[r#"Protocol { server: "flaky", tool: "no_such_tool", code: -32602, message: "no tool `no_such_tool`", data: None, retryable: false }"#]]).await;

    let mut typed = target(&server, "json_text");
    typed.output_schema = Some(Declared::new(json!({})));
    for (text, value) in [("{\"a\": 1}", "{\"a\": 1}"), ("{a", "\"{a\"")] {
        let result = in_time(run.call(
            typed.clone(),
            raw(json!({ "text": text })),
            CallOptions::default(),
        ))
        .await;
        assert_eq!(show(result), value);
    }
    broker.shutdown().await;
}

#[tokio::test]
async fn results_are_held_to_what_the_tool_declares() {
    let (broker, run, server) = one(odd("flaky")).await;
    let integer = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" } },
        "required": ["n"],
    });
    let call = async |tool: &str, schema: &Value, arguments: Value, whole: bool| {
        let mut target = target(&server, tool);
        target.output_schema = Some(Declared::new(schema.clone()));
        let options = CallOptions {
            whole,
            ..CallOptions::default()
        };
        let result = in_time(run.call(target, raw(arguments), options)).await;
        let line = run.ledger().pop().expect("a line");
        format!("{}\n{}", show(result), told(&line))
    };
    let check = async |tool: &str, schema: &Value, arguments: Value, expected: Expect| {
        expected.assert_eq(&call(tool, schema, arguments, false).await);
    };
    check(
        "structured",
        &integer,
        json!({ "value": { "n": 1 } }),
        expect![[r#"
            {"n":1}
            Ok, 7 bytes"#]],
    )
    .await;
    check(
        "structured",
        &integer,
        json!({ "value": { "n": "secret" } }),
        expect![[r#"
            Protocol { server: "flaky", tool: "structured", code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"", data: Some(RawValue({"problems":["/n: value is not of type \"integer\""],"result":{"n":"secret"}})), retryable: false }
            ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"" }, 14 bytes"#]],
    )
    .await;
    check(
        "structured",
        &integer,
        json!({ "value": null }),
        expect![[r#"
            Protocol { server: "flaky", tool: "structured", code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: the value: value is not of type \"object\"", data: Some(RawValue({"problems":["the value: value is not of type \"object\""],"result":null})), retryable: false }
            ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: the value: value is not of type \"object\"" }, 4 bytes"#]],
    )
    .await;
    let whole = call(
        "structured",
        &integer,
        json!({ "value": { "n": "x" } }),
        true,
    )
    .await;
    expect![[r#"
        Protocol { server: "flaky", tool: "structured", code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"", data: Some(RawValue({"problems":["/n: value is not of type \"integer\""],"result":{"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":{"n":"x"}}})), retryable: false }
        ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"" }, 90 bytes"#]].assert_eq(&whole);
    // Without structured content it is the text that counts.
    check(
        "json_text",
        &integer,
        json!({ "text": "{\"n\": 1}" }),
        expect![[r#"
            {"n": 1}
            Ok, 8 bytes"#]],
    )
    .await;
    check(
        "json_text",
        &integer,
        json!({ "text": "one" }),
        expect![[r#"
            Protocol { server: "flaky", tool: "json_text", code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: value is not of type \"object\"", data: Some(RawValue({"problems":["the value: value is not of type \"object\""],"result":"one"})), retryable: false }
            ProtocolError { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: value is not of type \"object\"" }, 5 bytes"#]],
    )
    .await;
    check(
        "empty",
        &integer,
        json!({}),
        expect![[r#"
            Protocol { server: "flaky", tool: "empty", code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: value is not of type \"object\"", data: Some(RawValue({"problems":["the value: value is not of type \"object\""],"result":null})), retryable: false }
            ProtocolError { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: value is not of type \"object\"" }, 4 bytes"#]],
    )
    .await;
    check("image", &integer, json!({}), expect![[r#"
        Protocol { server: "flaky", tool: "image", code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: \"n\" is a required property", data: Some(RawValue({"problems":["the value: \"n\" is a required property"],"result":{"content":[{"type":"image","data":"AAEC","mimeType":"image/png"}]}})), retryable: false }
        ProtocolError { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: \"n\" is a required property" }, 67 bytes"#]]).await;
    // What failed is no result.
    check("fails", &integer, json!({}), expect![[r#"
        Tool { server: "flaky", tool: "fails", message: "disk is full", content: RawValue([{"type":"text","text":"disk is full"}]), structured_content: Some(RawValue({"free":0})), retryable: false }
        ToolError { message: "disk is full" }, 97 bytes"#]]).await;
    // A schema that is not taken keeps no result back.
    let elsewhere = json!({ "$ref": "https://example.com/a.json" });
    check("structured", &elsewhere, json!({ "value": 1 }), expect![[r##"
        1
        Ok, 1 bytes, unchecked: the schema refers to "https://example.com/a.json", which is no part of it; write "#/$defs/NAME""##]]).await;
    // Large ones are looked at on a thread of their own.
    let numbers = json!({ "items": { "type": "integer" } });
    let mut large = vec![json!(7); 800_000];
    let shown = call("structured", &numbers, json!({ "value": large }), false).await;
    assert!(shown.ends_with("]\nOk, 1600001 bytes"), "{}", shown.len());
    large.push(json!("x"));
    let shown = call("structured", &numbers, json!({ "value": large }), false).await;
    expect![[r#"ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema" }, 1600005 bytes"#]].assert_eq(shown.lines().last().expect("a line"));
    broker.shutdown().await;
}

/// What the ledger has of how a call ended.
fn told(line: &LedgerLine) -> String {
    let bytes = line.result_bytes.map(|bytes| format!(", {bytes} bytes"));
    let outcome = match &line.outcome {
        Outcome::Ok => "Ok".to_owned(),
        other => format!("{other:?}"),
    };
    let unchecked = line
        .unchecked
        .as_ref()
        .map(|it| format!(", unchecked: {it}"));
    format!(
        "{outcome}{}{}",
        bytes.unwrap_or_default(),
        unchecked.unwrap_or_default()
    )
}

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
    broker.shutdown().await;
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
    broker.shutdown().await;
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
async fn a_hundred_calls_are_in_flight_together() {
    for mode in ["counter", "counter --modern"] {
        let (broker, run, server) = one(odd(mode)).await;
        let calls = (0..100).map(|_| call(&run, &server, "wait", json!({ "calls": 100 })));
        let results = in_time(join_all(calls)).await;
        assert_eq!(results, vec![r#"{"inFlight":100}"#; 100]);
        broker.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_that_hangs_times_out_and_is_cancelled() {
    let mut spec = odd("hang-on-call");
    spec.call_timeout = Duration::from_millis(100);
    let (broker, run, server) = one(spec).await;
    expect![[
        r#"Timeout { server: "hang-on-call", tool: "hang", limit: 100ms, retryable: false }"#
    ]]
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
    broker.shutdown().await;
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
    expect![[r#"Protocol { server: "big", tool: "blob", code: -32050, message: "the answer is over the limit of 100000 bytes; ask the tool for less (a filter, a page), or raise \"result\" under \"limits\"", data: None, retryable: false }"#]].assert_eq(&large);
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
    broker.shutdown().await;
}

#[tokio::test]
async fn ten_megabytes_arrive_whole() {
    let (broker, run, server) = one(odd("big")).await;
    let rows = in_time(call(&run, &server, "rows", json!({ "bytes": 10_000_000 }))).await;
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(10_000_000 / 99));
    let blob = in_time(call(&run, &server, "blob", json!({ "bytes": 10_000_000 }))).await;
    assert_eq!(blob.len(), 10_000_002);
    broker.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_ends_its_calls_and_comes_back() {
    let (broker, run, server) = one(odd("dies-on-call")).await;
    for _ in 0..2 {
        let said = in_time(call(&run, &server, "die", json!({}))).await;
        expect![[r#"Protocol { server: "dies-on-call", tool: "die", code: -32000, message: "the server ended with exit code 5 during the call; its last words on stderr: odd server: out of luck", data: None, retryable: false }"#]].assert_eq(&said);
    }
    // Neither call was made a second time.
    assert_eq!(run.ledger().len(), 2);
    broker.shutdown().await;
}

#[tokio::test]
async fn requests_of_the_server_are_declined() {
    let (broker, run, server) = one(odd("asks")).await;
    expect![[r#"{"elicitation/create":{"action":"decline"},"ping":{},"roots/list":{"error":-32601},"sampling/createMessage":{"error":-32601}}"#]].assert_eq(&in_time(call(&run, &server, "ask", json!({}))).await);
    broker.shutdown().await;
}

#[tokio::test]
async fn junk_between_messages_does_no_harm() {
    let (broker, run, server) = one(odd("junk")).await;
    for n in 0..10 {
        let result = in_time(call(&run, &server, "echo", json!({ "n": n }))).await;
        assert_eq!(result, format!(r#""{{\"n\":{n}}}""#));
    }
    broker.shutdown().await;
}

#[tokio::test]
async fn after_shutdown_calls_fail_at_once() {
    let (broker, run, server) = one(odd("flaky")).await;
    broker.shutdown().await;
    expect![[r#"Protocol { server: "flaky", tool: "empty", code: -32000, message: "the connection was closed before the call", data: None, retryable: true }"#]].assert_eq(&in_time(call(&run, &server, "empty", json!({}))).await);
}

//! The results of calls, and their check against the tools' output schemas.

use callgate_gate::{CallOptions, LedgerLine, Outcome};
use callgate_schema::Declared;
use expect_test::{Expect, expect};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{call, in_time, odd, one, raw, show, target};

#[tokio::test]
async fn results_of_every_kind() {
    let (servers, run, server) = one(odd("flaky")).await;
    let check = async |tool: &str, arguments: Value, expected: Expect| {
        expected.assert_eq(&in_time(call(&run, &server, tool, arguments)).await);
    };
    for value in ["null", "true", "1.5", "\"s\"", "[1]", "{\"a\":1}"] {
        let given: Value = serde_json::from_str(value).expect("JSON");
        let given = json!({ "value": given });
        let structured = in_time(call(&run, &server, "structured", given)).await;
        assert_eq!(structured, value);
    }
    let text = json!({ "text": "{\"a\":1}" });
    check("text", text, expect![[r#""{\"a\":1}""#]]).await;
    check("mixed", json!({}), expect![[r#"{"content":[{"type":"text","text":"three more"},{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"a"}},{"type":"resource_link","uri":"file:///b","name":"b"}]}"#]]).await;
    let odd = json!({ "a": [1e300, "\u{2028}", {}] });
    check("echo", odd, expect![[r#"{"a":[1e+300," ",{}]}"#]]).await;
    check("echo", json!(null), expect!["{}"]).await;
    check("echo", json!([1]), expect![[r#"CallError { server: "flaky", function: "flaky_echo", kind: Protocol { code: -32602, message: "the arguments must be one JSON object", data: None, retryable: false } }"#]]).await;
    let many = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(1 << 20));
    for (given, shown) in [
        (
            r#"{"a": -9223372036854775808, "b": 1E5}"#,
            r#"{"a":-9223372036854775808,"b":100000.0}"#,
        ),
        (
            r#"{"a": 1, "a": 18446744073709551615}"#,
            r#"{"a":18446744073709551615}"#,
        ),
        (
            &many,
            "the arguments must have at most 1048576 values, and have more; give some of them",
        ),
    ] {
        let given = RawValue::from_string(given.to_owned()).expect("JSON");
        let result = run.call(target(&server, "echo"), given, CallOptions::default());
        let said = show(in_time(result).await);
        assert!(said.contains(shown), "{said}");
    }
    check("fails", json!({}), expect![[r#"CallError { server: "flaky", function: "flaky_fails", kind: Tool { message: "disk is full", content: RawValue([{"type":"text","text":"disk is full"}]), structured_content: Some(RawValue({"free":0})), retryable: false } }"#]]).await;
    check("fails_silently", json!({}), expect![[r#"CallError { server: "flaky", function: "flaky_fails_silently", kind: Tool { message: "the tool failed and did not say why", content: RawValue([]), structured_content: None, retryable: false } }"#]]).await;
    check("rejects", json!({}), expect![[r#"CallError { server: "flaky", function: "flaky_rejects", kind: Protocol { code: -32602, message: "no such row", data: None, retryable: false } }"#]]).await;
    let rejected = json!({ "code": -1, "message": "é", "data": { "a": 1 } });
    check("rejects", rejected, expect![[r#"CallError { server: "flaky", function: "flaky_rejects", kind: Protocol { code: -1, message: "é", data: Some(RawValue({"a":1})), retryable: false } }"#]]).await;
    check("not_an_object", json!({}), expect![[r#"CallError { server: "flaky", function: "flaky_not_an_object", kind: Protocol { code: -32051, message: "the answer is malformed: it is not an object", data: None, retryable: false } }"#]]).await;
    check("input_required", json!({}), expect![[r#"CallError { server: "flaky", function: "flaky_input_required", kind: Protocol { code: -32052, message: "the tool asks for input in a way that its protocol revision does not have", data: None, retryable: false } }"#]]).await;
    check("no_such_tool", json!({}), expect![[r#"CallError { server: "flaky", function: "flaky_no_such_tool", kind: Protocol { code: -32056, message: "its server no longer lists the tool; nothing was done", data: None, retryable: true } }"#]]).await;

    let mut typed = target(&server, "json_text");
    typed.output_schema = Some(Declared::new(json!({})));
    for (text, value) in [("{\"a\": 1}", "{\"a\": 1}"), ("{a", "\"{a\"")] {
        let arguments = raw(json!({ "text": text }));
        let result = run.call(typed.clone(), arguments, CallOptions::default());
        assert_eq!(show(in_time(result).await), value);
    }
    servers.shut_down().await;
}

#[tokio::test]
async fn results_must_fit_the_output_schema() {
    let (servers, run, server) = one(odd("flaky")).await;
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
    let elsewhere = json!({ "$ref": "https://example.com/a.json" });
    let mut said = String::new();
    let n = |value: Value| json!({ "value": { "n": value } });
    let text = json!({ "text": "{\"n\": 1}" });
    for (tool, schema, arguments, whole) in [
        ("structured", &integer, n(json!(1)), false),
        ("structured", &integer, n(json!("secret")), false),
        ("structured", &integer, n(json!("x")), true),
        // Without structured content, the text is checked.
        ("json_text", &integer, text, false),
        ("json_text", &integer, json!({ "text": "one" }), false),
        ("image", &integer, json!({}), false),
        // An error is not checked against the schema.
        ("fails", &integer, json!({}), false),
        // A schema that cannot be used keeps no result from the script.
        ("structured", &elsewhere, json!({ "value": 1 }), false),
    ] {
        said += &call(tool, schema, arguments, whole).await;
        said.push('\n');
    }
    expect![[r##"
        {"n":1}
        Ok, 7 bytes
        CallError { server: "flaky", function: "flaky_structured", kind: Protocol { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"", data: Some(RawValue({"problems":["/n: value is not of type \"integer\""],"result":{"n":"secret"}})), retryable: false } }
        ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"" }, 14 bytes
        CallError { server: "flaky", function: "flaky_structured", kind: Protocol { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"", data: Some(RawValue({"problems":["/n: value is not of type \"integer\""],"result":{"content":[{"type":"text","text":"see structuredContent"}],"structuredContent":{"n":"x"}}})), retryable: false } }
        ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema: /n: value is not of type \"integer\"" }, 90 bytes
        {"n": 1}
        Ok, 8 bytes
        CallError { server: "flaky", function: "flaky_json_text", kind: Protocol { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: value is not of type \"object\"", data: Some(RawValue({"problems":["the value: value is not of type \"object\""],"result":"one"})), retryable: false } }
        ProtocolError { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: value is not of type \"object\"" }, 5 bytes
        CallError { server: "flaky", function: "flaky_image", kind: Protocol { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: \"n\" is a required property", data: Some(RawValue({"problems":["the value: \"n\" is a required property"],"result":{"content":[{"type":"image","data":"AAEC","mimeType":"image/png"}]}})), retryable: false } }
        ProtocolError { code: -32055, message: "the call was made; the tool has an outputSchema and answered without structuredContent, and what it answered does not fit: the value: \"n\" is a required property" }, 67 bytes
        CallError { server: "flaky", function: "flaky_fails", kind: Tool { message: "disk is full", content: RawValue([{"type":"text","text":"disk is full"}]), structured_content: Some(RawValue({"free":0})), retryable: false } }
        ToolError { message: "disk is full" }, 97 bytes
        1
        Ok, 1 bytes, unchecked: the schema refers to "https://example.com/a.json", which is not a part of it; write "#/$defs/NAME"
    "##]].assert_eq(&said);
    // Large results are checked on a thread of their own.
    let numbers = json!({ "items": { "type": "integer" } });
    let mut large = vec![json!(7); 800_000];
    let shown = call("structured", &numbers, json!({ "value": large }), false).await;
    assert!(shown.ends_with("]\nOk, 1600001 bytes"), "{}", shown.len());
    large.push(json!("x"));
    let shown = call("structured", &numbers, json!({ "value": large }), false).await;
    expect![[r#"ProtocolError { code: -32055, message: "the call was made, and its result does not fit the tool's outputSchema" }, 1600005 bytes"#]].assert_eq(shown.lines().last().expect("a line"));
    servers.shut_down().await;
}

/// The end of a call in the ledger: outcome, size, and why the result was not checked.
fn told(line: &LedgerLine) -> String {
    let bytes = line.result_bytes.map(|bytes| format!(", {bytes} bytes"));
    let outcome = match &line.outcome {
        Outcome::Ok => "Ok".to_owned(),
        other => format!("{other:?}"),
    };
    let unchecked = line.unchecked.as_ref();
    let unchecked = unchecked.map(|it| format!(", unchecked: {it}"));
    outcome + &bytes.unwrap_or_default() + &unchecked.unwrap_or_default()
}

//! `callgate serve --http` for old SDKs, plain HTTP clients and probes.

use callgate_tests::served::{Served, hello, http, said};
use callgate_tests::{Workbench, odd};
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// A message of a client in this session, of this revision, with this `Accept`.
async fn send(
    served: &Served,
    message: &Value,
    headers: &[(&str, &str)],
    accept: Option<&str>,
) -> Response {
    let mut request = http().post(&served.url).body(message.to_string());
    request = request.header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(accept) = accept {
        request = request.header("Accept", accept);
    }
    request.send().await.expect("an answer")
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    let value = answer.headers().get(name);
    value.map_or("", |value| value.to_str().expect("text"))
}

fn call(code: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "run_script", "arguments": { "code": code } } })
}

/// SDKs before 2025-11-25 parse each event's data as JSON.
#[tokio::test]
async fn priming_events_depend_on_protocol_revision() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    for (agreed, version, is_primed) in [
        ("2025-03-26", None, false),
        ("2025-06-18", None, false),
        ("2025-06-18", Some("2025-06-18"), false),
        ("2025-11-25", Some("2025-11-25"), true),
    ] {
        let mut hello = hello();
        hello["params"]["protocolVersion"] = agreed.into();
        let begun = served.post(&hello).send().await.expect("an answer");
        let session = header(&begun, "mcp-session-id").to_owned();
        let begun = begun.text().await.expect("a text");
        assert!(begun.starts_with("data: {"), "{agreed}: {begun}");
        assert!(!begun.contains("retry:"), "{agreed}: {begun}");
        let mut headers = vec![("Mcp-Session-Id", &*session)];
        headers.extend(version.map(|version| ("MCP-Protocol-Version", version)));
        let both = Some("text/event-stream, application/json");
        let answer = send(&served, &call("return 1"), &headers, both).await;
        let text = answer.text().await.expect("a text");
        let datas = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let (empty, full): (Vec<_>, Vec<_>) = datas.partition(|data| data.trim().is_empty());
        assert_eq!(!empty.is_empty(), is_primed, "{agreed}: {text}");
        assert_eq!(full.len(), 1, "{agreed}: {text}");
        // Without priming, the head of the session's stream comes alone.
        let stream = http().get(&served.url).header("Accept", "*/*");
        let stream = headers
            .iter()
            .fold(stream, |it, (name, value)| it.header(*name, *value));
        let mut stream = stream.send().await.expect("a stream");
        assert_eq!(header(&stream, "content-type"), "text/event-stream");
        if is_primed {
            let first = stream.chunk().await.expect("a chunk").expect("an event");
            assert!(first.starts_with(b"data: \n"), "{first:?}");
        }
        let end = http()
            .delete(&served.url)
            .header("Mcp-Session-Id", &session);
        assert_eq!(end.send().await.expect("an answer").status(), 204);
        let again = http()
            .delete(&served.url)
            .header("Mcp-Session-Id", &session);
        assert_eq!(again.send().await.expect("an answer").status(), 404);
    }
}

#[tokio::test]
async fn answers_have_the_accepted_form() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let (stream, json) = ("text/event-stream", "application/json");
    for (accept, kind) in [
        (None, stream),
        (Some("*/*"), stream),
        (Some("text/event-stream"), stream),
        (Some("application/json;q=0.5, text/*"), stream),
        (Some("APPLICATION/JSON"), json),
        (Some("application/*;q=0.9, text/html"), json),
        (Some("application/json, text/event-stream;q=0"), json),
    ] {
        let begun = send(&served, &hello(), &[], accept).await;
        assert_eq!(begun.status(), 200, "{accept:?}");
        assert_eq!(header(&begun, "content-type"), kind, "{accept:?}");
        let session = header(&begun, "mcp-session-id").to_owned();
        let begun = begun.text().await.expect("a text");
        let begun = begun.strip_prefix("data:").unwrap_or(&begun);
        let begun: Value = serde_json::from_str(begun.trim()).expect("one message");
        assert_eq!(
            begun["result"]["protocolVersion"], "2025-11-25",
            "{accept:?}"
        );
        let headers = [("Mcp-Session-Id", &*session)];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(send(&served, &ready, &headers, accept).await.status(), 202);
        let mut call = call("return 6 * 7");
        call["params"]["_meta"] = json!({ "progressToken": 1 });
        let answer = send(&served, &call, &headers, accept).await;
        assert_eq!(header(&answer, "content-type"), kind, "{accept:?}");
        let text = answer.text().await.expect("a text");
        let mut messages = text.lines().filter(|line| !line.is_empty());
        let last = messages
            .rfind(|line| line.contains('{'))
            .expect("a message");
        let last: Value = serde_json::from_str(last.strip_prefix("data:").unwrap_or(last).trim())
            .expect("a message");
        assert_eq!(
            (&last["id"], &last["result"]["isError"]),
            (&json!(7), &json!(false))
        );
    }
    let modern = served.modern("tools/list", json!({}), &json!({}));
    let mut modern = modern.build().expect("a request");
    modern
        .headers_mut()
        .insert("accept", "Application/Json".parse().expect("a value"));
    let listed = http().execute(modern).await.expect("an answer");
    assert_eq!(header(&listed, "content-type"), json);
    let listed: Value = listed.json().await.expect("one message");
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    for accept in ["text/html", "application/json;q=0, text/plain"] {
        let refused = said(send(&served, &hello(), &[], Some(accept)).await).await;
        assert!(
            refused.starts_with("406 -32600 to 1: the Accept"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn byte_order_mark_before_a_body_is_skipped() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let begun = served.post_text(format!("\u{feff}{}", hello()));
    let begun = said(begun.send().await.expect("an answer")).await;
    assert!(begun.starts_with("200 "), "{begun}");
    let run = http().post(served.url.replace("/mcp", "/v1/run"));
    let run = run.header("Content-Type", "application/json");
    let run = run.body("\u{feff}{\"code\":\"return 6 * 7\"}");
    let report: Value = run
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(report["status"], "completed", "{report}");
    let twice = served.post_text(format!("\u{feff}\u{feff}{}", hello()));
    let twice = said(twice.send().await.expect("an answer")).await;
    assert!(twice.starts_with("400 -32700"), "{twice}");
}

/// A question would come before the answer, and there is no stream for it.
#[tokio::test]
async fn json_only_client_is_not_asked() {
    let bench = Workbench::with_config(json!({ "mcpServers": { "odd": odd("asks") } }));
    let served = Served::start(&bench, &[]);
    let mut hello = hello();
    hello["params"]["capabilities"] = json!({ "elicitation": {}, "roots": {} });
    let json = Some("application/json");
    let begun = send(&served, &hello, &[], json).await;
    let session = header(&begun, "mcp-session-id").to_owned();
    let headers = [
        ("Mcp-Session-Id", &*session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let ask = call("return await odd_ask({})");
    let answer = send(&served, &ask, &headers, json).await;
    let answer: Value = answer.json().await.expect("one message");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str();
    assert!(
        text.is_some_and(|text| text.contains("no one to ask")),
        "{answer}"
    );
}

#[tokio::test]
async fn deleted_session_ends_its_runs() {
    let bench = Workbench::demo();
    let served = Served::start(&bench, &[]);
    let (ended, other) = (served.session(None).await, served.session(None).await);
    let own_tool = async |session: &str, name: &str, arguments: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": name, "arguments": arguments } });
        let headers = [("Mcp-Session-Id", session)];
        let answer = send(&served, &call, &headers, Some("application/json")).await;
        answer.text().await.expect("a text")
    };
    let begin = async |session: &str| {
        let code = "for (;;) await ticketing_createIssue({ title: 'A', body: 'B' })";
        let arguments = json!({ "code": code, "limits": { "waitMs": 0 } });
        let said = own_tool(session, "run_script", arguments).await;
        let at = said.find("r-").expect("an id");
        said[at..at + 18].to_owned()
    };
    let ending = [begin(&ended).await, begin(&ended).await];
    let going_on = begin(&other).await;
    let delete = http().delete(&served.url).header("Mcp-Session-Id", &ended);
    assert_eq!(delete.send().await.expect("an answer").status(), 204);
    for run in ending {
        let wait = json!({ "run": run, "waitMs": 50_000 });
        let said = own_tool(&other, "wait", wait).await;
        assert!(said.contains("cancelled"), "{said}");
    }
    let wait = json!({ "run": going_on, "waitMs": 0 });
    let said = own_tool(&other, "wait", wait).await;
    assert!(said.contains("still running"), "{said}");
}

#[tokio::test]
async fn probes_need_neither_token_nor_host() {
    let token = "0123456789abcdef0123456789abcdef";
    let rate = json!({ "perSecond": 1, "burst": 1 });
    let config = json!({ "serve": { "http": { "bearer": token, "rate": rate } } });
    let served = Served::start(&Workbench::with_config(config), &[]);
    let probe = async |method: Method, path: &str| {
        let url = format!("http://{}{path}", served.authority());
        let request = http().request(method, url).header("Host", "10.1.2.3:9");
        let request = request.header("Origin", "https://other.example");
        request.send().await.expect("an answer")
    };
    for _ in 0..3 {
        let answer = probe(Method::GET, "/healthz").await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text().await.expect("a text"), "ok\n");
        let answer = probe(Method::HEAD, "/healthz?verbose").await;
        assert_eq!(
            (answer.status().as_u16(), header(&answer, "content-length")),
            (200, "3")
        );
    }
    assert_eq!(probe(Method::POST, "/healthz").await.status(), 405);
    for path in ["/mcp", "/healthz/", "/healthz/mcp", "//healthz"] {
        assert_eq!(probe(Method::GET, path).await.status(), 403, "{path}");
    }
}

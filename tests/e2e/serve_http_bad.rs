//! Requests to `callgate serve --http` that should not be there.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use callgate_tests::Workbench;
use serde_json::json;

use callgate_tests::served::{Served, hello, http, said};

/// What is answered to these bytes, until the other end closes.
fn raw(served: &Served, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.authority()).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    // What is refused early may be closed before it was all sent.
    let _closed = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer.
fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn messages_that_are_none() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let session = served.session(None).await;
    let post = async |body: &str| {
        let request = served
            .post_text(body.to_owned())
            .header("Mcp-Session-Id", &session);
        said(request.send().await.expect("an answer")).await
    };
    for (body, expected) in [
        (
            "",
            "400 -32700 to nothing: the body is not JSON (line 1, column 0)",
        ),
        (
            "\"hello\"",
            "400 -32600 to nothing: a JSON-RPC message is an object",
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":5}",
            "400 -32600 to 5: a message has one of \"method\", \"result\" and \"error\"",
        ),
    ] {
        assert_eq!(post(body).await, expected, "{body}");
    }
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{{\"a\":{}{}}}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(
        post(&deep).await,
        "400 -32600 to 1: the message is nested deeper than 100 levels"
    );
    // The session is none the worse.
    let list = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    let answer = post(list).await;
    assert!(
        answer.starts_with("200 ") && answer.contains("\"id\":9"),
        "{answer}"
    );
    let unknown = post(r#"{"jsonrpc":"2.0","id":9,"method":"no/such"}"#).await;
    assert!(
        unknown.contains("-32601") && unknown.contains(r#"there is no method \"no/such\""#),
        "{unknown}"
    );
    let wrong = post(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}"#).await;
    let why = "the params of tools/call do not have its form";
    assert!(wrong.contains("-32602") && wrong.contains(why), "{wrong}");
}

#[tokio::test]
async fn headers_that_are_wrong() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let at = |path: &str| served.url.replace("/mcp", path);
    let send = async |request: reqwest::RequestBuilder| {
        said(request.send().await.expect("an answer")).await
    };
    let post = || http().post(&served.url).body(hello().to_string());
    let json = "application/json";
    assert_eq!(
        send(
            post()
                .header("Content-Type", "text/plain")
                .header("Accept", json)
        )
        .await,
        "415 -32600 to nothing: the body must have the Content-Type application/json"
    );
    assert_eq!(
        send(post().header("Content-Type", json).header("Accept", json)).await,
        "406 -32600 to 1: Not Acceptable: Client must accept both application/json and \
         text/event-stream"
    );
    let list = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" });
    assert_eq!(
        send(served.post(&list)).await,
        "400 -32600 to \"a\": Bad Request: Session ID is required"
    );
    let gone = "there is no such session, or it has ended; begin one with initialize";
    for session in ["no-such", ""] {
        let request = served.post(&list).header("Mcp-Session-Id", session);
        assert_eq!(
            send(request).await,
            format!("404 -32600 to \"a\": {gone}"),
            "{session}"
        );
        let request = http().delete(&served.url).header("Mcp-Session-Id", session);
        assert_eq!(
            send(request).await,
            format!("404 -32600 to nothing: {gone}"),
            "{session}"
        );
        let request = http().get(&served.url).header("Mcp-Session-Id", session);
        let request = request.header("Accept", "text/event-stream");
        assert_eq!(
            send(request).await,
            format!("404 -32600 to nothing: {gone}"),
            "{session}"
        );
    }
    let version = served
        .post(&hello())
        .header("MCP-Protocol-Version", "1999-01-01");
    let answer = send(version).await;
    assert!(answer.starts_with("400 -32600 to 1: "), "{answer}");
    let put = send(http().put(&served.url)).await;
    assert!(put.starts_with("405 "), "{put}");
    assert_eq!(
        send(http().get(at("/"))).await,
        "404 -32600 to nothing: there is nothing at this path; MCP is at /mcp, and \
         /v1/openapi.json says what is at /v1"
    );
}

/// A page whose name leads to loopback, and pages of others.
#[tokio::test]
async fn names_of_others() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &["--allowed-host", "callgate.test"]);
    let with = async |name: &str, value: &str| {
        let request = served.post(&hello()).header(name, value);
        said(request.send().await.expect("an answer")).await
    };
    let host = with("Host", "evil.example").await;
    assert!(
        host.starts_with("403 -32600 to nothing: the Host header names"),
        "{host}"
    );
    let origin = with("Origin", "https://evil.example").await;
    assert!(
        origin.starts_with("403 -32600 to nothing: pages of this Origin"),
        "{origin}"
    );
    assert!(with("Host", "callgate.test").await.starts_with("200 "));
    assert!(with("Host", "localhost").await.starts_with("200 "));
    let own = format!("http://{}", served.authority());
    assert!(with("Origin", &own).await.starts_with("200 "));
    // Nothing but the names is looked at before them.
    let elsewhere = served.url.replace("/mcp", "/v1/tools");
    let answer = http()
        .get(elsewhere)
        .header("Host", "evil.example")
        .send()
        .await;
    assert_eq!(answer.expect("an answer").status(), 403);
    let two = raw(
        &served,
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(status(&two), "400", "{two}");
    let none = raw(&served, b"POST /mcp HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&none), "400", "{none}");
    let target = raw(
        &served,
        b"POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(matches!(status(&target), "400" | "403"), "{target}");
}

#[tokio::test]
async fn what_is_too_large() {
    let bench = Workbench::with_config(json!({ "serve": { "http": { "maxBody": "1KiB" } } }));
    let served = Served::start(&bench, &[]);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(2000));
    let answer = said(
        served
            .post_text(large.clone())
            .send()
            .await
            .expect("an answer"),
    )
    .await;
    assert_eq!(
        answer,
        "413 -32600 to nothing: the body has more than 1024 bytes; \"maxBody\" is the limit"
    );
    // Without a length, and with one that is not true.
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nConnection: close\r\n";
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n800\r\n{}\r\n0\r\n\r\n",
        "x".repeat(2048)
    );
    assert_eq!(status(&raw(&served, chunked.as_bytes())), "413");
    let announced = format!("{head}Content-Length: 99999999999\r\n\r\n");
    assert_eq!(status(&raw(&served, announced.as_bytes())), "413");
    let both = format!("{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert!(status(&raw(&served, both.as_bytes())).starts_with('4'));
    let header = format!("{head}X-Filling: {}\r\n\r\n", "x".repeat(1 << 17));
    assert_eq!(status(&raw(&served, header.as_bytes())), "431");
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    assert_eq!(
        status(&raw(&served, format!("{head}{many}\r\n").as_bytes())),
        "431"
    );
    for nonsense in [
        "\0\0\0\0",
        "GET",
        "\x16\x03\x01\x02\x00",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = raw(&served, format!("{nonsense}\r\n\r\n").as_bytes());
        assert!(
            matches!(status(&answer), "400" | "none"),
            "{nonsense:?}: {answer}"
        );
    }
    served.session(None).await;
}

/// Who sends a head or a body drop by drop is not waited for.
#[tokio::test]
async fn what_is_too_slow() {
    let bench = Workbench::with_config(json!({ "serve": { "http": { "requestTime": "200ms" } } }));
    let served = Served::start(&bench, &[]);
    let head = raw(&served, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
    assert!(matches!(status(&head), "408" | "none"), "{head}");
    let body = raw(
        &served,
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{",
    );
    assert_eq!(status(&body), "408", "{body}");
    let idle = raw(&served, b"");
    assert_eq!(idle, "");
}

/// More requests and streams of one user than there may be.
#[tokio::test]
async fn what_is_too_many() {
    let bench = Workbench::with_config(json!({ "serve": { "http": { "requests": 2 } } }));
    let served = Served::start(&bench, &[]);
    let session = served.session(None).await;
    let stream = async || {
        let request = http()
            .get(&served.url)
            .header("Accept", "text/event-stream");
        let request = request.header("Mcp-Session-Id", &session);
        request.send().await.expect("a stream")
    };
    let streams = [stream().await, stream().await];
    assert!(streams.iter().all(|stream| stream.status() == 200));
    assert_eq!(
        said(stream().await).await,
        "429 -32600 to nothing: there are 2 requests and streams of yours already; end some first"
    );
}

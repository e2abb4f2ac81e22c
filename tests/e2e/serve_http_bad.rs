//! Requests that `callgate serve --http` refuses.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use callgate_tests::{Workbench, odd};
use serde_json::json;

use callgate_tests::served::{Served, hello, http, said};

/// The answer to these bytes, read until the server closes the connection.
fn raw(served: &Served, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.authority()).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a limit");
    // The server may refuse the request and close before all bytes are sent.
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
async fn malformed_messages_get_json_rpc_errors() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let session = served.session(None).await;
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{nested}}}}}"#);
    for case in r#"
        → 400 -32700 to nothing: the body is not JSON (line 1, column 0)
        "hello" → 400 -32600 to nothing: a JSON-RPC message is an object
        {"jsonrpc":"2.0","id":5} → 400 -32600 to 5: a message has one of "method", "result" and "error"
        DEEP → 400 -32600 to 1: the message is nested deeper than 100 levels
        {"jsonrpc":"2.0","id":9,"method":"ping"} → "id":9
        {"jsonrpc":"2.0","id":9,"method":"no/such"} → unknown method \"no/such\"
        {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}} → the params do not match tools/call: \"name\" must be a string"#
        .lines()
        .skip(1)
    {
        let (body, expected) = case.split_once("→ ").expect(case);
        let body = body.trim().replace("DEEP", &deep);
        let request = served
            .post_text(body)
            .header("Mcp-Session-Id", &session);
        let answer = said(request.send().await.expect("an answer")).await;
        assert!(answer.contains(expected), "{answer}, not {expected}");
    }
}

#[tokio::test]
async fn wrong_headers_paths_and_methods_are_refused() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let post = |kind: &str| {
        let request = http().post(&served.url).body(hello().to_string());
        request.header("Content-Type", kind)
    };
    let list = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" });
    let gone = "there is no such session, or it has ended; start one with initialize";
    let version = served
        .post(&hello())
        .header("MCP-Protocol-Version", "1999-01-01");
    let form = "406 -32600 to 1: the Accept header excludes every form";
    let no_json = "415 -32600 to nothing: the body must have the Content-Type application/json";
    let elsewhere = http().get(served.url.replace("/mcp", "/"));
    let mut requests: Vec<_> = [
        (post("text/plain"), no_json),
        (post("application/json").header("Accept", "text/html"), form),
        (served.post(&list), "400 -32600 to \"a\": Bad Request"),
        (version, "400 -32600 to 1: "),
        (http().put(&served.url), "405 "),
        (
            elsewhere,
            "404 -32600 to nothing: nothing is at this path; MCP is at /mcp",
        ),
    ]
    .map(|(request, expected)| (request, expected.to_owned()))
    .into();
    for session in ["no-such", ""] {
        let stream = http()
            .get(&served.url)
            .header("Accept", "text/event-stream");
        for (request, to) in [
            (served.post(&list), "\"a\""),
            (http().delete(&served.url), "nothing"),
            (stream, "nothing"),
        ] {
            let request = request.header("Mcp-Session-Id", session);
            requests.push((request, format!("404 -32600 to {to}: {gone}")));
        }
    }
    for (request, expected) in requests {
        let answer = said(request.send().await.expect("an answer")).await;
        assert!(answer.starts_with(&expected), "{answer}, not {expected}");
    }
}

#[tokio::test]
async fn compressed_bodies_are_refused_by_name() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    // The first bytes of a gzip file, and a body that is not encoded at all.
    let packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec();
    for (encoding, body, expected) in [
        (
            "gzip",
            packed,
            "415 -32600 to nothing: the body has the Content-Encoding \"gzip\"",
        ),
        (
            "identity, br",
            hello().to_string().into_bytes(),
            "415 -32600 to nothing: the body has the Content-Encoding \"br\"",
        ),
        ("identity", hello().to_string().into_bytes(), "200 "),
    ] {
        let request = served
            .post_text(String::new())
            .body(body)
            .header("Content-Encoding", encoding);
        let answer = request.send().await.expect("an answer");
        let accepted = answer.headers().get("Accept-Encoding").cloned();
        let answer = said(answer).await;
        assert!(answer.starts_with(expected), "{answer}, not {expected}");
        let is_refused = answer.starts_with("415");
        assert_eq!(accepted.is_some_and(|it| it == "identity"), is_refused);
    }
}

/// DNS rebinding, and pages of other origins.
#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &["--allowed-host", "callgate.test"]);
    let own = format!("http://{}", served.authority());
    let (host, origin) = (
        "403 -32600 to nothing: the Host",
        "403 -32600 to nothing: pages of",
    );
    for (name, value, expected) in [
        ("Host", "evil.example", host),
        ("Origin", "https://evil.example", origin),
        ("Host", "callgate.test", "200 "),
        ("Host", "localhost", "200 "),
        ("Origin", &own, "200 "),
    ] {
        let request = served.post(&hello()).header(name, value);
        let answer = said(request.send().await.expect("an answer")).await;
        assert!(answer.starts_with(expected), "{name}: {value}: {answer}");
    }
    let twice = "Host: localhost\r\nHost: evil.example\r\n";
    for (line, headers, expected) in [
        // Host names are checked before the path and the method.
        ("GET /v1/tools", "Host: evil.example\r\n", ["403"; 2]),
        ("POST /mcp", twice, ["400"; 2]),
        ("POST /mcp", "", ["400"; 2]),
        (
            "POST http://a.example/mcp",
            "Host: localhost\r\n",
            ["400", "403"],
        ),
    ] {
        let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        let answer = raw(&served, request.as_bytes());
        assert!(expected.contains(&status(&answer)), "{request}: {answer}");
    }
}

#[tokio::test]
async fn oversized_requests_are_refused() {
    let bench = Workbench::with_config(json!({ "serve": { "http": { "maxBody": "1KiB" } } }));
    let served = Served::start(&bench, &[]);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(2000));
    let answer = said(served.post_text(large).send().await.expect("an answer")).await;
    let expected = "the body has more than 1 KiB; \"maxBody\" is the limit";
    assert_eq!(answer, format!("413 -32600 to nothing: {expected}"));
    // A body without a length, and a body with a false length.
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nConnection: close\r\n";
    let filling = "x".repeat(2048);
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    for (rest, expected) in [
        (format!("{chunked}800\r\n{filling}\r\n0\r\n\r\n"), "413"),
        ("Content-Length: 99999999999\r\n\r\n".to_owned(), "413"),
        (format!("Content-Length: 3\r\n{chunked}0\r\n\r\n"), "4"),
        (
            format!("X-Filling: {}\r\n{chunked}0\r\n\r\n", filling.repeat(31)),
            "400",
        ),
        (format!("X-Filling: {}\r\n\r\n", filling.repeat(33)), "431"),
        (format!("X-Filling: {}\r\n\r\n", filling.repeat(64)), "431"),
        (format!("{many}\r\n"), "431"),
    ] {
        let answer = raw(&served, format!("{head}{rest}").as_bytes());
        let status = status(&answer);
        assert!(status.starts_with(expected), "{expected}: {answer}");
    }
    let http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for nonsense in ["\0\0\0\0", "GET", "\x16\x03\x01\x02\x00", http2] {
        let answer = raw(&served, format!("{nonsense}\r\n\r\n").as_bytes());
        let status = status(&answer);
        assert!(matches!(status, "400" | "none"), "{nonsense:?}: {answer}");
    }
    served.session(None).await;
}

/// A client that sends a head or a body too slowly is refused.
#[tokio::test]
async fn slow_requests_are_refused() {
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

/// Heads that never come whole take all places, and a good request finds one.
#[tokio::test]
async fn incomplete_request_heads_yield_to_new_requests() {
    let bench = Workbench::with_config(json!({
        "serve": { "http": { "connections": 4, "bearer": "a-token-of-22-characters" } },
    }));
    let served = Served::start(&bench, &[]);
    let slow: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = TcpStream::connect(served.authority()).expect("a connection");
            stream
                .write_all(b"GET /mcp HTTP/1.1\r\nHost:")
                .expect("room");
            stream
        })
        .collect();
    served.session(Some("a-token-of-22-characters")).await;
    let mut open = 0;
    for mut stream in slow {
        stream.set_nonblocking(true).expect("a socket");
        let read = stream.read(&mut [0; 1]);
        open += usize::from(read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
    assert_eq!(open, 3, "not by their time limit");
}

/// Bodies within every limit that would take far more memory together than the server gives them.
#[tokio::test]
async fn bodies_at_once_take_bounded_memory() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let session = served.session(None).await;
    let values = vec![r#"{"a":""}"#; 120_000].join(",");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call",
            "params":{{"name":"run_script","arguments":{{"code":"","x":[{values}]}}}}}}"#
    );
    let posts = (0..24).map(|_| {
        let request = served.post_text(body.clone());
        request.header("Mcp-Session-Id", &session).send()
    });
    let (mut served_ones, mut later) = (0, 0);
    for answer in futures::future::join_all(posts).await {
        let answer = answer.expect("an answer");
        match answer.status().as_u16() {
            503 => later += usize::from(answer.headers().contains_key("Retry-After")),
            status => served_ones += usize::from(status == 200),
        }
    }
    assert!(
        served_ones > 0 && served_ones + later == 24,
        "{served_ones} {later}"
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.pid()));
    let status = status.expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    assert!(peak.is_some_and(|kib| kib < 512 << 10), "{peak:?} KiB");
}

#[tokio::test]
async fn duplicate_headers_are_refused() {
    let bench = Workbench::new(json!({}));
    let served = Served::start(&bench, &[]);
    let session = served.session(None).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let request = served.post(&list).header("Mcp-Session-Id", &session);
    let request = request.header("Mcp-Session-Id", "another");
    assert_eq!(
        said(request.send().await.expect("an answer")).await,
        "400 -32600 to nothing: the request has two mcp-session-id headers; send one"
    );
}

/// A client cannot choose a mode in which data-flow rules have no effect.
#[tokio::test]
async fn disallowed_modes_are_refused() {
    let flows = json!({ "flows": [{ "from": "*", "to": "*", "action": "deny" }] });
    let listed = json!({ "serve": { "mode": "discovery", "modes": ["code"] } });
    for (config, open) in [(flows, &["code"][..]), (listed, &["code", "discovery"])] {
        let mut config = config;
        config["mcpServers"] = json!({ "odd": odd("asks") });
        let bench = Workbench::with_config(config);
        let served = Served::start(&bench, &["--allow-unmatched-rules"]);
        for mode in ["code", "discovery", "native"] {
            let request = served.post(&hello()).header("X-MCP-Tool-Mode", mode);
            let answer = said(request.send().await.expect("an answer")).await;
            let is_open = answer.starts_with("200");
            assert_eq!(is_open, open.contains(&mode), "{mode}: {answer}");
        }
    }
}

/// More requests and streams of one user than the limits allow.
#[tokio::test]
async fn excess_requests_and_streams_are_refused() {
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
        "429 -32600 to nothing: you already have 2 requests and streams open; end some first"
    );
}

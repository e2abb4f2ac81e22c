//! `callgate serve --http`: clients of both eras, and the end.

use callgate_tests::served::{Served, hello, http, said};
use callgate_tests::{Workbench, odd};
use reqwest::Response;
use rmcp::model::ProtocolVersion;
use serde_json::json;

use crate::cli::check_output;
use crate::serve_client::{NEWEST, User, request, shown, value};

const ERAS: [ProtocolVersion; 3] = [
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    NEWEST,
];

#[tokio::test]
async fn clients_of_both_eras_run_scripts() {
    let bench = Workbench::demo();
    let mut served = Served::start(&bench, &[]);
    for version in ERAS {
        let client = served.connect(User::new(&version, &[]), None).await;
        let code = "const issue = await ticketing_createIssue({ title: 'A', body: 'B' });
                    return typeof issue.issueId";
        let answer = client.call_tool(request(code)).await.expect("an answer");
        let (is_error, text) = shown(&answer);
        assert!(!is_error, "{version}: {text}");
        assert_eq!(value(&text), "string", "{version}");
    }
    served.terminate();
    assert_eq!(served.wait(), (Some(0), String::new()));
}

/// A run that is active at the termination signal is completed.
#[tokio::test]
async fn shutdown_waits_for_active_runs() {
    for version in ERAS {
        let bench = Workbench::demo();
        let mut served = Served::start(&bench, &["--ledger", "calls.jsonl"]);
        let client = served.connect(User::new(&version, &[]), None).await;
        let run = tokio::spawn({
            let code = "await ticketing_listIssues();
                        await new Promise(resolve => setTimeout(resolve, 300));
                        return 'to its end'";
            let peer = client.peer().clone();
            async move { peer.call_tool(request(code)).await }
        });
        while bench.ledger().is_empty() {
            tokio::task::yield_now().await;
        }
        served.terminate();
        let answer = run.await.expect("no panic").expect("a report");
        assert_eq!(value(&shown(&answer).1), "to its end", "{version}");
        assert_eq!(served.wait().0, Some(0), "{version}");
    }
}

#[tokio::test]
async fn without_sessions_each_request_has_its_mode() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    let mut served = Served::start(&bench, &[]);
    let url = served.url.clone();
    for (header, query, tool) in [
        ("", "", "run_script"),
        ("code", "", "run_script"),
        ("native", "?tool_mode=discovery", "odd_echo"),
        ("", "?tool_mode=native", "odd_echo"),
        ("discovery", "", "call_tool"),
    ] {
        served.url = format!("{url}{query}");
        let mut request = served.modern("tools/list", json!({}), &json!({}));
        if !header.is_empty() {
            request = request.header("X-MCP-Tool-Mode", header);
        }
        let listed = said(request.send().await.expect("an answer")).await;
        assert!(
            listed.contains(&format!("\"{tool}\"")),
            "{header}{query}: {listed}"
        );
    }
}

#[test]
fn non_loopback_address_requires_protection() {
    let bench = Workbench::new(json!({}));
    for (flags, phrase) in [
        (" 0.0.0.0:0", "set \"bearer\" or \"oauth\""),
        ("", "--http needs an address"),
        (
            " 127.0.0.1:0 --bearer-env CALLGATE_NOT_SET",
            "--bearer-env CALLGATE_NOT_SET: environment variable not found",
        ),
    ] {
        check_output(&bench, &format!("serve --http{flags}"), 2, &[phrase]);
    }
    for (http, phrase) in [
        (
            json!({ "address": "0.0.0.0:0", "bearer": "0123456789abcdef" }),
            "--allowed-host",
        ),
        (
            json!({ "address": "0.0.0.0:0", "oauth": { "issuer": "https://login.example" } }),
            "has no \"resource\"",
        ),
        (
            json!({ "bearer": "short" }),
            "is a token of fewer than 16 characters",
        ),
    ] {
        let bench = Workbench::with_config(json!({ "serve": { "http": http } }));
        check_output(&bench, "serve --http", 2, &[phrase]);
    }
}

/// The response headers that keep answers from pages of other origins.
#[tokio::test]
async fn response_headers_isolate_other_origins() {
    let app = "https://app.example";
    let bench = Workbench::with_config(json!({ "serve": { "http": { "allowedOrigins": [app] } } }));
    let served = Served::start(&bench, &[]);
    let header = |answer: &Response, name: &str| {
        let value = answer.headers().get(name);
        value.map(|value| value.to_str().expect("text").to_owned())
    };
    let allowed = "access-control-allow-origin";
    let plain = served.post(&hello()).send().await.expect("an answer");
    assert_eq!(
        header(&plain, "x-content-type-options").as_deref(),
        Some("nosniff")
    );
    assert_eq!(header(&plain, allowed), None);
    let page = served.post(&hello()).header("Origin", app).send().await;
    let page = page.expect("an answer");
    assert_eq!(header(&page, allowed).as_deref(), Some(app));
    assert_eq!(header(&page, "vary").as_deref(), Some("Origin"));
    let wanted = "authorization, mcp-param-region";
    let ask = async |origin: &str| {
        let asked = http().request(reqwest::Method::OPTIONS, &served.url);
        let asked = asked.header("Origin", origin);
        let asked = asked.header("Access-Control-Request-Headers", wanted);
        asked.send().await.expect("an answer")
    };
    let asked = ask(app).await;
    assert_eq!(asked.status(), 204);
    let headers = header(&asked, "access-control-allow-headers");
    assert_eq!(headers.as_deref(), Some(wanted));
    let asked = ask("https://evil.example").await;
    assert_eq!(
        (asked.status().as_u16(), header(&asked, allowed)),
        (403, None)
    );
}

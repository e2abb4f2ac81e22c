//! What requests of `callgate serve --http` say beside their bodies: the mode, and
//! arguments that are mirrored in headers.

use callgate_tests::{Workbench, odd, repository};
use serde_json::{Value, json};

use crate::served::{Served, http, said};

/// A call as a client of 2026-07-28 sends it, with these headers besides.
async fn call(served: &Served, arguments: Value, headers: &[(&str, &str)]) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta, "name": "test_mirrored", "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    let mut request = served
        .post(&message)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "test_mirrored");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    said(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn arguments_are_those_of_their_headers() {
    let tools = repository().join("fixtures/conformance/tools.cjs");
    let server = json!({ "command": "node", "args": [tools], "protocol": "2026-07-28" });
    // Connected to when it is first needed: the first call is compared, too.
    let bench = Workbench::with_config(json!({
        "mcpServers": { "test": server },
        "permissions": { "allow": ["test_*"] },
    }));
    let served = Served::start(&bench, &["--mode", "native"]);
    let region = json!({ "region": "Zürich" });
    let missing = call(&served, region.clone(), &[]).await;
    assert_eq!(
        missing,
        "400 -32020 to 7: missing Mcp-Param-Region header for `region`"
    );
    let encoded = ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=");
    let right = call(&served, region.clone(), &[encoded]).await;
    assert!(
        right.starts_with("200 ") && right.contains("in Zürich"),
        "{right}"
    );
    let other = call(&served, region, &[("Mcp-Param-Region", "Bern")]).await;
    assert_eq!(
        other,
        "400 -32020 to 7: Mcp-Param-Region header `Bern` does not match body value `Zürich`"
    );
    let bern = ("Mcp-Param-Region", "Bern");
    let counted = json!({ "region": "Bern", "count": 3 });
    let right = call(&served, counted.clone(), &[bern, ("mcp-param-count", "3")]).await;
    assert!(
        right.starts_with("200 ") && right.contains("in Bern"),
        "{right}"
    );
    let other = call(&served, counted, &[bern, ("mcp-param-count", "4")]).await;
    assert!(other.starts_with("400 -32020 to 7: "), "{other}");
    let none = json!({ "region": "Bern" });
    let more = call(&served, none.clone(), &[bern, ("Mcp-Param-Count", "4")]).await;
    assert!(more.starts_with("400 -32020 to 7: "), "{more}");
    let unknown = call(&served, none, &[bern, ("Mcp-Param-Other", "4")]).await;
    assert!(unknown.starts_with("200 "), "{unknown}");
}

/// A POST with this mode in a header and in the query.
fn asking(
    served: &Served,
    message: &Value,
    header: Option<&str>,
    query: Option<&str>,
) -> reqwest::RequestBuilder {
    let query = query.map_or(String::new(), |mode| format!("?tool_mode={mode}"));
    let request = http()
        .post(format!("{}{query}", served.url))
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .body(message.to_string());
    match header {
        Some(mode) => request.header("X-MCP-Tool-Mode", mode),
        None => request,
    }
}

const WORDS: [(Option<&str>, Option<&str>); 5] = [
    (None, None),
    (Some("code"), None),
    (Some("native"), Some("discovery")),
    (None, Some("native")),
    (Some("discovery"), None),
];

#[tokio::test]
async fn without_sessions_each_request_has_its_mode() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    let served = Served::start(&bench, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": meta } });
    let tools = [
        "run_script",
        "run_script",
        "odd_echo",
        "odd_echo",
        "call_tool",
    ];
    for ((header, query), tool) in WORDS.into_iter().zip(tools) {
        let request = asking(&served, &list, header, query)
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/list");
        let listed = said(request.send().await.expect("an answer")).await;
        let tool = format!("\"{tool}\"");
        assert!(listed.contains(&tool), "{header:?} {query:?}: {listed}");
    }
}

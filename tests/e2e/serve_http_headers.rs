//! What requests of `callgate serve --http` say beside their bodies: the mode, and
//! arguments that are mirrored in headers.

use callgate_tests::{Workbench, odd, repository};
use serde_json::{Value, json};

use crate::served::{Served, said};

async fn call(served: &Served, arguments: Value, headers: &[(&str, &str)]) -> String {
    let params = json!({ "name": "test_mirrored", "arguments": arguments });
    let mut request = served.modern("tools/call", params, &json!({}));
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

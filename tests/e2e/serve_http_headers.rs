//! What requests of `callgate serve --http` say beside their bodies: arguments
//! that are mirrored in headers.

use callgate_tests::{Workbench, repository};
use serde_json::{Value, json};

use crate::served::{Served, said};

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
    assert_eq!(missing, "400 -32020 to 7: missing Mcp-Param-Region header for `region`");
    let encoded = ("Mcp-Param-Region", "=?base64?WsO8cmljaA==?=");
    let right = call(&served, region.clone(), &[encoded]).await;
    assert!(right.starts_with("200 ") && right.contains("in Zürich"), "{right}");
    let other = call(&served, region, &[("Mcp-Param-Region", "Bern")]).await;
    assert_eq!(
        other,
        "400 -32020 to 7: Mcp-Param-Region header `Bern` does not match body value `Zürich`"
    );
    let bern = ("Mcp-Param-Region", "Bern");
    let counted = json!({ "region": "Bern", "count": 3 });
    let right = call(&served, counted.clone(), &[bern, ("mcp-param-count", "3")]).await;
    assert!(right.starts_with("200 ") && right.contains("in Bern"), "{right}");
    let other = call(&served, counted, &[bern, ("mcp-param-count", "4")]).await;
    assert!(other.starts_with("400 -32020 to 7: "), "{other}");
    let none = json!({ "region": "Bern" });
    let more = call(&served, none.clone(), &[bern, ("Mcp-Param-Count", "4")]).await;
    assert!(more.starts_with("400 -32020 to 7: "), "{more}");
    let unknown = call(&served, none, &[bern, ("Mcp-Param-Other", "4")]).await;
    assert!(unknown.starts_with("200 "), "{unknown}");
}

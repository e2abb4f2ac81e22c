//! A server of MCP 2025-11-25 over standard input and output, for measurements: with the
//! tools of other people's servers, or next to nothing to do for a call.

use std::io::{BufRead as _, Result, Write as _};

use serde_json::{Value, json};

/// Lists these tools, and answers calls by tool and arguments with the result that `call`
/// gives, if it gives one, until its input ends.
pub fn serve(tools: &Value, mut call: impl FnMut(&str, &Value) -> Option<Value>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else {
            continue;
        };
        let result = match request["method"].as_str() {
            Some("initialize") => Some(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "stand-in", "version": "1" },
            })),
            Some("tools/list") => Some(json!({ "tools": tools })),
            Some("tools/call") => {
                let tool = request["params"]["name"].as_str().unwrap_or_default();
                call(tool, &request["params"]["arguments"])
            }
            Some("ping") => Some(json!({})),
            _ => None,
        };
        let mut answer = match result {
            Some(result) => json!({ "result": result }),
            None => json!({ "error": { "code": -32601, "message": "not answered here" } }),
        };
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

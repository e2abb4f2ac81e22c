//! A server of MCP 2025-11-25 over standard input and output, with the tools of a
//! file and answers of our own.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::{Fallible, answers};

/// Serves until its input ends.
///
/// # Errors
///
/// If the file cannot be read, or a message.
pub fn serve(file: &Path) -> Fallible<()> {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else {
            continue;
        };
        let parameters = &request["params"];
        let mut answer = match request["method"].as_str() {
            Some("initialize") => json!({ "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "replay", "version": "1" },
            } }),
            Some("tools/list") => json!({ "result": { "tools": list["tools"] } }),
            Some("tools/call") => {
                let tool = parameters["name"].as_str().unwrap_or_default();
                match answers::answer(tool, &parameters["arguments"]) {
                    Some(result) => json!({ "result": result }),
                    None => json!({ "error": { "code": -32602, "message": "not answered here" } }),
                }
            }
            Some("ping") => json!({ "result": {} }),
            _ => json!({ "error": { "code": -32601, "message": "no such method" } }),
        };
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

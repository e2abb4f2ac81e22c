//! Declarations of tools: golden ones, real and hostile catalogs, and what they cost.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]

mod catalogs;
mod economy;
mod for_script;
mod goldens;
mod signatures;

use std::path::Path;

use callgate_typegen::names::assign;
use callgate_typegen::{Declarations, ToolSchema, generate};
use serde_json::Value;

/// The tools of a real server, if the corpus is there.
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn corpus() -> Option<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus/github-mcp-server.tools.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: ../shared/corpus is not beside the checkout");
        return None;
    };
    let mut list: Value = serde_json::from_str(&text).unwrap();
    Some(list["tools"].as_array_mut().unwrap().split_off(0))
}

/// Declares tools as servers list them; a tool without a `server` belongs to this one.
fn declare(server: &str, tools: &[Value]) -> Declarations {
    let pairs = tools.iter().map(|tool| {
        let name = tool["name"].as_str().unwrap_or("t");
        (tool["server"].as_str().unwrap_or(server), name)
    });
    let functions = assign(pairs.clone());
    let schemas = tools
        .iter()
        .zip(pairs)
        .map(|(raw, (server, tool))| ToolSchema {
            server,
            tool,
            function: functions.function(server, tool).unwrap(),
            title: raw["title"]
                .as_str()
                .or(raw["annotations"]["title"].as_str()),
            description: raw["description"].as_str(),
            input: &raw["inputSchema"],
            output: raw.get("outputSchema"),
        });
    generate(&schemas.collect::<Vec<_>>())
}

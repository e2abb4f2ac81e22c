//! The host's models as rules, grants, flows and the ledger know them: tools of a server `model`.

use std::sync::{Arc, LazyLock};

use callgate_catalog::{Tool, ToolDefinition};
use callgate_policy::Definition;
use serde_json::json;

/// Their function names, which no server's tool gets.
pub(crate) const FUNCTIONS: [&str; 2] = ["model_extract", "model_search"];

/// The model that extracts values: `mcp.extract`.
pub(crate) static EXTRACTION: LazyLock<Tool> = LazyLock::new(|| {
    let does = "gives a value and a schema to a small model, which puts the one into the form \
        of the other";
    model_tool(FUNCTIONS[0], "extract", "mcp.extract", does)
});

/// The model that picks tools, and the embeddings endpoint: `mcp.searchTools`.
pub(crate) static SEARCH: LazyLock<Tool> = LazyLock::new(|| {
    let does = "gives what tools are looked for by to an endpoint of embeddings, or to a small \
        model, which picks among tools";
    model_tool(FUNCTIONS[1], "search", "mcp.searchTools", does)
});

/// Grants are bound to the definition: another text here makes them void.
fn model_tool(function: &str, tool: &str, name: &str, does: &str) -> Tool {
    let mut definition = ToolDefinition::new("model", tool);
    definition.hints.read_only = Some(true);
    definition.identity = Arc::new(Definition::of(&json!({
        "name": name,
        "annotations": { "title": does, "version": 1 },
    })));
    Tool::new(function, definition)
}

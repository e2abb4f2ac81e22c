//! The host's models as tools of a server `model`, for rules, grants, flows and the ledger, and the
//! form of untrusted data in their prompts.

use std::sync::{Arc, LazyLock};

use callgate_catalog::{Tool, ToolDefinition};
use callgate_policy::Definition;
use serde_json::json;
use uuid::Uuid;

/// The function names, which no server's tool gets.
pub(crate) const FUNCTIONS: [&str; 2] = ["model_extract", "model_search"];

/// The model that extracts values: `mcp.extract`.
pub(crate) static EXTRACTION: LazyLock<Tool> = LazyLock::new(|| {
    let does = "sends a value and a schema to a small model, which converts the value to the \
        form of the schema";
    model_tool(FUNCTIONS[0], "extract", "mcp.extract", does)
});

/// The model that picks tools, and the embeddings endpoint: `mcp.searchTools`.
pub(crate) static SEARCH: LazyLock<Tool> = LazyLock::new(|| {
    let does = "sends the query of a search for tools to an embeddings endpoint, or to a small \
        model, which picks the tools";
    model_tool(FUNCTIONS[1], "search", "mcp.searchTools", does)
});

/// Grants are bound to the definition: a change of these texts makes them inapplicable.
fn model_tool(function: &str, tool: &str, name: &str, does: &str) -> Tool {
    let mut definition = ToolDefinition::new("model", tool);
    definition.hints.read_only = Some(true);
    definition.identity = Arc::new(Definition::of(&json!({
        "name": name,
        "annotations": { "title": does, "version": 1 },
    })));
    Tool::new(function, definition)
}

/// Untrusted data between two marker lines. The marker is random, so the data cannot contain it.
pub(crate) fn between_markers(kind: &str, data: &str) -> String {
    let marker = format!("{kind} {}", Uuid::new_v4().simple());
    format!("{marker}\n{data}\n{marker}")
}

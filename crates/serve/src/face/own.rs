//! Our own tools: what they are called, take and promise.

use std::sync::Arc;

use callgate::Gate;
use callgate::Server;
use callgate::config::ToolMode;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::inlined::Inlined;
use super::texts;
use crate::runs::Runs;

pub(crate) const RUN_SCRIPT: &str = "run_script";
pub(crate) const WAIT: &str = "wait";
pub(crate) const SEARCH_TOOLS: &str = "search_tools";
pub(crate) const GET_TOOL_DETAILS: &str = "get_tool_details";
pub(crate) const LIST_SERVERS: &str = "list_servers";
pub(crate) const ENABLE_SERVER: &str = "enable_server";
pub(crate) const DISABLE_SERVER: &str = "disable_server";
pub(crate) const CALL_TOOL: &str = "call_tool";

/// The most hits of a search.
pub(crate) const MAX_HITS: usize = 50;
/// Hits of a search that does not say how many.
pub(crate) const HITS: usize = 10;
/// The most tools whose details are asked for at once.
pub(crate) const MAX_NAMES: usize = 50;

/// Whether a tool of ours is answered without a question to the client, whatever
/// it is asked for.
pub(crate) fn asks_nothing(own: &str) -> bool {
    matches!(
        own,
        GET_TOOL_DETAILS | LIST_SERVERS | ENABLE_SERVER | DISABLE_SERVER
    )
}

/// The tools of ours that there are in a mode. A client may call one that it is
/// not shown, because it has no need of it.
pub(crate) fn of(mode: ToolMode) -> &'static [&'static str] {
    match mode {
        ToolMode::Discovery | ToolMode::Native => &[
            SEARCH_TOOLS,
            GET_TOOL_DETAILS,
            CALL_TOOL,
            LIST_SERVERS,
            ENABLE_SERVER,
            DISABLE_SERVER,
        ],
        _ => &[
            RUN_SCRIPT,
            WAIT,
            SEARCH_TOOLS,
            GET_TOOL_DETAILS,
            LIST_SERVERS,
            ENABLE_SERVER,
            DISABLE_SERVER,
        ],
    }
}

/// `run_script`. `extracts` says whether its scripts can have a model put values
/// into a form.
pub(crate) fn run_script(
    gate: &Gate,
    inlined: &Inlined,
    servers: &[Server],
    extracts: bool,
) -> Tool {
    Tool::new(
        RUN_SCRIPT,
        texts::run_script(gate, inlined, servers, extracts),
        Runs::run_script_schema(gate.limits()),
    )
    .with_title("Run a script")
    .with_annotations(anything())
}

/// `wait`.
pub(crate) fn wait() -> Tool {
    Tool::new(WAIT, Runs::wait_description(), Runs::wait_schema())
        .with_title("Wait for a run")
        .with_annotations(
            // It can end a run, and nothing else.
            ToolAnnotations::new().destructive(false).open_world(false),
        )
}

/// What finds tools.
pub(crate) fn finders() -> [Tool; 2] {
    [
        Tool::new(
            SEARCH_TOOLS,
            "Find tools by what they do, in a few words; the best come first.",
            schema(
                json!({
                    "query": { "type": "string" },
                    "detail": {
                        "enum": ["summaries", "names", "signatures", "full"],
                        "description": "default summaries"
                    },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_HITS },
                    "server": { "type": "string", "description": "only tools of this server" },
                    "by": { "enum": ["auto", "words", "regex", "vectors", "hybrid", "model"] }
                }),
                &["query"],
            ),
        )
        .with_title("Search tools")
        .with_annotations(reading()),
        Tool::new(
            GET_TOOL_DETAILS,
            "What tools take and return, as TypeScript declarations.",
            schema(
                json!({
                    "names": {
                        "type": "array",
                        "items": { "type": "string" },
                        "minItems": 1,
                        "maxItems": MAX_NAMES
                    }
                }),
                &["names"],
            ),
        )
        .with_title("Get tool details")
        .with_annotations(reading()),
    ]
}

/// What lists servers, and takes them into use and out of it.
pub(crate) fn switches() -> [Tool; 3] {
    let server = || schema(json!({ "server": { "type": "string" } }), &["server"]);
    [
        Tool::new(
            LIST_SERVERS,
            "The servers whose tools there are: what they are for, and whether they are in use.",
            schema(json!({}), &[]),
        )
        .with_title("List servers")
        .with_annotations(reading()),
        Tool::new(
            ENABLE_SERVER,
            "Take a server into use; its tools can be called then.",
            server(),
        )
        .with_title("Enable a server")
        .with_annotations(switching()),
        Tool::new(
            DISABLE_SERVER,
            "Take a server out of use, with its tools.",
            server(),
        )
        .with_title("Disable a server")
        .with_annotations(switching()),
    ]
}

/// What calls a tool without a script.
pub(crate) fn call_tool() -> Tool {
    Tool::new(
        CALL_TOOL,
        "Call a tool by its name, with its arguments.",
        schema(
            json!({
                "name": { "type": "string" },
                "args": { "type": "object", "description": "as get_tool_details declares them" }
            }),
            &["name"],
        ),
    )
    .with_title("Call a tool")
    .with_annotations(anything())
}

/// What the tools behind it do is not known here, so nothing mild is promised.
fn anything() -> ToolAnnotations {
    // The rest is as the protocol has it where nothing is said: every word here
    // costs tokens.
    ToolAnnotations::new().destructive(true)
}

fn reading() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).open_world(false)
}

fn switching() -> ToolAnnotations {
    ToolAnnotations::new()
        .destructive(false)
        .idempotent(true)
        .open_world(false)
}

fn schema(properties: Value, required: &[&str]) -> Arc<JsonObject> {
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false
    });
    if let Value::Object(schema) = &mut schema
        && !required.is_empty()
    {
        schema.insert("required".to_owned(), required.into());
    }
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

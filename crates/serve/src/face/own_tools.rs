//! Our own tools. Their names, texts and schemas are in `own_tools.json`.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use callgate::Gate;
use callgate::settings::{Detail, SearchBy};
use rmcp::model::{JsonObject, Tool};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::declared::DeclaredFunctions;
use super::texts;
use crate::arguments;
use crate::config::ToolMode;
use crate::runs;

pub(crate) const RUN_SCRIPT: &str = "run_script";
pub(crate) const WAIT: &str = "wait";
pub(crate) const CANCEL_RUN: &str = "cancel_run";
pub(crate) const SEARCH_TOOLS: &str = "search_tools";
pub(crate) const GET_TOOL_DETAILS: &str = "get_tool_details";
pub(crate) const LIST_SERVERS: &str = "list_servers";
pub(crate) const ENABLE_SERVER: &str = "enable_server";
pub(crate) const DISABLE_SERVER: &str = "disable_server";
pub(crate) const CALL_TOOL: &str = "call_tool";

/// Tools that find other tools.
pub(crate) const FINDERS: &[&str] = &[SEARCH_TOOLS, GET_TOOL_DETAILS];
/// Tools that list, enable and disable servers.
pub(crate) const SERVER_TOOLS: &[&str] = &[LIST_SERVERS, ENABLE_SERVER, DISABLE_SERVER];

/// Bounds that calls are checked against, and that a description does not show.
const UNSHOWN: [&str; 4] = ["additionalProperties", "minimum", "minItems", "maxItems"];

/// A test checks that the file can be read.
static TOOLS: LazyLock<Vec<Tool>> =
    LazyLock::new(|| serde_json::from_str(include_str!("own_tools.json")).unwrap_or_default());

/// True if the tool can be called in a mode, whether or not it is shown.
pub(crate) fn is_in_mode(tool: &str, mode: ToolMode) -> bool {
    let of_mode: &[&str] = match mode {
        ToolMode::Discovery | ToolMode::Native => &[CALL_TOOL],
        _ => &[RUN_SCRIPT, WAIT, CANCEL_RUN],
    };
    [of_mode, FINDERS, SERVER_TOOLS].concat().contains(&tool)
}

/// The form of full declarations in a mode.
pub(crate) fn full_detail(mode: ToolMode) -> Detail {
    match mode {
        ToolMode::Discovery | ToolMode::Native => Detail::Call,
        _ => Detail::Read,
    }
}

/// These tools, in the file's order.
pub(crate) fn named(names: &[&str]) -> Vec<Tool> {
    let named = TOOLS.iter().filter(|tool| names.contains(&&*tool.name));
    named.cloned().collect()
}

/// The tools for scripts. `extracts`: scripts can use `mcp.extract`. `wait`: the time that
/// `run_script` waits for a run.
pub(crate) fn for_scripts(
    gate: &Gate,
    declared: &DeclaredFunctions,
    extracts: bool,
    wait: Duration,
) -> Vec<Tool> {
    let mut tools = named(&[RUN_SCRIPT, WAIT, CANCEL_RUN]);
    for tool in &mut tools {
        if tool.name == RUN_SCRIPT {
            tool.description = Some(texts::run_script(gate, declared, extracts).into());
            tool.input_schema = Arc::new(runs::run_script_schema(gate.limits(), wait));
        } else if tool.name == WAIT {
            tool.input_schema = Arc::new(runs::wait_schema(wait));
        } else {
            tool.input_schema = Arc::new(runs::cancel_schema());
        }
    }
    tools
}

/// The tools for calls without a script, in the file's order.
pub(crate) fn for_calls(names: &[&str], declared: &DeclaredFunctions) -> Vec<Tool> {
    let mut tools = named(names);
    for tool in &mut tools {
        let plain = tool.description.as_deref().unwrap_or_default();
        if tool.name == SEARCH_TOOLS {
            tool.description = Some(texts::search_tools(plain, declared).into());
        } else if tool.name == GET_TOOL_DETAILS {
            tool.description = Some("What tools take and return, as name(args): result.".into());
        } else if tool.name == CALL_TOOL
            && let Some(sample) = &declared.sample
        {
            let call = sample.for_call_tool();
            tool.description = Some(format!("{plain} For instance: {call}").into());
        }
    }
    tools
}

/// Removes bounds from a schema and its parts.
pub(crate) fn shorten(schema: &mut JsonObject) {
    schema.retain(|key, _| !UNSHOWN.contains(&key.as_str()));
    let parts = schema.values_mut().filter_map(Value::as_object_mut);
    parts.for_each(shorten);
}

/// Lists only these ways of searching in the schema of `search_tools`.
pub(crate) fn offer_ways(schema: &mut JsonObject, can: impl Fn(SearchBy) -> bool) {
    let by = schema.get_mut("properties").and_then(|it| it.get_mut("by"));
    if let Some(Value::Object(by)) = by {
        let ways = SearchBy::ALL.into_iter().filter(|(_, way)| can(*way));
        by.insert("enum".to_owned(), ways.map(|(name, _)| name).collect());
    }
}

/// Reads the arguments of a tool.
pub(crate) fn read<T: DeserializeOwned>(
    tool: &str,
    given: Option<&JsonObject>,
) -> Result<T, String> {
    let tools = named(&[tool]);
    let empty = JsonObject::new();
    let schema = tools.first().map_or(&empty, |tool| &tool.input_schema);
    arguments::read(&format!("{tool} was not called"), schema, given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_file_covers_every_mode() {
        for mode in [ToolMode::Code, ToolMode::Discovery, ToolMode::Native] {
            let known = TOOLS.iter().filter(|tool| is_in_mode(&tool.name, mode));
            let expected = if mode == ToolMode::Code { 8 } else { 6 };
            assert_eq!(known.count(), expected);
        }
    }
}

//! The array of tools that a client sees.

use std::sync::Arc;

use callgate::faces::Visibility;
use callgate::{Gate, Server, ServerState};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::approvals::Asked;
use super::declared::DeclaredFunctions;
use super::own_tools::{self, CALL_TOOL, FINDERS, SEARCH_TOOLS, SERVER_TOOLS};
use super::texts;
use crate::config::{ServeConfig, ToolMode};
use crate::runs::{Client, Outside};

/// The tools that one client sees, in order.
#[derive(Debug)]
pub(crate) struct ToolArray {
    /// Our own come first.
    pub(crate) tools: Vec<Tool>,
    /// The number of our own.
    own: usize,
}

impl ToolArray {
    /// The tools of a mode. `late`: a clause about functions that are not known yet, by default
    /// about those of servers.
    pub(crate) fn new(
        gate: &Gate,
        late: Option<String>,
        mode: ToolMode,
        options: &ServeConfig,
        outside: &Outside,
        client: &Client,
    ) -> Self {
        let servers = gate.servers();
        let late = late.or_else(|| late_servers(&servers));
        let asked = Asked::of(options, outside, mode, client);
        let tokens = (options.context.window as f64 * options.context.share) as usize;
        let mut names: Vec<&str> = Vec::new();
        let more = servers.iter().any(may_have_more);
        if servers.iter().any(can_be_enabled) {
            names.extend_from_slice(SERVER_TOOLS);
        }
        let mut array = match mode {
            ToolMode::Discovery => {
                names.extend_from_slice(FINDERS);
                names.push(CALL_TOOL);
                let declared = DeclaredFunctions::by_name(gate, &servers, tokens, asked);
                Self::of_own(own_tools::for_calls(&names, &declared))
            }
            ToolMode::Native => {
                let is_late = more || late.is_some();
                Self::native(gate, is_late, names, client.is_stateless)
            }
            _ => {
                let mut declared = DeclaredFunctions::new(gate, &servers, tokens, asked);
                declared.late = late;
                let extracts = gate.view().extracts(client.capabilities.sampling);
                let mut tools = own_tools::for_scripts(gate, &declared, extracts, options.wait);
                let mut described = tools.iter().filter_map(|tool| tool.description.as_deref());
                let is_shown = declared.is_whole() && described.all(texts::is_short);
                if !is_shown || !declared.is_full || more {
                    names.extend_from_slice(FINDERS);
                }
                tools.extend(own_tools::named(&names));
                Self::of_own(tools)
            }
        };
        for tool in array.tools.iter_mut().take(array.own) {
            if tool.name == SEARCH_TOOLS {
                own_tools::offer_ways(Arc::make_mut(&mut tool.input_schema), |way| {
                    gate.view().can_search(way, client.capabilities.sampling)
                });
            }
        }
        array
    }

    fn of_own(mut tools: Vec<Tool>) -> Self {
        for tool in &mut tools {
            own_tools::shorten(Arc::make_mut(&mut tool.input_schema));
        }
        let own = tools.len();
        Self { tools, own }
    }

    /// The names of our own tools.
    pub(crate) fn own(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().take(self.own).map(|tool| &*tool.name)
    }

    fn native(gate: &Gate, is_late: bool, mut names: Vec<&str>, any_result: bool) -> Self {
        let known = gate.tools();
        let callable = known.iter().map(|tool| tool.function.as_str());
        let callable = callable.filter(|function| !gate.view().denies(function));
        let (listed, on_demand): (Vec<&str>, Vec<&str>) = callable.partition(|function| {
            gate.view().visibility(function) != Visibility::OnDemand
                || gate.view().always_on(function)
        });
        if !on_demand.is_empty() || !names.is_empty() || is_late {
            names.extend_from_slice(FINDERS);
            names.push(CALL_TOOL);
        }
        let mut array = Self::of_own(own_tools::named(&names));
        for function in listed {
            if array.own().any(|own| own == function) {
                tracing::warn!(
                    function,
                    "a tool is not listed: its name is that of one of Callgate's own tools"
                );
            } else if let Some(tool) = server_tool(gate, function, any_result) {
                array.tools.push(tool);
            }
        }
        array
    }
}

/// A server's own tool, under its generated name.
pub(crate) fn server_tool(gate: &Gate, function: &str, any_result: bool) -> Option<Tool> {
    let mut entry = gate.view().tool_entry(function)?;
    // Clients need the type, and some servers omit it.
    if let Some(Value::Object(schema)) = entry.get_mut("inputSchema") {
        schema.entry("type").or_insert_with(|| "object".into());
    }
    let is_of_objects = |schema: &Value| schema.get("type") == Some(&json!("object"));
    if !any_result && !entry.get("outputSchema").is_none_or(is_of_objects) {
        entry.remove("outputSchema");
    }
    serde_json::from_value(Value::Object(entry))
        .inspect_err(|error| tracing::warn!(function, %error, "a tool cannot be listed"))
        .ok()
}

/// A clause about enabled servers whose functions are not known yet, if there are any.
fn late_servers(servers: &[Server]) -> Option<String> {
    let late = servers.iter().filter(|server| server.is_awaited());
    let names: Vec<String> = late.map(|server| texts::line(&server.name)).collect();
    let (first, rest) = names.split_first()?;
    Some(match rest.len() {
        0 => format!("those of server {first} are not known yet"),
        more => format!("those of server {first} and {more} more are not known yet"),
    })
}

/// True if a model can enable the server, or have it list its tools. One that is down is started
/// again anyway.
fn can_be_enabled(server: &Server) -> bool {
    match server.state {
        ServerState::Disabled => true,
        ServerState::Idle => server.tools == 0,
        _ => false,
    }
}

/// True if the server may have tools that are not known yet.
fn may_have_more(server: &Server) -> bool {
    match server.state {
        ServerState::Disabled => true,
        ServerState::Idle | ServerState::Starting | ServerState::Down { .. } => server.tools == 0,
        _ => false,
    }
}

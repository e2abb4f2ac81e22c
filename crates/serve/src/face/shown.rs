//! The array of tools that a client sees, made once.

use callgate::config::ToolMode;
use callgate::{Gate, Server, ServerState, Visibility};
use rmcp::model::Tool;
use serde_json::{Value, json};

use super::inlined::Inlined;
use super::own;
use crate::options::ServeOptions;

/// The tools that one client sees, and the order they are in.
#[derive(Debug)]
pub(crate) struct Shown {
    /// Our own first.
    pub(crate) tools: Vec<Tool>,
    /// How many of them are our own.
    own: usize,
}

/// What a client knows and has, as far as what it sees depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Audience {
    /// Whether its revision knows results that are no objects (2026-07-28).
    pub(crate) any_result: bool,
    /// Whether it has a model that can be asked (`sampling`).
    pub(crate) has_model: bool,
}

impl Shown {
    /// The tools of this mode. It may count tokens, which takes a while.
    pub(crate) fn make(
        gate: &Gate,
        mode: ToolMode,
        options: &ServeOptions,
        audience: Audience,
    ) -> Self {
        // What the rules deny whatever its arguments is not offered.
        let known = gate.tools();
        let callable: Vec<&str> = known
            .iter()
            .map(|tool| tool.function.as_str())
            .filter(|function| !gate.denies(function))
            .collect();
        let servers = gate.servers();
        match mode {
            ToolMode::Discovery => Self::of_own(discovery()),
            ToolMode::Native => native(gate, &callable, &servers, audience.any_result),
            _ => {
                let inlined = Inlined::of(gate, &callable, options);
                let extracts = gate.extracts(audience.has_model);
                Self::of_own(code(gate, &inlined, &servers, extracts))
            }
        }
    }

    fn of_own(tools: Vec<Tool>) -> Self {
        let own = tools.len();
        Self { tools, own }
    }

    /// The names of our own tools in it.
    pub(crate) fn own(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().take(self.own).map(|tool| &*tool.name)
    }
}

fn code(gate: &Gate, inlined: &Inlined, servers: &[Server], extracts: bool) -> Vec<Tool> {
    let script = own::run_script(gate, inlined, servers, extracts);
    let mut tools = vec![script, own::wait()];
    if !inlined.is_complete || servers.iter().any(may_have_more) {
        tools.extend(own::finders());
        tools.extend(own::switches());
    }
    tools
}

fn discovery() -> Vec<Tool> {
    let mut tools = Vec::from(own::finders());
    tools.push(own::call_tool());
    tools.extend(own::switches());
    tools
}

fn native(gate: &Gate, callable: &[&str], servers: &[Server], any_result: bool) -> Shown {
    let settings = gate.tool_settings();
    let (listed, on_demand): (Vec<&str>, Vec<&str>) = callable.iter().partition(|function| {
        settings.visibility(function) != Visibility::OnDemand || settings.always_on(function)
    });
    let mut tools = Vec::new();
    let more = servers.iter().any(may_have_more);
    if !on_demand.is_empty() || more {
        tools.extend(own::finders());
        tools.push(own::call_tool());
    }
    if more {
        tools.extend(own::switches());
    }
    let mut shown = Shown::of_own(tools);
    for function in listed {
        if shown.own().any(|own| own == function) {
            tracing::warn!(
                function,
                "a tool is not passed through, for it has the name of one of Callgate's own"
            );
        } else if let Some(tool) = upstream(gate, function, any_result) {
            shown.tools.push(tool);
        }
    }
    shown
}

/// A server's own tool, under its generated name.
pub(crate) fn upstream(gate: &Gate, function: &str, any_result: bool) -> Option<Tool> {
    let mut entry = gate.tool_entry(function)?;
    // Clients read no tool whose schema does not say so; servers leave it out.
    if let Some(Value::Object(schema)) = entry.get_mut("inputSchema") {
        schema.entry("type").or_insert_with(|| "object".into());
    }
    let of_objects = |schema: &Value| schema.get("type") == Some(&json!("object"));
    if !any_result
        && entry
            .get("outputSchema")
            .is_some_and(|schema| !of_objects(schema))
    {
        entry.remove("outputSchema");
    }
    serde_json::from_value(Value::Object(entry))
        .inspect_err(|error| tracing::warn!(function, %error, "a tool cannot be passed through"))
        .ok()
}

/// Whether tools of it may come to be that are not known now.
fn may_have_more(server: &Server) -> bool {
    match server.state {
        ServerState::Disabled => true,
        ServerState::Idle | ServerState::Down { .. } => server.tools == 0,
        _ => false,
    }
}

//! `list_servers`, `enable_server` and `disable_server`.

use callgate::{Gate, Server, ServerState};
use callgate_text::label;
use rmcp::model::JsonObject;
use serde::Deserialize;

use super::own_tools::{self, DISABLE_SERVER, ENABLE_SERVER, LIST_SERVERS};
use super::texts::{line, server_line, tool_count};

/// The limit of the reason why a server is down, in characters.
const MAX_REASON: usize = 300;

#[derive(Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
struct OneServer {
    server: String,
}

pub(crate) fn list_servers(gate: &Gate, given: Option<&JsonObject>) -> Result<String, String> {
    let Nothing {} = own_tools::read(LIST_SERVERS, given)?;
    let servers = gate.servers();
    if servers.is_empty() {
        return Ok("no servers are configured\n".to_owned());
    }
    Ok(servers.iter().map(described).collect())
}

pub(crate) async fn enable_server(
    gate: &Gate,
    given: Option<&JsonObject>,
) -> Result<String, String> {
    let given: OneServer = own_tools::read(ENABLE_SERVER, given)?;
    let enabled = gate.enable(&given.server).await;
    let server = enabled.map_err(|error| error.to_string())?;
    let (name, tools) = (line(&server.name), tool_count(&server));
    Ok(format!(
        "server {name:?} is enabled: {tools}; find them with search_tools\n"
    ))
}

pub(crate) async fn disable_server(
    gate: &Gate,
    given: Option<&JsonObject>,
) -> Result<String, String> {
    let given: OneServer = own_tools::read(DISABLE_SERVER, given)?;
    let disabled = gate.disable(&given.server).await;
    let server = disabled.map_err(|error| error.to_string())?;
    Ok(format!("server {:?} is disabled\n", line(&server.name)))
}

fn described(server: &Server) -> String {
    let mut text = format!("- {}\n", server_line(server));
    if let ServerState::Down { reason } = &server.state {
        let reason = label(&reason.replace(char::is_control, " "), MAX_REASON);
        text += &format!("  {reason}\n");
    }
    text
}

//! `list_servers`, `enable_server` and `disable_server`.

use callgate::{Gate, Server, ServerState};
use rmcp::model::JsonObject;

use super::own::{DISABLE_SERVER, ENABLE_SERVER, LIST_SERVERS};
use super::texts::{count, line, server_line};
use crate::arguments::Arguments;

/// Characters of the reason why a server is down.
const MAX_REASON: usize = 300;

/// Answers `list_servers`.
///
/// # Errors
///
/// What is wrong with the arguments.
pub(crate) fn list_servers(gate: &Gate, given: Option<&JsonObject>) -> Result<String, String> {
    Arguments::of(LIST_SERVERS, given).check()?;
    let servers = gate.servers();
    if servers.is_empty() {
        return Ok("there are no servers: none is configured\n".to_owned());
    }
    Ok(servers.iter().map(described).collect())
}

/// Answers `enable_server`.
///
/// # Errors
///
/// What is wrong with the arguments, or that the server does not start.
pub(crate) async fn enable_server(
    gate: &Gate,
    given: Option<&JsonObject>,
) -> Result<String, String> {
    let mut arguments = Arguments::of(ENABLE_SERVER, given);
    let name = arguments.text("server", "its name");
    arguments.check()?;
    let server = gate.enable(name).await.map_err(|error| error.to_string())?;
    let tools = count(server.tools, "", "tool");
    Ok(format!(
        "server {:?} is in use: {tools}, found by search_tools\n",
        line(&server.name)
    ))
}

/// Answers `disable_server`.
///
/// # Errors
///
/// What is wrong with the arguments.
pub(crate) async fn disable_server(
    gate: &Gate,
    given: Option<&JsonObject>,
) -> Result<String, String> {
    let mut arguments = Arguments::of(DISABLE_SERVER, given);
    let name = arguments.text("server", "its name");
    arguments.check()?;
    let server = gate
        .disable(name)
        .await
        .map_err(|error| error.to_string())?;
    Ok(format!("server {:?} is out of use\n", line(&server.name)))
}

fn described(server: &Server) -> String {
    let mut text = format!("- {}\n", server_line(server));
    if let ServerState::Down { reason } = &server.state {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let reason: String = reason.chars().map(plain).take(MAX_REASON).collect();
        text.push_str(&format!("  {reason}\n"));
    }
    text
}

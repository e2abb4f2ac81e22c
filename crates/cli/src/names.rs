//! Wrong tool names and patterns on the command line.

use callgate::faces::Pattern;
use callgate::{Gate, Status, ToolInfo};
use callgate_text::nearest;

use crate::{print, setup};

/// Prints the problem of a name that is not a tool, and returns the exit code.
pub fn not_a_tool(gate: &Gate, function: &str) -> Option<u8> {
    let is_tool = gate.view().has_tool(function);
    (!is_tool).then(|| Fault::of(gate, function, &[]).tell())
}

/// The tools of these names, patterns and servers; all tools without any. The error: an exit code,
/// after a message for each that matches nothing.
pub fn chosen(gate: &Gate, wanted: &[String]) -> Result<Vec<ToolInfo>, u8> {
    let (view, mut tools) = (gate.view(), gate.tools());
    if wanted.is_empty() {
        return Ok(tools);
    }
    let servers = servers(gate);
    let (mut patterns, mut faults) = (Vec::new(), Vec::new());
    for name in wanted.iter().filter(|name| !servers.contains(name)) {
        let matches = |pattern: &Pattern| {
            let mut tools = tools.iter();
            tools.any(|tool| view.matches(pattern, &tool.function))
        };
        match Pattern::new(name).ok().filter(matches) {
            Some(pattern) => patterns.push(pattern),
            None => {
                let fault = Fault::of(gate, name, &servers);
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
        }
    }
    // The code of wrong usage, if any name is wrong, is the least.
    if let Some(code) = faults.iter().map(Fault::tell).min() {
        return Err(code);
    }
    tools.retain(|tool| {
        let mut patterns = patterns.iter();
        wanted.contains(&tool.server)
            || patterns.any(|pattern| view.matches(pattern, &tool.function))
    });
    Ok(tools)
}

/// The names of all servers, also of those that are not in use.
fn servers(gate: &Gate) -> Vec<String> {
    let off = gate.view().servers_off().into_iter().map(|(name, _)| name);
    let servers = gate.servers().into_iter().map(|server| server.name);
    servers.chain(off).collect()
}

/// The problem with a tool name, and its exit code.
#[derive(PartialEq)]
pub struct Fault {
    message: String,
    code: u8,
}

impl Fault {
    /// The problem of a name or pattern that matches no tool and none of these servers.
    fn of(gate: &Gate, name: &str, servers: &[String]) -> Self {
        let view = gate.view();
        if let Some(missing) = missing_server(gate, name) {
            return missing;
        }
        let mut message = if name.contains('*') {
            view.unmatched_message(name)
        } else {
            view.unknown_tool_message(name)
        };
        if let Some(server) = nearest(name, servers.iter().map(String::as_str))
            && !message.ends_with('?')
        {
            message += &format!("; did you mean the server {server:?}?");
        }
        let advice = match view.disabled_server_of(name) {
            Some(_) => setup::TO_USE_A_SERVER,
            None => "`callgate tools` lists those there are",
        };
        // The message may end with a question.
        let then = if message.ends_with('?') { "" } else { ";" };
        Self {
            message: view
                .kept_from_models(name)
                .unwrap_or_else(|| format!("{message}{then} {advice}")),
            code: crate::exit::USAGE,
        }
    }

    /// Prints the problem, and returns the exit code.
    pub fn tell(&self) -> u8 {
        print::error(&self.message);
        self.code
    }
}

/// The reason why the server of a tool is unavailable.
pub fn missing_server(gate: &Gate, function: &str) -> Option<Fault> {
    let server = gate.view().unavailable_server_of(function)?;
    Some(Fault {
        message: server.reason,
        code: Status::MissingServer.exit_code(),
    })
}

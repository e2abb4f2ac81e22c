//! Wrong tool names and patterns on the command line.

use callgate::faces::Pattern;
use callgate::{Gate, Status, ToolInfo};
use callgate_text::nearest;

use crate::{print, setup};

/// Prints the problem of a name that is not a tool, and returns the exit code.
pub fn not_a_tool(gate: &Gate, function: &str) -> Option<u8> {
    if gate.view().has_tool(function) {
        return None;
    }
    let message = gate.view().unknown_tool_message(function);
    no_such_tools(gate, vec![(function, message)])
}

/// The tools of these names, patterns and servers; all tools without any. The error: an exit code,
/// after a message for each that matches nothing.
pub fn chosen(gate: &Gate, wanted: &[String]) -> Result<Vec<ToolInfo>, u8> {
    let (view, mut tools) = (gate.view(), gate.tools());
    if wanted.is_empty() {
        return Ok(tools);
    }
    let servers = servers(gate);
    let (mut patterns, mut wrong) = (Vec::new(), Vec::new());
    for name in wanted.iter().filter(|name| !servers.contains(name)) {
        let matches = |pattern: &Pattern| {
            let mut tools = tools.iter();
            tools.any(|tool| view.matches(pattern, &tool.function))
        };
        match Pattern::new(name).ok().filter(matches) {
            Some(pattern) => patterns.push(pattern),
            None => wrong.push((name.as_str(), unmatched(gate, name, &servers))),
        }
    }
    if let Some(code) = no_such_tools(gate, wrong) {
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

/// The message for a name or pattern that matches no tool and no server.
fn unmatched(gate: &Gate, name: &str, servers: &[String]) -> String {
    let message = if name.contains('*') {
        gate.view().unmatched_message(name)
    } else {
        gate.view().unknown_tool_message(name)
    };
    match nearest(name, servers.iter().map(String::as_str)) {
        Some(server) if !message.ends_with('?') => {
            format!("{message}; did you mean the server {server:?}?")
        }
        _ => message,
    }
}

/// Prints why these names or patterns match no tool, and returns the exit code: of wrong usage, if
/// any name is wrong. Each has the message for a name that no server is known to have.
fn no_such_tools(gate: &Gate, wrong: Vec<(&str, String)>) -> Option<u8> {
    let mut faults: Vec<Fault> = Vec::new();
    for (name, message) in wrong {
        let fault = missing_server(gate, name).unwrap_or_else(|| not_named(gate, name, message));
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let codes: Vec<u8> = faults.iter().map(Fault::tell).collect();
    codes.into_iter().min()
}

/// The problem with a tool name, and its exit code.
#[derive(PartialEq)]
pub struct Fault {
    message: String,
    code: u8,
}

impl Fault {
    /// Prints the problem, and returns the exit code.
    pub fn tell(&self) -> u8 {
        print::error(&self.message);
        self.code
    }
}

fn not_named(gate: &Gate, function: &str, message: String) -> Fault {
    let message = gate.view().kept_from_models(function).unwrap_or_else(|| {
        let advice = match gate.view().disabled_server_of(function) {
            Some(_) => setup::TO_USE_A_SERVER,
            None => "`callgate tools` lists those there are",
        };
        // The message may end with a question.
        let then = if message.ends_with('?') { "" } else { ";" };
        format!("{message}{then} {advice}")
    });
    Fault {
        message,
        code: crate::exit::USAGE,
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

//! What is wrong with the names of tools, and patterns over them, that a command was given.

use callgate::{Gate, Status};

use crate::{print, session};

/// Says what is wrong with each name that is no tool; the exit code for them.
pub fn not_a_tool(gate: &Gate, functions: &[String]) -> Option<u8> {
    let wrong = functions.iter().filter(|function| !gate.has_tool(function));
    let unknown = |function: &String| gate.unknown_tool_message(function);
    no_such_tools(
        gate,
        wrong.map(|function| (function.as_str(), unknown(function))),
    )
}

/// Says why there is no tool of each of these names, or none that such a pattern matches, in
/// the words beside it if it is not known to be elsewhere. The exit code for them: of wrong
/// usage, if that is what is wrong with any.
pub fn no_such_tools<'a>(
    gate: &Gate,
    wrong: impl Iterator<Item = (&'a str, String)>,
) -> Option<u8> {
    let mut faults: Vec<Fault> = Vec::new();
    for (name, message) in wrong {
        let fault = missing_server(gate, name).unwrap_or_else(|| not_named(gate, name, message));
        // Several may be of one server.
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let codes: Vec<u8> = faults.iter().map(Fault::tell).collect();
    codes.into_iter().min()
}

/// What is wrong with the name of a tool, and the exit code for it.
#[derive(PartialEq)]
pub struct Fault {
    message: String,
    code: u8,
}

impl Fault {
    /// Tells it.
    pub fn tell(&self) -> u8 {
        print::error(&self.message);
        self.code
    }
}

fn not_named(gate: &Gate, function: &str, message: String) -> Fault {
    let message = gate.kept_from_models(function).unwrap_or_else(|| {
        let advice = match gate.disabled_server_of(function) {
            Some(_) => session::TO_USE_A_SERVER,
            None => "`callgate tools` lists those there are",
        };
        // It may end with a question.
        let then = if message.ends_with('?') { "" } else { ";" };
        format!("{message}{then} {advice}")
    });
    Fault {
        message,
        code: crate::USAGE,
    }
}

/// Why the server of a tool is not there.
pub fn missing_server(gate: &Gate, function: &str) -> Option<Fault> {
    let server = gate.unavailable_server_of(function)?;
    Some(Fault {
        message: server.reason,
        code: Status::MissingServer.exit_code(),
    })
}

//! Sentences about the entries that servers list, for a person.

use callgate_typegen::Degradation;
use callgate_typegen::names::{self, Collision};

/// An entry of a list that is not a tool and is dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("server {}: {} is dropped: {reason}", quoted(server), what(tool.as_deref()))]
pub struct Malformed {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name, if it has one; cut at 256 bytes.
    pub tool: Option<String>,
    /// The reason, as a clause.
    pub reason: String,
}

impl Malformed {
    /// True if the tool would have this function name without other tools.
    pub fn is_named(&self, function: &str) -> bool {
        let Some(tool) = &self.tool else { return false };
        let names = names::assign([(self.server.as_str(), tool.as_str())]);
        names.function(&self.server, tool) == Some(function)
    }
}

/// The warning about a member of a tool with the wrong form; the tool goes without it.
pub(crate) fn ignored(server: &str, tool: &str, member: &str, fault: &str) -> String {
    let (server, tool) = (quoted(server), quoted(tool));
    format!("server {server}: `{member}` of the tool {tool} is ignored: it {fault}")
}

/// The warning about a name that a server lists a second time; the later tool is dropped.
pub(crate) fn duplicate(server: &str, tool: &str) -> String {
    let (server, tool) = (quoted(server), quoted(tool));
    format!("server {server}: the tool {tool} is listed more than once; the first one counts")
}

/// The warning about several tools that want one function name; each gets a different one.
pub(crate) fn collision(collision: &Collision) -> String {
    let why = match collision.members.as_slice() {
        // Of a different tool, or with the prefix of a different server.
        [_one] => "a name that is, or may be, of a different tool:",
        _ => "more than one tool would be",
    };
    let members = collision.members.iter().map(|member| {
        let (server, tool) = (quoted(&member.server), quoted(&member.tool));
        format!("{} for {tool} of {server}", member.function)
    });
    let members: Vec<String> = members.collect();
    format!("{why} {}; use {}", collision.name, members.join(", "))
}

/// The warning about a declaration that says less than its schema.
pub(crate) fn degraded(degradation: &Degradation) -> String {
    let (server, tool) = (quoted(&degradation.server), quoted(&degradation.tool));
    let what = if degradation.widens() {
        format!("the types of the tool {tool} are wider than its schema")
    } else {
        format!("the declaration of the tool {tool} says less than its schema")
    };
    let (reason, pointer) = (&degradation.reason, quoted(&degradation.pointer));
    format!("server {server}: {what}: {reason} at {pointer}")
}

fn what(tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("the tool {}", quoted(tool)),
        None => "a tool".to_owned(),
    }
}

/// Bytes of a name out of a server that a message repeats.
const MAX_QUOTED: usize = 80;

/// Quotes, escapes and cuts a string from a server for a message.
fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTED);
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", text.get(..end).unwrap_or_default())
}

//! Texts for the model: the sandbox's rules in a few lines, the tools, and how to find those
//! that are not shown.

use std::fmt::Write as _;

use callgate::config::ToolMode;
use callgate::{Gate, Server, ServerState};

use super::declared::Declared;

/// Characters of a server's description.
const MAX_LINE: usize = 80;
/// Bytes of the lines about servers, where not all tools are declared.
const MAX_SERVERS: usize = 500;

/// The rule for gates that have a model.
const EXTRACT: &str = "- mcp.extract(text, \"{ id: number; to: string }[]\") has a small model \
    put a text into that form; give it many at once, not one by one.\n";

/// The `instructions` that a client gets when it connects.
pub(crate) fn instructions(mode: ToolMode) -> &'static str {
    match mode {
        ToolMode::Discovery => {
            "Find tools with search_tools, read what they take with get_tool_details, and call \
             them with call_tool.\n\
             list_servers says where they come from; enable_server brings in those of a server \
             that is off."
        }
        ToolMode::Native => {
            "The tools are those of several servers, named SERVER_TOOL; a call may be denied or \
             need a person's approval.\n\
             If there is a search_tools, tools that are not listed are found with it and called \
             with call_tool."
        }
        _ => {
            "Do a whole job in one run_script call: the script calls tools as functions and \
             prints only what you need to see.\n\
             If the description of run_script says PARTIAL, find functions with search_tools \
             first."
        }
    }
}

/// The description of `run_script`.
pub(crate) fn run_script(
    gate: &Gate,
    declared: &Declared,
    servers: &[Server],
    extracts: bool,
) -> String {
    let limits = gate.limits();
    let mut text = format!(
        "Run one TypeScript script that does the whole job by calling functions, and console.log \
         only what you need to see.\n\
         - Top-level await and return work; types need no import. Besides the functions there \
         are the language, Intl, console, timers, URL, TextEncoder, structuredClone, \
         AbortController and crypto.randomUUID; there are no imports, no fetch, no process, no \
         files.\n\
         - Call independent functions together with Promise.all. Filter, join and count in the \
         script: results stay in the sandbox unless you print or return them.\n\
         - A function that returns unknown gives its text as a string, null if there is none, or \
         {{ content: [...] }} for images and resources; mcp.text(result) and mcp.json(result) \
         read it. mcp.callTool(name, input) calls a function by its name.\n\
         - mcp.emit(result) adds a result's images, sound and resources to the answer of this \
         tool; printed, they would be text.\n{}\
         - A failing call throws McpToolError, McpProtocolError, McpTimeoutError or \
         McpDeniedError; catch it to go on. A denied call will be denied again. Every function takes \
         {{ signal, timeoutMs }} as its second argument.\n\
         - Output over {} bytes keeps its head and tail; script time is limited to {} ms, waiting \
         for functions not counted.\n",
        if extracts { EXTRACT } else { "" },
        limits.output_bytes,
        limits.script_time.as_millis(),
    );
    if declared.is_complete() {
        push_complete(&mut text, declared.all, servers);
    } else {
        let shown = match declared.shown {
            0 => "none".to_owned(),
            shown => shown.to_string(),
        };
        let _ = writeln!(
            text,
            "\nPARTIAL: {shown} of {} functions declared here. Find others with search_tools, \
             read their declarations with get_tool_details, and call them by their names; in a \
             script, mcp.searchTools(query) and mcp.getToolDetails(names) do the same. The \
             servers:",
            declared.all
        );
        push_servers(&mut text, servers);
    }
    if !declared.text.is_empty() {
        let _ = write!(text, "```ts\n{}```\n", declared.text);
    }
    text
}

/// The lines for a description that declares all functions.
fn push_complete(text: &mut String, all: usize, servers: &[Server]) {
    for server in servers {
        if matches!(server.state, ServerState::Down { .. }) {
            let name = line(&server.name);
            let _ = writeln!(
                text,
                "- Not available now: the functions of server {name:?}."
            );
        }
    }
    let declared = match all {
        0 => "there are no functions".to_owned(),
        _ => count(all, "all", "function") + " declared here",
    };
    let _ = write!(text, "\nCOMPLETE: {declared}.");
    let is_off = |server: &Server| server.state == ServerState::Disabled;
    if servers.iter().any(is_off) {
        text.push_str(" Servers that are off have more; see list_servers.");
    }
    text.push('\n');
}

/// The servers in a line each; only names if the lines are too long, and only some of them if
/// the names are.
fn push_servers(text: &mut String, servers: &[Server]) {
    let lines: Vec<String> = servers.iter().map(server_line).collect();
    let length: usize = lines.iter().map(|line| line.len() + 3).sum();
    if length <= MAX_SERVERS {
        for line in lines {
            let _ = writeln!(text, "- {line}");
        }
        return;
    }
    let begin = text.len();
    for (at, server) in servers.iter().enumerate() {
        let name = line(&server.name);
        if text.len() - begin + name.len() > MAX_SERVERS {
            let _ = write!(text, "and {} more: see list_servers", servers.len() - at);
            break;
        }
        let comma = if at + 1 < servers.len() { ", " } else { "" };
        let _ = write!(text, "{name} ({}){comma}", server.tools);
    }
    text.push('\n');
}

/// A server in one line.
pub(crate) fn server_line(server: &Server) -> String {
    let mut text = format!(
        "{} ({}",
        line(&server.name),
        count(server.tools, "", "tool")
    );
    match &server.state {
        ServerState::Disabled => text.push_str(", off"),
        ServerState::Down { .. } => text.push_str(", not available"),
        _ => {}
    }
    if server.stale {
        text.push_str(", list may be old");
    }
    text.push(')');
    if let Some(description) = &server.description {
        let _ = write!(text, ": {}", line(description));
    }
    text
}

/// A number of things: `3 tools`, `1 tool`, `all 3 tools`.
pub(crate) fn count(count: usize, before: &str, thing: &str) -> String {
    let space = if before.is_empty() { "" } else { " " };
    let s = if count == 1 { "" } else { "s" };
    format!("{before}{space}{count} {thing}{s}")
}

/// A server's text in one short line.
pub(crate) fn line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).take(MAX_LINE + 1).collect();
    let text = text.trim();
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
        None => text.to_owned(),
    }
}

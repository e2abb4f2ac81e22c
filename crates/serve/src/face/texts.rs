//! Texts for the model: the rules for scripts, the tools, and how to find tools that are not
//! shown.

use std::fmt::Write as _;

use callgate::{Gate, Server, ServerState, ToolInfo};
use callgate_text::label;

use super::declared::{DeclaredFunctions, DetailLevel};
use super::sample::Sample;
use crate::config::ToolMode;

/// The limit of a server's description, in characters.
const MAX_LINE: usize = 80;
/// The limit of the lines about servers, if functions are not shown, in bytes.
const MAX_SERVERS: usize = 400;
/// The limit of the names of denied functions, in bytes.
const MAX_DENIED: usize = 300;

/// The line about extraction, for gates that have a model.
const EXTRACT: &str = "- mcp.extract(text, \"{ id: number; to: string }[]\") makes a small model \
    convert a text to that type; pass many items at once, not one by one.\n";

/// The `instructions` that a client gets when it connects.
pub(crate) fn instructions(mode: ToolMode) -> &'static str {
    match mode {
        ToolMode::Discovery => {
            "Find tools with search_tools, read what they take with get_tool_details, and call \
             them with call_tool."
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

pub(crate) fn run_script(
    gate: &Gate,
    declared: &DeclaredFunctions,
    servers: &[Server],
    extracts: bool,
) -> String {
    let limits = gate.limits();
    let sample = declared.sample.as_ref().map(Sample::in_script);
    let mut text = format!(
        "Run one TypeScript script that does the whole job by calling functions, and console.log \
         only what you need to see.\n\
         - Functions (the servers' tools) are globals that take one object{}, and as a second \
         argument {{ signal, timeoutMs }}.\n\
         - Top-level await and return work. There are Intl, console, timers, URL, TextEncoder, \
         structuredClone, AbortController and crypto.randomUUID; no imports, fetch, process or \
         files.\n\
         - Call independent functions together with Promise.all. Filter, join and count in the \
         script: results stay in the sandbox unless you print or return them.\n\
         - A function that returns unknown gives its text as a string, null if there is none, or \
         {{ content: [...] }} for several blocks; mcp.text(result), mcp.json and mcp.blocks read \
         it. An integer beyond 2^53 is a bigint. mcp.callTool(name, input) calls a function by \
         its name.\n\
         - mcp.emit(result) adds the whole result, its text too, to this tool's answer: for \
         images, sound and resources.\n{}\
         - A failing call throws McpToolError, McpProtocolError, McpTimeoutError or \
         McpDeniedError; catch it to go on. A denied call will be denied again.\n\
         - Output over {} bytes keeps its head and tail; a script may compute for {} ms; \
         waiting, for functions or timers, is not counted. Each run starts anew: nothing is kept \
         between runs.\n",
        sample.map_or(String::new(), |call| format!(": `{call}`")),
        if extracts { EXTRACT } else { "" },
        limits.output_bytes,
        limits.script_time.as_millis(),
    );
    for server in servers {
        if declared.level > DetailLevel::Names && matches!(server.state, ServerState::Down { .. }) {
            let name = line(&server.name);
            let _ = writeln!(
                text,
                "- Not available now: the functions of server {name:?}."
            );
        }
    }
    let _ = writeln!(text, "\n{}", catalog(declared));
    text += &denied(declared);
    let is_off = |server: &Server| server.state == ServerState::Disabled;
    if servers.iter().any(is_off) {
        text += "Servers that are off have more; see list_servers.\n";
    }
    let (lines, code) = if declared.level > DetailLevel::Names {
        ("", declared.text.as_str())
    } else {
        (declared.text.as_str(), "")
    };
    text += lines;
    if !(code.is_empty() && declared.always_on.is_empty()) {
        let _ = write!(text, "```ts\n{code}{}```\n", declared.always_on);
    }
    text
}

/// The description of `search_tools` where a model calls tools without a script.
pub(crate) fn search_tools(plain: &str, declared: &DeclaredFunctions) -> String {
    let (tools, servers) = counts(declared, "tool");
    let text = format!("{plain} There are {tools} in {servers}:\n{}", declared.text);
    text + &denied(declared)
}

fn counts(declared: &DeclaredFunctions, noun: &str) -> (String, String) {
    (count(declared.all, noun), count(declared.servers, "server"))
}

/// The number of functions, and the detail in which they are shown.
fn catalog(declared: &DeclaredFunctions) -> String {
    let (all, servers) = counts(declared, "function");
    let find = "Find functions with search_tools and read their declarations with \
                get_tool_details; in a script: (await mcp.searchTools(query)).tools, (await \
                mcp.getToolDetails(names)).declarations.";
    match declared.level {
        level if let Some(late) = &declared.late => {
            let shown = match level {
                DetailLevel::Full => "declared here",
                DetailLevel::Signatures => "as name(input): result type",
                DetailLevel::Names => "by name",
                DetailLevel::Servers => "not shown here",
            };
            match declared.all {
                0 => format!("PARTIAL: {late}. {find}"),
                _ => format!("PARTIAL: {all}, {shown}; {late}. {find}"),
            }
        }
        _ if declared.all == 0 => "COMPLETE: there are no functions.".to_owned(),
        DetailLevel::Full => {
            let declared = count(declared.all - declared.denied.len(), "function");
            format!("COMPLETE: all {declared} declared here.")
        }
        DetailLevel::Signatures => format!(
            "COMPLETE: {all} in {servers}, as name(input): result type; \
             get_tool_details has descriptions."
        ),
        level => {
            let shown = match level {
                DetailLevel::Names => "by name",
                _ => "not shown here",
            };
            format!("PARTIAL: {all} in {servers}, {shown}. {find}")
        }
    }
}

/// The line about denied functions, if there are any.
fn denied(declared: &DeclaredFunctions) -> String {
    if declared.denied.is_empty() {
        return String::new();
    }
    let mut names = declared.denied.join(", ");
    if names.len() > MAX_DENIED {
        names = "get_tool_details marks them".to_owned();
    }
    let (denied, all) = (declared.denied.len(), declared.all);
    format!("DENIED by the configuration, {denied} of {all}: {names}.\n")
}

/// One line for each server, with the names of its functions.
pub(crate) fn servers_with_names(servers: &[Server], tools: &[ToolInfo]) -> String {
    let mut text = String::new();
    for server in servers {
        let _ = write!(text, "- {}", server_line(server));
        let own = tools.iter().filter(|tool| tool.server == server.name);
        for (at, tool) in own.enumerate() {
            text += if at == 0 { "\n  " } else { ", " };
            text += &tool.function;
        }
        text.push('\n');
    }
    text
}

/// One line for each server; if that is too long, one line of names, perhaps cut.
pub(crate) fn servers(servers: &[Server]) -> String {
    let lines: Vec<String> = servers.iter().map(server_line).collect();
    let length: usize = lines.iter().map(|line| line.len() + 3).sum();
    if length <= MAX_SERVERS {
        return lines.iter().map(|line| format!("- {line}\n")).collect();
    }
    let mut text = String::new();
    for (at, server) in servers.iter().enumerate() {
        let name = line(&server.name);
        if text.len() + name.len() > MAX_SERVERS {
            let _ = write!(text, "and {} more", servers.len() - at);
            break;
        }
        text += &name;
        text += if at + 1 < servers.len() { ", " } else { "" };
    }
    text.push('\n');
    text
}

/// A server in one line.
pub(crate) fn server_line(server: &Server) -> String {
    let mut text = format!("{} ({}", line(&server.name), tool_count(server));
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

/// The number of a server's tools: `3 tools`, `3 tools, 1 denied`.
pub(crate) fn tool_count(server: &Server) -> String {
    let tools = count(server.tools, "tool");
    match server.denied {
        0 => tools,
        denied => format!("{tools}, {denied} denied"),
    }
}

/// A number of things: `3 tools`, `1 tool`.
pub(crate) fn count(count: usize, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{s}")
}

/// A server's text in one short line.
pub(crate) fn line(text: &str) -> String {
    let text = label(&text.replace(char::is_control, " "), usize::MAX);
    let Some((end, _)) = text.char_indices().nth(MAX_LINE) else {
        return text;
    };
    let head = text.get(..end).unwrap_or_default();
    // Words stay whole, if there are several.
    let head = head.rsplit_once(' ').map_or(head, |(words, _)| words);
    format!("{}…", head.trim_end())
}

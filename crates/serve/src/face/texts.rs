//! Texts for the model: the rules for scripts, the tools, and how to find tools that are not
//! shown.

use std::fmt::Write as _;

use callgate::{Gate, Server, ServerState};
use callgate_text::label;

use super::declared::{DeclaredFunctions, ServerFunctions, shortest_that_fit};
use super::sample::Sample;
use crate::config::ToolMode;

/// The characters at the start of a description that every client shows. Claude Code cuts the rest
/// off.
const MAX_START: usize = 2000;
/// The limit of a server's description, in characters.
const MAX_LINE: usize = 80;
/// The limit of a list of servers that has no room, in bytes.
const MAX_SERVERS: usize = 400;
/// The limit of the names of denied functions, in bytes.
const MAX_DENIED: usize = 300;

/// How a model finds functions.
const FIND: &str = "Find functions with search_tools and read their declarations with \
                    get_tool_details.";
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
             If there is a search_tools, it finds functions that the description of run_script \
             does not declare."
        }
    }
}

/// The description of `run_script`. Its first [`MAX_START`] characters stand alone, because some
/// clients show no more.
pub(crate) fn run_script(gate: &Gate, declared: &DeclaredFunctions, extracts: bool) -> String {
    let start = rules(gate, declared);
    let more = more_rules(extracts);
    let limited = limits(declared);
    let code = match declared.code.as_str() {
        "" => String::new(),
        code => format!("```ts\n{code}```\n"),
    };
    if declared.is_whole() {
        let text = format!("{start}{more}\n{}\n{limited}{code}", complete(declared));
        if is_short(&text) {
            return text;
        }
    }
    let start = format!("{start}\n{}\n", partial(declared));
    let used = start.chars().count() + limited.chars().count();
    let room = MAX_START.saturating_sub(used);
    let (listed, named) = server_list(&declared.servers, room.min(declared.room));
    let others = other_names(declared, &named);
    format!("{start}{listed}{limited}{more}{others}{code}")
}

/// True if every client shows the whole text.
pub(crate) fn is_short(text: &str) -> bool {
    text.chars().count() <= MAX_START
}

/// What a model must know to write a script.
fn rules(gate: &Gate, declared: &DeclaredFunctions) -> String {
    let limits = gate.limits();
    let sample = declared.sample.as_ref().map(Sample::in_script);
    format!(
        "Run one TypeScript script that does the whole job by calling functions, and console.log \
         only what you need to see.\n\
         - Functions (the servers' tools) are globals that take one object{}.\n\
         - Top-level await and return work; a returned value is printed as compact JSON. There are \
         no imports, fetch, process or files.\n\
         - Call independent functions together with Promise.all. Filter, join and count in the \
         script: results stay in the sandbox unless you print or return them.\n\
         - A function that returns unknown gives its text as a string, null if there is none, or \
         {{ content: [...] }} for several blocks; mcp.text(result), mcp.json and mcp.blocks read \
         it.\n\
         - A failing call throws McpToolError, McpProtocolError, McpTimeoutError or \
         McpDeniedError; catch it to go on. A denied call will be denied again.\n\
         - Output over {} bytes keeps its head and tail; a script may compute for {} ms; \
         waiting, for functions or timers, is not counted. Each run starts anew: nothing is kept \
         between runs.\n",
        sample.map_or(String::new(), |call| format!(": `{call}`")),
        limits.output_bytes,
        limits.script_time.as_millis(),
    )
}

/// What a model may need to write a script.
fn more_rules(extracts: bool) -> String {
    format!(
        "- mcp.emit(result) adds the whole result, its text too, to this tool's answer: for \
         images, sound and resources.\n\
         - mcp.callTool(name, input) calls a function by its name. A function's second argument \
         may be {{ signal, timeoutMs }}. An integer beyond 2^53 is a bigint.\n\
         - A script can look functions up: (await mcp.searchTools(query)).tools, (await \
         mcp.getToolDetails(names)).declarations.\n\
         - There are also Intl, timers, URL, TextEncoder, structuredClone, AbortController and \
         crypto.randomUUID.\n{}",
        if extracts { EXTRACT } else { "" },
    )
}

/// The lines about functions that cannot be called now, or not in every way.
fn limits(declared: &DeclaredFunctions) -> String {
    let mut text = denied(declared) + &declared.approvals.lines();
    if !declared.down.is_empty() {
        let down = cut(&declared.down, ", ", MAX_SERVERS);
        let _ = writeln!(
            text,
            "Not available now: the functions of {down} (only the operator can mend that)."
        );
    }
    if declared.is_some_off {
        text += "Servers that are off have more; see list_servers.\n";
    }
    text
}

/// The description of `search_tools` where a model calls tools without a script.
pub(crate) fn search_tools(plain: &str, declared: &DeclaredFunctions) -> String {
    let (tools, servers) = counts(declared, "tool");
    let (listed, _) = server_list(&declared.servers, declared.room);
    let text = format!("{plain} There are {tools} in {servers}:\n{listed}");
    text + &limits(declared)
}

fn counts(declared: &DeclaredFunctions, noun: &str) -> (String, String) {
    let servers = count(declared.with_tools, "server");
    (count(declared.all, noun), servers)
}

/// How the functions are declared if they are not declared with comments.
fn form(declared: &DeclaredFunctions) -> &'static str {
    if declared.is_full || declared.declared == 0 {
        ""
    } else {
        ", as name(input): result type"
    }
}

/// The number of functions in a text that every client shows whole.
fn complete(declared: &DeclaredFunctions) -> String {
    if declared.all == 0 {
        return "COMPLETE: there are no functions.".to_owned();
    }
    let functions = count(declared.declared, "function");
    let form = form(declared);
    let details = if declared.is_full {
        ""
    } else {
        "; get_tool_details has descriptions"
    };
    format!("COMPLETE: all {functions} declared here{form}{details}.")
}

/// The number of functions in a text that some client may not show whole, and how to find them.
fn partial(declared: &DeclaredFunctions) -> String {
    let (all, servers) = counts(declared, "function");
    let form = form(declared);
    if declared.is_whole() {
        return format!(
            "{all} in {servers}, declared at the end of this text{form}. If that end is cut \
             off: search_tools finds functions, get_tool_details declares them."
        );
    }
    let shown = match declared.declared {
        0 => "none declared here".to_owned(),
        shown => format!("{shown} of them declared at the end of this text{form}"),
    };
    match &declared.late {
        Some(late) if declared.all == 0 => format!("PARTIAL: {late}. {FIND}"),
        Some(late) => format!("PARTIAL: {all} in {servers}, {shown}; {late}. {FIND}"),
        None => format!("PARTIAL: {all} in {servers}, {shown}. {FIND}"),
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

/// A list of servers in `room` bytes: with the names of their functions as far as they fit, the
/// shortest first, otherwise with their number and the server's purpose. Marks the servers whose
/// functions are named.
fn server_list(servers: &[ServerFunctions], room: usize) -> (String, Vec<bool>) {
    let length: usize = servers.iter().map(|server| server.line.len() + 3).sum();
    if length > room.max(MAX_SERVERS) {
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        let text = cut(&names, ", ", MAX_SERVERS) + "\n";
        return (text, vec![false; servers.len()]);
    }
    let names = servers.iter().map(|server| server.names().len() + 2);
    let named = shortest_that_fit(&names.collect::<Vec<_>>(), room.saturating_sub(length));
    let lines = |has_purpose: bool| {
        let lines = servers.iter().zip(&named).map(|(server, is_named)| {
            let text = match &server.about {
                _ if *is_named => server.names(),
                Some(about) if has_purpose => about.clone(),
                _ => String::new(),
            };
            let colon = if text.is_empty() { "" } else { ": " };
            format!("- {}{colon}{text}\n", server.line)
        });
        lines.collect::<String>()
    };
    let mut text = lines(true);
    if text.len() > room {
        text = lines(false);
    }
    (text, named)
}

/// The names of functions that are not declared, without those of servers in `named`, as far as
/// there is room.
fn other_names(declared: &DeclaredFunctions, named: &[bool]) -> String {
    let others = declared.servers.iter().zip(named);
    let others = others.filter(|(server, is_named)| !server.is_declared && !**is_named);
    let lines = others.map(|(server, _)| match server.names() {
        names if names.is_empty() => names,
        names => format!("- {}: {names}\n", server.name),
    });
    let lines: Vec<String> = lines.collect();
    let lengths: Vec<usize> = lines.iter().map(String::len).collect();
    let shown = lines
        .iter()
        .zip(shortest_that_fit(&lengths, declared.room))
        .filter(|(_, is_shown)| *is_shown);
    let names: String = shown.map(|(line, _)| line.as_str()).collect();
    if names.is_empty() {
        return names;
    }
    format!("Further functions by name:\n{names}")
}

/// The items in one line of `max` bytes, perhaps cut.
pub(crate) fn cut(items: &[String], separator: &str, max: usize) -> String {
    let mut text = String::new();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text += separator;
            if text.len() + item.len() > max {
                let _ = write!(text, "and {} more", items.len() - at);
                break;
            }
        }
        text += item;
    }
    text
}

/// A server in one line.
pub(crate) fn server_line(server: &Server) -> String {
    let mut text = short_line(server);
    if let Some(description) = &server.description {
        let _ = write!(text, ": {}", line(description));
    }
    text
}

/// A server in one line, without its purpose.
pub(crate) fn short_line(server: &Server) -> String {
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

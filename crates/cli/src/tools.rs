//! `callgate tools`: the tools with what the rules say about each, and the servers not in use.

use callgate::{Gate, ServerState};
use serde_json::{Value, json};

use crate::args::ToolsArgs;
use crate::{names, print, setup};

/// Maximum width of the column of names.
const MAX_WIDTH: usize = 40;

/// Prints the tools by server, and returns the exit code.
pub fn print(gate: &Gate, args: &ToolsArgs) -> anyhow::Result<u8> {
    let tools = match names::chosen(gate, &args.tools) {
        Ok(tools) => tools,
        Err(code) => return Ok(code),
    };
    if args.json {
        let tools = tools.iter().map(|tool| {
            let mut listed = json!(tool);
            listed["rule"] = json!(gate.view().rule_in_short(&tool.function));
            listed["readOnly"] = json!(gate.view().is_read_only(&tool.function));
            listed
        });
        print::json(&tools.collect::<Vec<Value>>())?;
        return Ok(0);
    }
    let functions: Vec<&str> = tools.iter().map(|tool| tool.function.as_str()).collect();
    let mut text = String::new();
    let mut server = None;
    for (tool, row) in tools.iter().zip(rows(gate, &functions)) {
        if server != Some(&tool.server) {
            text += &format!("{}\n", tool.server);
            server = Some(&tool.server);
        }
        text += &format!("  {row}");
    }
    for (name, why) in not_in_use(gate) {
        if args.tools.is_empty() || args.tools.contains(&name) {
            text += &format!("{name}: {why}\n");
        }
    }
    print::out(&text)?;
    if gate.tools().is_empty() {
        let is_empty = gate.servers().is_empty() && gate.view().servers_off().is_empty();
        print::err(if is_empty {
            "no server is configured; write servers under \"mcpServers\", or let `callgate init \
             --force` take them from your other MCP clients\n"
        } else {
            "no server that is in use offers a tool\n"
        });
    }
    Ok(0)
}

/// One line for each function, in columns: its name, what the rules say, `read-only`, its purpose.
pub fn rows(gate: &Gate, functions: &[&str]) -> Vec<String> {
    let view = gate.view();
    let widths = functions.iter().map(|function| function.chars().count());
    let width = widths.max().unwrap_or_default().min(MAX_WIDTH);
    let reads = |function: &str| view.is_read_only(function);
    let mark_width = if functions.iter().any(|function| reads(function)) {
        "read-only  ".len()
    } else {
        0
    };
    let row = |function: &&str| {
        let rule = view.rule_in_short(function).unwrap_or_default();
        let mark = if reads(function) { "read-only" } else { "" };
        let purpose = view.purpose(function);
        let row = format!("{function:width$}  {rule:6}  {mark:mark_width$}{purpose}");
        format!("{}\n", row.trim_end())
    };
    functions.iter().map(row).collect()
}

/// The servers without tools here, each with the reason.
fn not_in_use(gate: &Gate) -> Vec<(String, String)> {
    let servers = gate.servers().into_iter();
    let disabled = servers.filter(|server| server.state == ServerState::Disabled);
    let disabled = disabled.map(|server| {
        let why = format!("disabled; to use it, {}", setup::TO_USE_A_SERVER);
        (server.name, why)
    });
    let off = gate.view().servers_off().into_iter().map(|(name, reason)| {
        let turned_off = "turned off in the configuration".to_owned();
        (name, reason.unwrap_or(turned_off))
    });
    disabled.chain(off).collect()
}

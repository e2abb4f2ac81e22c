//! What a script would do, said before it runs: which tools it names, and
//! what the rules say of each.

use std::collections::HashSet;

use callgate_policy::Verdict;
use callgate_script::{Prepared, ScriptError};
use serde::Serialize;

use crate::gate::{Gate, prepare};
use crate::report::Status;

/// The tools a script names and the decisions they would meet.
///
/// It is read off the text, so it is neither a promise nor a grant: a script
/// may name a tool and never call it, and one that calls `mcp.callTool` with a
/// computed name can call tools that are not listed ([`Self::dynamic`]).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// The tools it names, in the order of their first mention.
    pub tools: Vec<PreviewedTool>,
    /// Names of tools whose server is not available.
    pub missing: Vec<UnknownTool>,
    /// Names that look like a tool of a configured server but are none.
    pub unknown: Vec<UnknownTool>,
    /// Whether it calls `mcp.callTool` with a name that is not a literal.
    pub dynamic: bool,
}

impl Preview {
    /// How a run would end that calls all it names: for want of a server, by a
    /// denial, at a name that is no tool, or well.
    #[must_use]
    pub fn status(&self) -> Status {
        let denied = |tool: &PreviewedTool| tool.verdict == Verdict::Deny;
        if !self.missing.is_empty() {
            Status::MissingServer
        } else if self.tools.iter().any(denied) {
            Status::Denied
        } else if !self.unknown.is_empty() {
            Status::Failed
        } else {
            Status::Completed
        }
    }
}

/// One tool that a script names.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreviewedTool {
    /// The generated name, as the script has it.
    pub function: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The line of the first mention, counted from 1.
    pub line: u32,
    /// What the rules say of it.
    pub verdict: Verdict,
    /// Why they say so.
    pub because: String,
}

/// A name in a script that is no tool but begins like one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnknownTool {
    /// The name as the script has it.
    pub name: String,
    /// The line of the first mention, counted from 1.
    pub line: u32,
    /// What is the matter, with the nearest name if there is one.
    pub message: String,
}

impl Gate {
    /// What a script would call, by its text, and what this gate's rules say
    /// of that. Nothing runs.
    ///
    /// # Errors
    ///
    /// [`ScriptError`] if the text is no acceptable script.
    pub async fn preview(&self, source: &str) -> Result<Preview, ScriptError> {
        let prepared = prepare(source.into()).await?;
        Ok(of(&prepared, self))
    }
}

/// Names that are no tool and are looked up for one that is like them. It goes
/// through the whole catalog each time, and a text can hold many names.
const LOOKED_UP: usize = 100;

fn of(prepared: &Prepared, gate: &Gate) -> Preview {
    let mut preview = Preview {
        tools: Vec::new(),
        missing: Vec::new(),
        unknown: Vec::new(),
        dynamic: prepared.named.dynamic,
    };
    let mut seen = HashSet::new();
    let mut looked_up = 0;
    for mention in &prepared.named.tools {
        let name = mention.name.as_str();
        if !seen.insert(name) {
            continue;
        }
        if let (Some(tool), Some(decision)) = (gate.catalog().get(name), gate.decision(name)) {
            let definition = &tool.definition;
            preview.tools.push(PreviewedTool {
                function: name.to_owned(),
                server: definition.server.clone(),
                tool: definition.name.clone(),
                line: mention.line,
                verdict: decision.verdict,
                because: decision.to_string(),
            });
        } else if looked_up < LOOKED_UP {
            looked_up += 1;
            let Some(message) = gate.why_unknown(name) else {
                continue;
            };
            let list = match gate.unavailable_server_of(name) {
                Some(_) => &mut preview.missing,
                None => &mut preview.unknown,
            };
            list.push(UnknownTool {
                name: name.to_owned(),
                line: mention.line,
                message,
            });
        }
    }
    preview
}

//! Facts about a call and about a tool that rules are matched with.

use jiff::Timestamp;
use serde_json::Value;

use crate::definition::DefinitionHash;
use crate::tool_name::ToolName;

/// The facts about a call when it is decided.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The tool's names, which patterns match.
    pub name: ToolName<'a>,
    /// The hints of its server about the tool.
    pub hints: Hints,
    /// True if the configuration marks the server as trusted.
    pub trusted: bool,
    /// The hash of the tool's definition as its server lists it now; `None`
    /// fits no rule or grant that is bound to one.
    pub definition: Option<&'a DefinitionHash>,
    /// The arguments, as they will be sent; `None` before there is a call.
    /// Rules over arguments then answer [`crate::Because::Depends`].
    pub arguments: Option<&'a Value>,
    /// The time of the call, against which rules and grants expire.
    pub now: Timestamp,
}

/// A server's hints about a tool (MCP 2025-11-25, `ToolAnnotations`). They are
/// claims: without trust in the server they let no call through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hints {
    /// `readOnlyHint`: the tool changes nothing. The protocol's default: false.
    pub read_only: Option<bool>,
    /// `destructiveHint`: what it changes may be lost. Default: true.
    pub destructive: Option<bool>,
    /// `idempotentHint`: a second equal call changes nothing more. Default:
    /// false.
    pub idempotent: Option<bool>,
    /// `openWorldHint`: it deals with things outside the server. Default: true.
    pub open_world: Option<bool>,
}

/// A tool that a server lists, for [`crate::Rules::unmatched`].
#[derive(Debug, Clone, Copy)]
pub struct KnownTool<'a> {
    /// The facts about a call of it, without arguments.
    pub facts: CallFacts<'a>,
    /// Its input schema, if that is known.
    pub input_schema: Option<&'a Value>,
}

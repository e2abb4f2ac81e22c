//! Facts about a call and about a tool that rules are matched with.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::definition::DefinitionHash;
use crate::other_names::OtherNames;

/// The facts about a call when it is decided.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The generated name; patterns match this.
    pub function: &'a str,
    /// The tool's other names, if it may have any. Patterns of rules that hold calls up match
    /// these, too.
    pub other_names: Option<&'a Arc<OtherNames>>,
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The hints of its server about the tool.
    pub hints: Hints,
    /// True if the configuration marks the server as trusted.
    pub trusted: bool,
    /// The hash of the tool's definition as its server lists it now; `None`
    /// fits no rule and no grant that is bound to one.
    pub definition: Option<&'a DefinitionHash>,
    /// The arguments, as they will be sent; `None` before there is a call.
    /// Rules over arguments then answer [`crate::Because::Depends`].
    pub arguments: Option<&'a Value>,
    /// The time of the call, against which rules and grants expire.
    pub now: Timestamp,
}

/// A server's hints about a tool (MCP 2025-11-25, `ToolAnnotations`). They are
/// claims: without trust in the server they make nothing easier.
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

/// A tool that there is, for [`crate::Rules::unmatched`].
#[derive(Debug, Clone, Copy)]
pub struct KnownTool<'a> {
    /// The generated name.
    pub function: &'a str,
    /// As [`CallFacts::other_names`].
    pub other_names: Option<&'a Arc<OtherNames>>,
    /// The server's name in the configuration.
    pub server: &'a str,
    /// The hints of its server about the tool.
    pub hints: Hints,
    /// True if the configuration marks the server as trusted.
    pub trusted: bool,
    /// The hash of its definition, if that is known.
    pub definition: Option<&'a DefinitionHash>,
    /// Its input schema, if that is known.
    pub input_schema: Option<&'a Value>,
}

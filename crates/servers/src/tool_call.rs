//! A tool call as the host makes it.

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::DefinitionHash;

use crate::caller::Caller;

/// A tool call as the host makes it.
#[derive(Debug, Clone)]
pub struct ToolCall<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The definition that the decision was about.
    pub definition: &'a DefinitionHash,
    /// A JSON object.
    pub arguments: &'a str,
    /// The caller; `None` for the server's own ([`ServerSpec::caller`](crate::ServerSpec::caller)).
    pub caller: Option<Arc<dyn Caller>>,
    /// A time limit for the whole call, if it is shorter than the server's own.
    pub limit: Option<Duration>,
}

//! A tool under its function name.

use std::sync::Arc;

use callgate_policy::flow::Side;
use callgate_policy::{CallFacts, Grant, ToolName};
use jiff::Timestamp;

use crate::definition::ToolDefinition;

/// A tool and the function it became. The catalog makes it; a script never does.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name of the function in a script, which rules match.
    pub function: String,
    /// As [`ToolName::aliases`].
    pub aliases: Vec<String>,
    /// The tool as its server lists it.
    pub definition: Arc<ToolDefinition>,
}

impl Tool {
    /// A tool without aliases.
    pub fn new(function: &str, definition: ToolDefinition) -> Self {
        Self {
            function: function.to_owned(),
            aliases: Vec::new(),
            definition: Arc::new(definition),
        }
    }

    /// The names that rules match.
    pub fn name(&self) -> ToolName<'_> {
        ToolName {
            function: &self.function,
            aliases: &self.aliases,
            server: &self.definition.server,
            tool: &self.definition.name,
        }
    }

    /// The facts about a call of this tool before its arguments are known. `trusted` says whether
    /// the server is marked so.
    pub fn facts(&self, trusted: bool, now: Timestamp) -> CallFacts<'_> {
        let definition = &self.definition;
        CallFacts {
            name: self.name(),
            hints: definition.hints,
            trusted,
            definition: Some(definition.identity.hash()),
            arguments: None,
            now,
        }
    }

    /// The tool as an end of a data flow.
    pub fn side(&self) -> Side {
        Side::from(self.name())
    }

    /// A grant for every call of the tool, bound to its present definition.
    pub fn grant(&self) -> Grant {
        Grant::new(self.function.as_str()).of(Arc::clone(&self.definition.identity))
    }
}

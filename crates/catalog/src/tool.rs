//! A tool under its function name.

use std::sync::Arc;

use callgate_policy::flow::Side;
use callgate_policy::{CallFacts, Grant, OtherNames};
use jiff::Timestamp;

use crate::definition::ToolDefinition;

/// A tool and the function it became. The catalog makes it; a script never does.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name of the function in a script, which rules match.
    pub function: String,
    /// Its other names: rules that ask and deny match these, too.
    pub other_names: Arc<OtherNames>,
    /// The tool as its server lists it.
    pub definition: Arc<ToolDefinition>,
}

impl Tool {
    /// A tool without other names.
    pub fn new(function: &str, definition: ToolDefinition) -> Self {
        Self {
            function: function.to_owned(),
            other_names: Arc::default(),
            definition: Arc::new(definition),
        }
    }

    /// The facts about a call of this tool before its arguments are known. `trusted` says whether
    /// the server is marked so.
    pub fn facts(&self, trusted: bool, now: Timestamp) -> CallFacts<'_> {
        let definition = &self.definition;
        CallFacts {
            function: &self.function,
            other_names: Some(&self.other_names),
            server: &definition.server,
            hints: definition.hints,
            trusted,
            definition: Some(definition.identity.hash()),
            arguments: None,
            now,
        }
    }

    /// The tool as an end of a data flow.
    pub fn side(&self) -> Side {
        let side = Side::new(
            &self.function,
            &self.definition.server,
            &self.definition.name,
        );
        side.or_named(Some(&self.other_names))
    }

    /// A grant for every call of the tool as it is now.
    pub fn grant(&self) -> Grant {
        Grant::new(self.function.as_str()).of(Arc::clone(&self.definition.identity))
    }
}

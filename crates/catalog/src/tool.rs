//! A tool as calls need it.

use std::sync::Arc;

use callgate_policy::{Definition, Hints, OtherNames};
use callgate_schema::Declared;

/// The tool of a call. The catalog makes it; a script never does.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The generated function name, which rules match.
    pub function: String,
    /// The tool's other names, if it has any: rules that ask and deny match these, too.
    pub other_names: Option<Arc<OtherNames>>,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub name: String,
    /// The tool's name for people.
    pub title: Option<Arc<str>>,
    /// The server's hints.
    pub hints: Hints,
    /// The definition, to which grants are bound.
    pub definition: Arc<Definition>,
    /// The tool's `outputSchema`, which its results must fit. Text results are read as JSON if
    /// there is one.
    pub output_schema: Option<Declared>,
}

impl Tool {
    /// A tool without hints, title, other names and output schema.
    pub fn new(function: &str, server: &str, name: &str, definition: Arc<Definition>) -> Self {
        Self {
            function: function.to_owned(),
            other_names: None,
            server: server.to_owned(),
            name: name.to_owned(),
            title: None,
            hints: Hints::default(),
            definition,
            output_schema: None,
        }
    }
}

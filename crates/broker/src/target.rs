//! The tool that a call goes to.

use std::sync::Arc;

use callgate_policy::{Definition, Hints, OtherNames};
use callgate_schema::Declared;

/// The tool a call goes to, as the catalog has it. Never taken from a script.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Target {
    /// The generated function name, which rules match.
    pub function: String,
    /// The tool's other names, if it may have any: rules that hold calls up match these, too.
    pub other_names: Option<Arc<OtherNames>>,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The tool's name for people.
    pub title: Option<Arc<str>>,
    /// What its server says the tool does.
    pub hints: Hints,
    /// What the tool is, to which grants are bound.
    pub definition: Option<Arc<Definition>>,
    /// The tool's `outputSchema`, to which its results are held; text is read as
    /// JSON where there is one.
    pub output_schema: Option<Declared>,
}

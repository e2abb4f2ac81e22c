//! Errors that do not stop a script: they say that TypeScript knows too little, not that a tool
//! is used wrongly.

use crate::checker::Language;
use crate::message::{self, Reported};
use crate::unknown;

/// The consequence of an error for the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The script does not run.
    Stops,
    /// The script does not run if the error depends on the types of tools.
    StopsIfOfTool,
    /// None.
    Passes,
}

/// The category of an error; the others are hints.
const ERROR: u32 = 1;
/// Errors of the parser have lower codes than those of types.
const FIRST_OF_TYPES: u32 = 2000;
/// A property that a type does not have; the second comes with a suggestion.
const NO_PROPERTY: [u32; 2] = [2339, 2551];

impl Consequence {
    pub(crate) fn of(error: &Reported, language: Language) -> Self {
        if error.category != ERROR {
            return Self::Passes;
        }
        let reason = error.message_chain.first().unwrap_or(error);
        let names_property = reason.text.starts_with("Property '");
        // `const counts = {}` takes any property; no result has this type.
        let is_of_empty = names_property && reason.text.contains("does not exist on type '{}'.");
        if is_implicit_any(error.code) {
            return if unknown::is_of_mcp(reason) {
                Self::Stops
            } else if names_property && !is_of_empty {
                Self::StopsIfOfTool
            } else {
                Self::Passes
            };
        }
        if NO_PROPERTY.contains(&error.code) && is_of_empty {
            return Self::Passes;
        }
        let always = error.code < FIRST_OF_TYPES
            || message::unknown_name(error).is_some()
            || unknown::is_of_mcp(reason);
        match language {
            Language::JavaScript if !always => Self::StopsIfOfTool,
            _ => Self::Stops,
        }
    }
}

/// True for the errors of the option `noImplicitAny`, and for a `this` without a type. Turning
/// the option off would have other effects: an empty array would take nothing.
fn is_implicit_any(code: u32) -> bool {
    matches!(code, 2683 | 7005..=7026 | 7031..=7034 | 7050..=7053)
}

//! Decides which errors stop a script: those about wrong uses of tools, not those that only mean that
//! TypeScript lacks information.

use crate::diagnostic;
use crate::message::{self, Reported};
use crate::scan::word;
use crate::script::Script;
use crate::unknown;

/// The consequence of an error for the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The script does not run.
    Stops,
    /// The script does not run if the error depends on the types of tools.
    StopsIfOfTool,
    /// The script runs.
    Passes,
}

/// The category of an error; the others are hints.
const ERROR: u32 = 1;
/// Errors of the parser have lower codes than those of types.
const FIRST_OF_TYPES: u32 = 2000;
/// A property that a type lacks; the second error has a suggestion.
const NO_PROPERTY: [u32; 2] = [2339, 2551];

impl Consequence {
    pub(crate) fn of(error: &Reported, script: &Script) -> Self {
        if error.category != ERROR {
            return Self::Passes;
        }
        let reason = error.message_chain.first().unwrap_or(error);
        if unknown::is_of_mcp(reason) {
            return Self::Stops;
        }
        let property = message::missing_property(reason);
        // Scripts put any property into `const counts = {}` and any value into an empty list; no
        // result of a tool has these types.
        let is_of_empty = ["'{}'.", "'never'."]
            .iter()
            .any(|ty| reason.text.contains(ty));
        if is_implicit_any(error.code) {
            return if property.is_some() && !is_of_empty {
                Self::StopsIfOfTool
            } else {
                Self::Passes
            };
        }
        if NO_PROPERTY.contains(&error.code)
            && let Some(property) = property
        {
            if is_of_empty {
                return Self::Passes;
            }
            if is_assigned(&script.text, property) {
                return Self::StopsIfOfTool;
            }
        }
        if lacks_information(error, script) {
            return Self::Passes;
        }
        let always = error.code < FIRST_OF_TYPES || message::unknown_name(error).is_some();
        if script.is_javascript && !always {
            return Self::StopsIfOfTool;
        }
        Self::Stops
    }
}

/// True if the script assigns a property of this name.
fn is_assigned(text: &str, property: &str) -> bool {
    let name = format!(".{property}");
    text.match_indices(&name).any(|(at, _)| {
        let rest = text.get(at + name.len()..).unwrap_or_default().trim_start();
        rest.starts_with('=') && !rest.starts_with("==")
    })
}

/// True if a value may have the required type: a string or a number where only some are allowed, an
/// object that the script fills later, or any value in an empty list.
fn lacks_information(error: &Reported, script: &Script) -> bool {
    let mut last = error;
    while let Some(inner) = last.message_chain.first() {
        last = inner;
    }
    if let Some((given, wanted)) = last.text.split_once(" is not assignable to ")
        && let Some((_, wanted)) = wanted.split_once("type '")
    {
        let name = wanted.split(['\'', ' ']).next().unwrap_or_default();
        let declared = script.declarations.split_once(&format!("type {name} = "));
        let body = declared.map_or(wanted, |(_, body)| body);
        let is_of_kind = |c: char| match given.rsplit(' ').next() {
            Some("'string'") => c == '"',
            Some("'number'") => c == '-' || c.is_ascii_digit(),
            _ => false,
        };
        return body.starts_with(is_of_kind) || wanted.starts_with("never'");
    }
    if !(last.text.contains(" missing in type '")
        || last.text.contains(" is missing the following"))
    {
        return false;
    }
    // The argument, or the value of a property.
    let at = diagnostic::byte_at(&script.text, error.pos);
    let at = script.text.get(at..).unwrap_or_default();
    let value = at
        .split_once(':')
        .filter(|(key, _)| word(key.trim()).is_some_and(|(_, rest)| rest.is_empty()));
    let value = value.map_or(at, |(_, value)| value.trim_start());
    let Some((variable, _)) = word(value) else {
        return false;
    };
    let is_filled = |(at, found): (usize, &str)| {
        let rest = script.text.get(at + found.len()..).unwrap_or_default();
        let statement = rest.split([';', '\n', '(']).next().unwrap_or_default();
        statement
            .split_once('=')
            .is_some_and(|(_, value)| !value.starts_with(['=', '>']))
    };
    let mut fillings = [format!("{variable}."), format!("{variable}[")].into_iter();
    let is_assigned = fillings.any(|begin| script.text.match_indices(&begin).any(is_filled));
    is_assigned || script.text.contains(&format!("Object.assign({variable},"))
}

/// True for the errors of the option `noImplicitAny`, and for a `this` without a type. Turning the
/// option off would have other effects: an empty array would have no element type.
pub(crate) fn is_implicit_any(code: u32) -> bool {
    matches!(code, 2683 | 7005..=7026 | 7031..=7034 | 7050..=7053)
}

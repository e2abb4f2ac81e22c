//! Problems of a written rule.

/// Something wrong with an entry. Its `Display` is the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RuleProblem {
    /// The place in the entry, from the outside in.
    pub at: Vec<Step>,
    /// True if the key there is wrong, and not its value.
    pub on_key: bool,
    /// The problem, and its remedy.
    pub message: String,
}

/// One step into a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into the member of an object.
    Key(String),
    /// Into the element of an array, counted from 0.
    Index(usize),
}

/// A part of a configuration that decides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule, label or setting.
    pub what: String,
    /// A sentence about it.
    pub message: String,
    /// True if it should forbid something, and matches nothing.
    pub forbids: bool,
}

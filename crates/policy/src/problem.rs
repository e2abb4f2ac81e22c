//! Parts of a configuration that decide nothing.

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

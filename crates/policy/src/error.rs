//! The error about rules and patterns.

/// The error about an entry that is not a rule, or a pattern that could never match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(pub(crate) String);

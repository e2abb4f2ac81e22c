//! The error of a gate's own methods.

use callgate_gate::LedgerError;

/// A setting, a name or a file that a gate cannot use. Its `Display` says why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(pub(crate) String);

impl From<LedgerError> for GateError {
    fn from(error: LedgerError) -> Self {
        Self(error.to_string())
    }
}

//! The error of a gate's own methods.

use callgate_gate::LedgerError;

/// A setting, a name or a file that a gate cannot use. Its `Display` says why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GateError {
    kind: GateErrorKind,
    message: String,
}

/// The kinds of [`GateError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GateErrorKind {
    /// Two servers or two skills have one name.
    DuplicateName,
    /// No server or skill has this name.
    NotFound,
    /// A rule that should forbid something matches no tool.
    UnmatchedRule,
    /// The ledger cannot be opened.
    Ledger,
    /// A skill cannot be read.
    Skill,
    /// A server does not start.
    NotStarted,
    /// The query of a search cannot be used.
    Query,
    /// There is no TypeScript to check scripts with.
    TypeCheck,
    /// The cache cannot be used.
    Cache,
    /// No worker can be started.
    Worker,
}

impl GateError {
    pub(crate) fn new(kind: GateErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> GateErrorKind {
        self.kind
    }
}

impl From<LedgerError> for GateError {
    fn from(error: LedgerError) -> Self {
        Self::new(GateErrorKind::Ledger, error.to_string())
    }
}

//! Where grants for good are kept.

use std::sync::Arc;

use callgate_policy::{Definition, DefinitionHash, Grant};
use futures::future::BoxFuture;

/// Where an answer "always" is kept, such as a configuration file.
pub trait GrantStore: Send + Sync {
    /// The place, as a question names it.
    fn place(&self) -> String;

    /// Keeps grants for good, all or none.
    ///
    /// # Errors
    ///
    /// The grants could not be kept. The call is made all the same, and its grant lasts for the
    /// session.
    fn keep<'a>(&'a self, grants: &'a [Grant]) -> BoxFuture<'a, Result<(), GrantStoreError>>;
}

/// The reason why grants could not be kept. Its `Display` is a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct GrantStoreError {
    reason: String,
}

impl GrantStoreError {
    /// An error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

/// The definitions of tools when they were allowed for good, by the hashes that grants and rules
/// are bound to. Neither method may block its thread for long.
pub trait Definitions: Send + Sync {
    /// The definition with this hash, if it is kept.
    fn find(&self, hash: &DefinitionHash) -> Option<Arc<Definition>>;

    /// Keeps a definition, if that is possible.
    fn keep(&self, definition: &Definition);
}

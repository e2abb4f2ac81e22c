//! Where grants for good are kept.

use std::sync::Arc;

use callgate_policy::{Definition, DefinitionHash, Grant};
use futures::future::BoxFuture;

/// Where an answer "always" is kept, such as a configuration file.
pub trait GrantStore: Send + Sync {
    /// The place, as a question names it.
    fn place(&self) -> String;

    /// Keeps grants for good, all or none. The error is the reason, as a sentence for a person;
    /// the call is made all the same, and its grant lasts for the session.
    fn keep<'a>(&'a self, grants: &'a [Grant]) -> BoxFuture<'a, Result<(), String>>;
}

/// The definitions of tools when they were allowed for good, by the hashes that grants and rules
/// are bound to. Neither method may block its thread for long.
pub trait Definitions: Send + Sync {
    /// The definition with this hash, if it is kept.
    fn find(&self, hash: &DefinitionHash) -> Option<Arc<Definition>>;

    /// Keeps a definition, if that can be done.
    fn keep(&self, definition: &Definition);
}

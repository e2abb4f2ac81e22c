//! What was granted for good, and where that is kept.

use std::sync::Arc;

use callgate_policy::{Definition, DefinitionHash, Grant};
use futures::future::BoxFuture;

/// Where an answer "always" is kept, such as a configuration file.
pub trait Keep: Send + Sync {
    /// The place, as a question names it.
    fn place(&self) -> String;

    /// Keeps grants for good, all or none. What comes back on failure is the
    /// reason, as a sentence for a person; the call goes all the same, and its
    /// grant lasts for the session.
    fn keep<'a>(&'a self, grants: &'a [Grant]) -> BoxFuture<'a, Result<(), String>>;
}

/// What tools were when they were allowed for good, by the hashes that grants and
/// rules are bound to. Both are called on threads that must not be held up long.
pub trait Definitions: Send + Sync {
    /// The definition with this hash, if it is kept.
    fn find(&self, hash: &DefinitionHash) -> Option<Arc<Definition>>;

    /// Keeps a definition, as far as that can be done.
    fn keep(&self, definition: &Definition);
}

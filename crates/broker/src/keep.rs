//! What was granted for good, and where that is kept.

use callgate_policy::Grant;
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

//! Errors about files of other clients.

/// The reason why a client's file cannot be read or changed. It holds no value of the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ForeignError(pub(super) String);

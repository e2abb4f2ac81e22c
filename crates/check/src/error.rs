//! Errors of a check.

use std::time::Duration;

use crate::confine::MAX_MEMORY;

/// The reasons why a check of a script has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// No script can be checked.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// This script could not be checked, and may be the cause.
    #[error("the type check of this script was given up: {0}")]
    GaveUp(#[from] Failure),
}

/// The reasons why no script can be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// TypeScript's own library of declarations cannot be read.
    #[error("TypeScript's library cannot be read: {0}; install TypeScript again")]
    Library(String),
    /// The kernel lacks a layer of confinement that is required.
    #[error(
        "TypeScript is not started, because it cannot be confined: {0}; \"sandbox\" in the \
         configuration says which layers are required"
    )]
    Confinement(String),
    /// The process cannot be started.
    #[error("TypeScript cannot be started: {0}")]
    Start(String),
    /// The process failed to check an empty script.
    #[error("TypeScript cannot be used: {0}")]
    Broken(Failure),
}

/// The reasons why one check failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No answer came in time.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    /// All processes were checking other scripts.
    #[error("the type checker was busy with other scripts for {0:?}")]
    Busy(Duration),
    /// The process ended before it answered.
    #[error(
        "TypeScript ended without an answer, as it does when it needs more than {} MiB of memory",
        MAX_MEMORY >> 20
    )]
    Died,
    /// The process does not follow the API of TypeScript 7.
    #[error("TypeScript gave an answer that cannot be used: {0}")]
    Protocol(String),
}

//! Internal crate of Callgate: type-checks a script with TypeScript before it
//! runs.
//!
//! A [`Checker`] is given a script's text and the declarations of its tools,
//! and answers with [`Diagnostic`]s in the author's lines and columns. The one
//! there is, [`TypeScript`], keeps a native TypeScript 7 process and speaks its
//! API with it. The process gets every file it sees from this one; the kernel
//! keeps it from those on disk, and from the network. What it answers is
//! hostile input all the same: bounded, and good for nothing but messages. A
//! check is a help to the author and no part of the wall around a script.

#[cfg(target_os = "linux")]
mod confine;
mod diagnostic;
mod files;
mod find;
mod library;
mod message;
mod process;
mod protocol;
mod scan;
mod session;
mod typescript;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

pub use diagnostic::{Checked, Diagnostic, MAX_DIAGNOSTICS};
pub use find::{Executable, FindError, MIN_MAJOR, find};
use process::MAX_MEMORY;
pub use scan::words;
pub use typescript::TypeScript;

/// Looks for type errors in scripts.
pub trait Checker: Send + Sync + std::fmt::Debug {
    /// The type errors of one script.
    ///
    /// # Errors
    ///
    /// [`CheckError`] if there is no answer.
    fn check(&self, script: Script) -> BoxFuture<'_, Result<Checked, CheckError>>;

    /// Makes ready for a check that is to come, in the background. It must be
    /// called within a tokio runtime.
    fn start(&self);

    /// Ends what runs for this checker.
    fn shut_down(&self) -> BoxFuture<'_, ()>;
}

/// What is to be checked.
#[derive(Debug, Clone)]
pub struct Script {
    /// The script as one module, types and all.
    pub text: String,
    /// How many lines of `text` stand before the author's first line.
    pub line_offset: u32,
    /// Declarations of the tools and of the types they use.
    pub declarations: Arc<str>,
    /// Time for the check of this script, the start of a process not
    /// counted.
    pub time: Duration,
}

/// Kernel layers around the TypeScript process, on Linux. Elsewhere there
/// are no such layers, and this has no effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Landlock: no files, no network.
    pub landlock: LayerUse,
    /// seccomp: no system calls but those that the Go runtime needs.
    pub seccomp: LayerUse,
}

/// Use of one layer of a [`Confinement`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LayerUse {
    /// Without it, TypeScript is not started.
    #[default]
    Required,
    /// It is used where the kernel has it.
    Optional,
    /// It is not used.
    Off,
}

/// Why there is no answer for a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No script can be checked.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// This script could not be checked. It may be the cause.
    #[error("the type check of this script was given up: {0}")]
    GaveUp(#[from] Failure),
}

/// Why no script can be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

/// Why one check failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// No answer came in time.
    #[error("it took longer than {0:?}")]
    TimedOut(Duration),
    /// All processes that may run at a time had other scripts to check.
    #[error("the type checker was busy with other scripts for {0:?}")]
    Busy(Duration),
    /// The process ended before it answered.
    #[error(
        "TypeScript ended without an answer, as it does when it needs more than {} MiB of memory",
        MAX_MEMORY >> 20
    )]
    Died,
    /// The process does not speak as TypeScript 7 does.
    #[error("TypeScript gave an answer that cannot be used: {0}")]
    Protocol(String),
}

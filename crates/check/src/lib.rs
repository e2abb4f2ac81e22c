//! Internal crate of Callgate: type-checks a script with TypeScript before it
//! runs.
//!
//! A [`Checker`] is given a script's text and the declarations of its tools,
//! and answers with [`Diagnostic`]s in the author's lines and columns. The one
//! there is, [`TypeScript`], keeps a native TypeScript 7 process and speaks its
//! API with it. The process gets every file it sees from this one; it is given
//! no way to one on disk. What it answers is hostile input all the same:
//! bounded, and good for nothing but messages. A check is a help to the author
//! and no part of the wall around a script.

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
pub use scan::words;
pub use typescript::{DEFAULT_TIME, TypeScript};

/// Looks for type errors in scripts.
pub trait Checker: Send + Sync + std::fmt::Debug {
    /// The type errors of one script.
    ///
    /// # Errors
    ///
    /// [`CheckError`] if there is no answer. It says nothing about the script.
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
}

/// Why a script could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// TypeScript's own library of declarations cannot be read.
    #[error("TypeScript's library cannot be read: {0}; install TypeScript again")]
    Library(String),
    /// The process cannot be started.
    #[error("TypeScript cannot be started: {0}")]
    Start(String),
    /// The process ended before it answered.
    #[error("TypeScript ended without an answer")]
    Died,
    /// No answer came in time.
    #[error("TypeScript gave no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The process does not speak as TypeScript 7 does.
    #[error("TypeScript gave an answer that cannot be used: {0}")]
    Protocol(String),
}

//! Internal crate of Callgate: type-checks a script with TypeScript before it runs.
//!
//! [`TypeScript`] takes a script's text and the declarations of its tools, and returns
//! [`Diagnostic`]s in the author's lines and columns. It keeps a native TypeScript 7 process and uses
//! its API. The process gets every file from this crate; the kernel keeps it from the disk and from
//! the network. Its answers are hostile input: bounded, and used for messages only. A check helps the
//! author and is not part of the wall around a script.

mod confine;
mod diagnostic;
mod error;
mod files;
mod find;
mod library;
mod message;
mod protocol;
mod scan;
mod script;
mod session;
mod strictness;
mod typescript;
mod unknown;

pub use confine::{Confinement, LayerUse};
pub use diagnostic::{Checked, Diagnostic, MAX_DIAGNOSTICS, Unknown};
pub use error::{CheckError, Failure, Unavailable};
pub use files::globals;
pub use find::{Executable, FindError, find};
pub use scan::words;
pub use script::Script;
pub use typescript::TypeScript;

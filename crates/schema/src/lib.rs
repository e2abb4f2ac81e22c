//! Internal crate of Callgate: holding values to JSON Schemas that others wrote.
//!
//! A schema is a small program, and whoever writes it may be hostile: a script, or
//! a server. So nothing is fetched for it, its patterns cannot run long, and both
//! what it is with all references in place and what it has to do for one value are
//! bounded. The crate does no IO and reads no clock.

mod declared;
mod schema;
mod shape;
mod text;

pub use declared::{Declared, Fit};
pub use schema::{Author, Schema};
pub use text::{mended, read, replace_lone_surrogates};

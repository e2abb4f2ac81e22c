//! Internal crate of Callgate: validates values against untrusted JSON Schemas, and makes small
//! values that fit them.
//!
//! The author of a schema, a script or a server, may be hostile. So references must stay within the
//! schema, patterns take bounded time, and both the size of a schema and the work for one value are
//! bounded. The crate does no IO and reads no clock.

mod bounds;
mod json_text;
mod output;
mod schema;
mod stand_in;

pub use bounds::{Author, SchemaError};
pub use json_text::{
    Extent, Token, TokenKind, extent, json_fault, present, read, tokens, without_lone_surrogates,
};
pub use output::{Declared, Fit};
pub use schema::{Schema, not_2020_12};

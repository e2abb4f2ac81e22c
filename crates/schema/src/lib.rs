//! Internal crate of Callgate: holds values to JSON Schemas that others wrote.
//!
//! The author of a schema, a script or a server, may be hostile. So no reference leads out of the
//! schema, patterns cannot run long, and both the size of a schema and the work for one value are
//! bounded. The crate does no IO and reads no clock.

mod bounds;
mod json_text;
mod output;
mod schema;

pub use bounds::Author;
pub use json_text::{Extent, extent, read, without_lone_surrogates};
pub use output::{Declared, Fit};
pub use schema::{Schema, not_2020_12};

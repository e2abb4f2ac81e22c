//! Functions of `mcp` that the host answers itself.

pub(crate) mod extract;
mod extract_schema;
pub(crate) mod lookup;

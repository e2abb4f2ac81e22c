//! Functions of `mcp` that the host answers itself.

pub(crate) mod extract;
pub(crate) mod lookup;

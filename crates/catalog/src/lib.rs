//! Internal crate of Callgate: Tool definitions and their generated names.

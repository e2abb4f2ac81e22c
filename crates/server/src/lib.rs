//! Internal crate of Callgate: The MCP face: run_script over stdio.

//! Run a TypeScript script whose only power is the MCP tools you allow.

//! Internal crate of Callgate: MCP connections, the dispatch of calls, and the ledger.

//! Internal crate of Callgate: embeddings and small models over OpenAI- and
//! Anthropic-compatible endpoints. It knows no MCP and no tools.

//! Internal crate of Callgate: Rules over tool calls, and the decision they give.

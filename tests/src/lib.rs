//! Internal crate of Callgate: End-to-end tests against real servers.

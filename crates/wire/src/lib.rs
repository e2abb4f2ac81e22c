//! Internal crate of Callgate: The frames between worker and host.

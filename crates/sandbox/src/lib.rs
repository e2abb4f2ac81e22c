//! Internal crate of Callgate: The worker process with its isolate, and the host side that starts it.

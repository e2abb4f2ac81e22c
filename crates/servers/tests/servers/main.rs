//! Servers as a host sees them: programs over pipes, and HTTP endpoints.

mod callers;
mod calls;
mod http;
mod leaving;
mod starting;
mod supervision;
mod support;

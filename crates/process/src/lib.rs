//! Internal crate of Callgate: starts child processes that end with the host.
//!
//! MCP servers and the type checker are children of the host. However the host ends, none of them
//! may stay behind, and none may reach the host's terminal.

#[cfg(not(unix))]
compile_error!(
    "Callgate builds for Linux and macOS. Windows lacks what workers and servers are held by: Unix \
     sockets as standard input, sessions, process groups, signals, file modes"
);

mod allocator;
mod restrictions;
mod shell;
mod signals;
mod spawn;

pub use allocator::use_one_heap;
pub use restrictions::{Resource, Restrictions};
pub use shell::shell_word;
pub use signals::ignores_hangup;
pub use spawn::{Child, Signal, exit_text, spawn, wait_for_children};

#[cfg(test)]
mod tests;

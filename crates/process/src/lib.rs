//! Internal crate of Callgate: starts child processes that end with the host.
//!
//! MCP servers and the type checker are children of the host. They end with the host in every case,
//! and cannot access its terminal.

#[cfg(not(unix))]
compile_error!(
    "Callgate builds for Linux and macOS. Windows lacks Unix sockets as standard input, sessions, \
     process groups, signals and file modes, which control workers and servers"
);

mod allocator;
mod machine_limit;
mod restrictions;
mod signals;
mod spawn;

pub use allocator::use_one_heap;
pub use machine_limit::{MachineLimit, start_failure};
pub use restrictions::{Resource, Restrictions};
pub use signals::{ignores_hangup, survive_file_size_limit};
pub use spawn::{Child, Signal, exit_text, spawn, wait_for_children};

#[cfg(test)]
mod tests;

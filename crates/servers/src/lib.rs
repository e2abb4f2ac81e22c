//! Internal crate of Callgate: connections to MCP servers and the calls of their tools.
//!
//! [`Servers::connect`] starts servers side by side; one that fails takes no other down.
//! [`Servers::call`] makes a call that has been decided on. rmcp keeps the protocol; a transport
//! of this crate lies under it, so that results and arguments stay text.
//!
//! The values of a server's environment and headers are in no `Debug` form, no error and no log
//! line of this crate.

mod backoff;
mod call;
mod caller;
mod child;
mod clock;
mod connect;
mod connection;
mod endpoint;
mod failure;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod greeting;
mod http;
mod json_rpc;
mod list;
mod questions;
mod request;
mod server_log;
mod servers;
mod shared;
mod slot;
mod spec;
mod state;
mod stdio;
mod supervise;
mod tap;
mod tasks;
mod tool_list;
mod watch;

pub use call::ToolCall;
pub use caller::{
    Caller, Log, LogLevel, NoCaller, Offers, Opened, PageDone, Progress, Refusal, Root, Wanted,
    WantedKind,
};
pub use child::nesting;
pub use failure::{Audience, CallFailure, FailureKind, Lost, Reason};
pub use servers::Servers;
pub use shared::Shared;
pub use spec::{Connect, EraSetting, Http, Remembered, ServerSpec, Stdio, Transport};
pub use state::{Phase, ServerState, Status};
pub use tool_list::ToolList;

//! Internal crate of Callgate: connections to MCP servers and the calls of their tools.
//!
//! [`Servers::connect`] starts servers in parallel; a failure of one does not affect the others.
//! [`Servers::call`] makes a call that has been decided on. rmcp handles the protocol; a transport
//! of this crate lies under it, so that results and arguments stay text.
//!
//! The values of a server's environment and headers never appear in `Debug` output, errors or log
//! lines of this crate.

mod backoff;
mod call;
mod caller;
mod child;
mod clock;
mod connect;
mod connection;
mod current_list;
mod endpoint;
mod failure;
mod form;
#[doc(hidden)]
pub mod fuzzing;
mod greeting;
mod http;
mod in_flight;
mod json_rpc;
mod listen;
mod listing;
mod questions;
mod request;
mod server_log;
mod servers;
mod shared;
mod slot;
mod spec;
mod state;
mod stderr;
mod stdio;
mod supervise;
mod tap;
mod tasks;
mod tool_call;
mod tool_list;

pub use caller::{
    Caller, Log, LogLevel, NoCaller, Offers, Opened, PageDone, Progress, Refusal, Root, Wanted,
    WantedKind,
};
pub use child::nesting;
pub use failure::{Audience, CallFailure, FailureKind, Lost, Reason};
pub use servers::Servers;
pub use shared::Shared;
pub use spec::{
    Connect, EraSetting, Http, Remembered, ServerSpec, Stdio, Transport, UnknownRevision,
};
pub use state::{Phase, ServerState, Status};
pub use tool_call::ToolCall;
pub use tool_list::ToolList;

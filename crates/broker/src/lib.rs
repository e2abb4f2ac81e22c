//! Internal crate of Callgate: connections to MCP servers.
//!
//! [`Broker::start`] starts servers side by side; each is [`Status::Ready`] with its raw tools or
//! [`Status::Failed`] with a reason, and none takes another one down. Where
//! [`ServerSpec::connect`] says so, one is connected to only when it is called.
//!
//! Credentials end here: the values of a server's environment and headers are in no `Debug` form,
//! no error and no log line of this crate.

#![allow(dead_code, reason = "the crate `servers` replaces this one")]

mod address;
mod asked;
pub mod auth;
mod backoff;
mod broker;
mod caller;
mod calls;
mod connection;
mod ends;
mod envelope;
mod error;
mod failure;
#[cfg(test)]
mod fake;
mod flight;
mod flood;
mod form;
mod greeting;
mod handshake;
mod http;
mod inbox;
mod incoming;
mod input;
mod lines;
mod link;
mod listed;
mod listing;
mod logging;
mod misfit;
mod object;
mod pages;
mod patience;
mod pipe;
mod process;
mod refusal;
mod room;
mod server;
mod session;
mod spec;
mod start;
mod state;
mod stderr;
mod stdio;
mod subscription;
mod supervise;
mod tasks;
mod tools;
mod usage;
mod values;
mod writer;

pub use broker::{Broker, Phase, Ready, ServerInfo, ServerState, Status, ToolCall, WeakBroker};
pub use caller::{
    Caller, Elicit, ListRoots, Log, LogLevel, NoCaller, Offers, Opened, PageDone, Progress,
    Refusal, Root, Sample, UnknownLogLevel, Wanted,
};
pub use callgate_auth::{Origin, Source, SourceError};
pub use error::{CallFailure, StartError, StartErrorKind};
pub use spec::{
    Connect, EraSetting, Http, Remembered, Revision, ServerSpec, Stdio, Transport, UnknownRevision,
};

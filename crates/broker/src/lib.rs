//! Internal crate of Callgate: MCP connections, the dispatch of calls, and the ledger.
//!
//! [`Broker::start`] starts servers side by side; each is [`Status::Ready`] with
//! its raw tools or [`Status::Failed`] with a reason, and none takes another one
//! down. Where [`ServerSpec::connect`] says so, one is connected to only when it is
//! called. [`Broker::run`] begins the calls of one script. [`Run::call`] is the
//! only way to a server, and it goes through the [`Reviewer`]s, the
//! [`callgate_policy::Authority`], the [`Asker`] and the ledger, in this order,
//! before anything is sent.
//!
//! Credentials end here: the values of a server's environment and headers are
//! in no `Debug` form, no error and no log line of this crate.

mod address;
mod ask;
mod asked;
pub mod auth;
mod backoff;
mod broker;
mod caller;
mod calls;
mod connection;
mod dry_run;
mod elsewhere;
mod ends;
mod envelope;
mod error;
mod failure;
#[cfg(test)]
mod fake;
mod flight;
mod flood;
mod flows;
mod form;
mod greeting;
mod handshake;
mod http;
mod inbox;
mod incoming;
mod input;
mod integers;
mod journal;
mod judge;
mod keep;
mod ledger;
mod lines;
mod link;
mod listed;
mod listing;
mod logging;
mod misfit;
mod moment;
mod object;
mod options;
mod outcome;
mod output;
mod pages;
mod patience;
mod pipe;
mod process;
mod refusal;
mod review;
mod room;
mod ruling;
mod run;
mod server;
mod session;
mod setup;
mod shape;
mod spec;
mod start;
mod state;
mod stderr;
mod stdio;
mod subscription;
mod supervise;
mod tally;
mod target;
mod tasks;
mod tools;
mod unique;
mod usage;
mod values;
mod writer;
mod written;

pub use ask::{About, Answer, Asker, Changed, Done, NobodyToAsk, Question, ScriptLine, ask_with};
pub use broker::{Broker, Phase, Ready, ServerInfo, ServerState, Status, WeakBroker};
pub use caller::{
    Caller, Elicit, ListRoots, Log, LogLevel, NoCaller, Offers, Opened, PageDone, Progress,
    Refusal, Root, Sample, UnknownLogLevel, Wanted,
};
pub use callgate_auth::{Origin, Source, SourceError};
pub use callgate_process::shell_word;
pub use dry_run::{DryRun, Withheld};
pub use error::{CallError, StartError, StartErrorKind, code};
pub use journal::{
    DEFAULT_JOURNAL_BYTES, Journal, JournalError, JournalLine, JournalOptions, JournalReader,
    Recovered,
};
pub use keep::{Definitions, Keep};
pub use ledger::LedgerLine;
pub use options::{CallOptions, Place};
pub use outcome::Outcome;
pub use review::{ResultReview, Review, Reviewed, Reviewer};
pub use ruling::Ruling;
pub use run::{Consultant, Run, Unanswered};
pub use setup::{LineText, Renew, RunSetup};
pub use spec::{
    Connect, EraSetting, Http, Remembered, Revision, ServerSpec, Stdio, Transport, UnknownRevision,
};
pub use target::Target;

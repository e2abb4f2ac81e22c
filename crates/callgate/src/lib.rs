//! Run a TypeScript script whose only power is the MCP tools you allow.
//!
//! A [`Gate`] holds connections to MCP servers, the functions that scripts call their tools by,
//! and the rules over calls. [`Gate::run`] parses a script, checks its types and runs it in a
//! worker process with a V8 isolate. Every call is decided on and recorded before it is sent.
//! A run always ends in one [`RunReport`].
//!
//! ```no_run
//! use callgate::{Gate, Rules, ServerSpec};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let gate = Gate::builder()
//!         .worker_binary("/usr/bin/callgate-worker")
//!         .server(ServerSpec::stdio("time", "mcp-server-time", ["--local-timezone", "UTC"]))
//!         .rules(Rules::builder().allow("time_*").build()?)
//!         .build()
//!         .await?;
//!     let report = gate.run("return await time_get_current_time({ timezone: 'UTC' })").await;
//!     println!("{report}");
//!     gate.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! Each script runs in a process of its own. The host names its program, `callgate-worker` of the
//! same build, with [`GateBuilder::worker_binary`]; without a name it lies beside the host's
//! executable. With the feature `worker`, a host can be its own worker program: it calls
//! `worker_main_if_requested` first in `main`.
//!
//! This is the one public crate; the `callgate-*` crates under it are internal and change
//! without notice.

pub mod auth;
mod cache;
pub mod config;
mod error;
mod gate;
mod harmless;
mod host_functions;
mod keep_in_file;
mod lint;
mod live_catalog;
mod model_tools;
mod models;
mod names;
mod position;
mod question_text;
mod quoted;
mod read_script;
pub mod report;
mod roots;
mod run_request;
mod scope;
mod script_calls;
mod script_errors;
mod search;
mod setters;
mod settings;
mod skill;
mod type_check;
mod workers;

pub use callgate_auth::Source;
pub use callgate_gate::{
    Answer, Asker, CallError, CallErrorKind, DryRun, GrantStore, LedgerOptions, NoAsker, Question,
    ResultReview, Review, Reviewed, Reviewer, ask_with, code,
};
pub use callgate_models::Api;
pub use callgate_policy::{Grant, Rules, RulesBuilder, SessionGrants};
pub use callgate_sandbox::Limits;
pub use callgate_servers::{
    Audience, Caller, Connect, Http, NoCaller, Refusal, Root, ServerSpec, Stdio, Transport, nesting,
};
pub use callgate_typegen::Detail;
pub use tokio_util::sync::CancellationToken;

pub use crate::config::Visibility;
pub use crate::error::{GateError, GateErrorKind};
pub use crate::gate::Gate;
pub use crate::gate::builder::GateBuilder;
pub use crate::gate::call::{CallOutcome, CallRequest};
pub use crate::gate::preview::{Preview, PreviewedTool, UnknownTool};
pub use crate::gate::servers::{Server, ServerState};
pub use crate::gate::tools::ToolInfo;
pub use crate::report::{ErrorKind, RunError, RunReport, Status};
pub use crate::run_request::{CallEnd, Event, RunRequest};
pub use crate::search::request::{SearchHit, SearchRequest, SearchResults};
pub use crate::settings::{CheckMode, SearchBy};
pub use crate::skill::Skill;
pub use crate::workers::Workers;
#[cfg(feature = "worker")]
pub use crate::workers::worker_main_if_requested;

/// Requests of servers to their client, and the parts of [`Caller`].
pub mod caller {
    pub use callgate_servers::{
        Log, LogLevel, Offers, Opened, PageDone, Progress, Wanted, WantedKind,
    };
}

/// Tools in the forms of other interfaces and languages.
pub mod export {
    pub use callgate_typegen::ambient as ambient_declarations;

    pub use callgate_rust_types::RustTypes;

    pub use crate::gate::export::{ExportFormat, Exported};
}

/// Rules over data that goes from one server to another.
pub mod flow {
    pub use callgate_policy::flow::{Finding, FlowRecord, FlowRules};
}

/// Lines and events of the ledger, and its sinks.
pub mod ledger {
    pub use callgate_gate::{CallEvent, LedgerError, LedgerEvent, LedgerLine, LedgerSink, Outcome};
}

/// The parts of a [`Question`].
pub mod question {
    pub use callgate_gate::{About, Changed, Done, ScriptLine};
    pub use callgate_policy::{Because, Decision, Definition, Permission, Verdict};
}

/// The parts of a [`ServerSpec`].
pub mod server {
    pub use callgate_auth::Endpoint;
    pub use callgate_servers::{EraSetting, Remembered, ToolList};
}

/// Questions and foreign text as text for a terminal or a message.
pub mod present {
    pub use callgate_auth::Origin;
    pub use callgate_policy::nearest;
    pub use callgate_process::shell_word;

    pub use crate::harmless::{harmless, indented, one_line};
    pub use crate::question_text::{Shown, answer_text, change_text, question_text};
    pub use crate::quoted::{label, quoted, undrawn};
}

/// Rules with tests of arguments, hints, counts and expiry.
///
/// [`Rule::parse`](rule::Rule::parse) reads a rule in the form of the configuration;
/// [`Rules::push`] takes it, for a gate or for one run.
pub mod rule {
    pub use callgate_policy::{Effect, Pattern, PatternError, Rule, RuleError, listed_members};
    pub use callgate_typegen::names::prefix as function_prefix;
}

/// The workers that scripts run in, and the kernel layers around them.
pub mod sandbox {
    pub use callgate_sandbox::{
        Jail, JailLayer, JailOptions, WorkerProgram, forbid_inspection, machine_memory,
    };
    pub use callgate_script::MAX_SCRIPT_BYTES;
}

//! Run a TypeScript script whose only power is the MCP tools you allow.
//!
//! A [`Gate`] holds connections to MCP servers, the names their tools have in
//! a script, and the rules over them. [`Gate::run`] takes a script through
//! parsing, a type check, a worker process with a V8 isolate, and the broker
//! that decides on every call, and always comes back with one [`RunReport`].
//!
//! ```no_run
//! use callgate::{Gate, Rules, ServerSpec};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let gate = Gate::builder()
//!         .worker_binary("/usr/libexec/callgate-worker")
//!         .server(ServerSpec::stdio("time", "mcp-server-time", ["--local-timezone", "UTC"]))
//!         .rules(Rules::new(["time_*"], [], [])?)
//!         .build()
//!         .await?;
//!     let report = gate.run("return await time_get_current_time({ timezone: 'UTC' })").await;
//!     println!("{report}");
//!     gate.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! Each script runs in a process of its own: the host's executable started
//! again, so a host calls [`worker_main_if_requested`] first thing in `main`,
//! or names a worker program with [`GateBuilder::worker_binary`]. `callgate-worker`
//! is one; it starts faster, and has no code of the host in its memory.
//!
//! This is the one public crate; the `callgate-*` crates under it are
//! internal and change without notice.

pub mod auth;
mod cache;
pub mod config;
mod foresight;
mod gate;
mod harmless;
mod host_functions;
mod keep_in_file;
mod live_catalog;
mod model_tools;
mod models;
mod names;
mod position;
mod question;
mod quoted;
mod read_script;
mod report;
mod roots;
mod run_request;
mod scope;
mod script_calls;
mod script_errors;
mod search;
mod settings;
mod skill;
mod tool_settings;
mod type_check;
mod unmatched;
mod workers;

pub use callgate_broker::{
    Answer, Asker, CallError, Changed, Connect, Done, DryRun, EraSetting, Http, JournalError,
    JournalLine, JournalOptions, JournalReader, Keep, LedgerLine, NobodyToAsk, Origin, Outcome,
    Question, ResultReview, Review, Reviewed, Reviewer, Ruling, ScriptLine, ServerSpec, Source,
    SourceError, Stdio, Transport, Withheld, ask_with, code, shell_word,
};
pub use callgate_broker::{
    Caller, Elicit, ListRoots, Log, LogLevel, NoCaller, Offers, Opened, PageDone, Progress,
    Refusal, Root, Sample, UnknownLogLevel, Wanted,
};

/// Data on its way from one server to another, and the rules over it.
pub mod flow {
    pub use callgate_policy::Pattern;
    pub use callgate_policy::flow::{
        Copied, Encoding, Finding, FlowEnd, FlowReason, FlowRecord, FlowRule, FlowRules, FlowWhy,
        MAX_PIECE, Seen, Side,
    };
}

/// Rules that say more than a pattern: of arguments, of hints, how often and until when.
/// [`Rule::parse`](rule::Rule::parse) reads one as a configuration file has it;
/// [`Rules::push`] takes it, for a gate or for one run.
pub mod rule {
    pub use callgate_policy::{
        Annotations, Condition, Effect, Glob, Pattern, Pointer, PointerError, Rule, RuleProblem,
        RuleProblemKind, ServerPattern, Step, Test, TextError, WholeRegex,
    };
}

pub use callgate_models::Api;
pub use callgate_policy::{
    Because, Decision, Definition, DefinitionHash, Grant, Leave, PatternError, Rules,
    SessionGrants, Verdict,
};
pub use callgate_rust_types::RustTypes;
pub use callgate_sandbox::{
    Jail, JailLayer, JailOptions, Limits, MachineCode, WorkerProgram, forbid_inspection,
    worker_main_if_requested,
};
pub use callgate_script::{MAX_SCRIPT_BYTES, ScriptError};
pub use callgate_typegen::{Detail, ambient as ambient_declarations};
pub use tokio_util::sync::CancellationToken;

pub use crate::gate::Gate;
pub use crate::gate::builder::{BuildError, GateBuilder};
pub use crate::gate::call::{CallRequest, Called};
pub use crate::gate::export::{ExportFormat, Exported, UnknownFormat};
pub use crate::gate::preview::{Preview, PreviewedTool};
pub use crate::gate::servers::{Server, ServerError, ServerState};
pub use crate::gate::tools::{CatalogStamp, Tool};
pub use crate::harmless::{harmless, indented, one_line};
pub use crate::position::Position;
pub use crate::question::{Shown, answer_text, change_text, question_text};
pub use crate::quoted::{quoted, undrawn};
pub use crate::report::emitted::{Emitted, EmittedResource};
pub use crate::report::text::{Printed, Problems};
pub use crate::report::{
    Denial, ErrorKind, LimitHit, Output, REPORT_VERSION, Returned, RunError, RunReport, Status,
    Unavailable,
};
pub use crate::run_request::{CallEnd, Event, RunRequest};
pub use crate::search::request::{Found, Hit, SearchError, SearchRequest};
pub use crate::settings::{CheckMode, ExtractLimits, SearchBy, UnknownCheckMode};
pub use crate::skill::{Skill, SkillError};
pub use crate::tool_settings::{ToolSetting, ToolSettings, UnknownVisibility, Visibility};
pub use crate::type_check::{CheckStatus, TypeCheck, TypeError};
pub use crate::workers::Workers;

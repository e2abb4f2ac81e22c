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
//! without notice. `api.txt` beside this crate's manifest lists every public item.
//!
//! # Recipes
//!
//! Each recipe is a module of `examples/recipes`, which the tests run.
//!
//! ## Rules
//!
//! ```
#![doc = include_str!("../examples/recipes/rules.rs")]
//! ```
//!
//! ## A custom asker
//!
//! ```
#![doc = include_str!("../examples/recipes/asker.rs")]
//! ```
//!
//! ## A reviewer of arguments and results
//!
//! ```
#![doc = include_str!("../examples/recipes/reviewer.rs")]
//! ```
//!
//! ## Events of a run
//!
//! ```
#![doc = include_str!("../examples/recipes/events.rs")]
//! ```
//!
//! ## Cancellation
//!
//! ```
#![doc = include_str!("../examples/recipes/cancellation.rs")]
//! ```
//!
//! ## A dry run
//!
//! ```
#![doc = include_str!("../examples/recipes/dry_run.rs")]
//! ```
//!
//! ## One call without a script
//!
//! ```
#![doc = include_str!("../examples/recipes/call.rs")]
//! ```
//!
//! ## A search for tools
//!
//! ```
#![doc = include_str!("../examples/recipes/search.rs")]
//! ```
//!
//! ## A ledger sink
//!
//! ```
#![doc = include_str!("../examples/recipes/ledger_sink.rs")]
//! ```

#![deny(unnameable_types)]
#![warn(missing_docs)]

mod arguments;
mod asking;
mod auth;
mod cache;
mod choices;
#[doc(hidden)]
pub mod config;
mod error;
#[doc(hidden)]
pub mod faces;
mod gate;
mod host_functions;
mod keep_in_file;
mod lint;
mod live_catalog;
mod model_tools;
mod models;
mod names;
mod position;
mod question_text;
mod read_list;
mod read_script;
mod record;
pub mod report;
mod roots;
mod run_request;
mod scope;
mod script_calls;
mod script_errors;
mod search;
mod setters;
mod skill;
mod type_check;
mod workers;

pub use callgate_gate::{Answer, Asker, CallError, CallErrorKind, Question};
pub use callgate_policy::{Rules, RulesBuilder};
pub use callgate_servers::ServerSpec;
pub use tokio_util::sync::CancellationToken;

pub use crate::config::{Config, ConfigError};
pub use crate::error::{GateError, GateErrorKind};
pub use crate::gate::Gate;
pub use crate::gate::builder::GateBuilder;
pub use crate::gate::call::{CallOutcome, CallRequest};
pub use crate::gate::servers::{Server, ServerState};
pub use crate::gate::tools::ToolInfo;
pub use crate::report::{ErrorKind, RunError, RunReport, Status};
pub use crate::run_request::{CallEnd, Event, RunRequest};
pub use crate::search::request::{SearchHit, SearchRequest, SearchResults};

/// Dry runs, and previews of a script from its text.
pub mod dry_run {
    pub use callgate_gate::{DryRun, Withheld};

    pub use crate::gate::preview::{Preview, PreviewedTool, UnknownTool};
}

/// Lines and events of the ledger, and its sinks.
pub mod ledger {
    pub use callgate_gate::{CallEvent, LedgerError, LedgerEvent, LedgerLine, LedgerSink, Outcome};
    pub use callgate_policy::flow::FlowRecord;
}

/// Parts of a [`Question`], and what a yes grants.
pub mod question {
    pub use callgate_gate::{GrantStore, GrantStoreError, Reply, ScriptLine};
    pub use callgate_policy::{Grant, SessionGrants};
}

/// Reviewers of arguments and results, besides the rules.
pub mod review {
    pub use callgate_gate::{ResultReview, Review, Reviewed, Reviewer};
}

/// Errors of rules.
pub mod rule {
    pub use callgate_policy::RuleError;
}

/// The processes of the host and of its scripts.
pub mod sandbox {
    pub use callgate_sandbox::forbid_inspection;

    #[cfg(feature = "worker")]
    pub use crate::workers::worker_main_if_requested;
}

/// Choices of requests and of a gate.
pub mod settings {
    pub use callgate_sandbox::Limits;
    pub use callgate_servers::Audience;
    pub use callgate_typegen::Detail;

    pub use crate::choices::{CheckMode, SearchBy};
}

/// The code of docs/library.md.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryGuide;

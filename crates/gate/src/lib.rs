//! Internal crate of Callgate: one call, from the decision to the result.
//!
//! [`Dispatcher::call`] is the only way from a script to a server. It finds data flows, decides
//! by rules, grants, [`Reviewer`]s and the [`Asker`], writes the ledger, sends the call, and
//! checks the result. Nothing is sent before the decision is in the ledger.

mod arguments;
mod ask;
mod authority;
mod consult;
mod dispatcher;
mod dry_run;
mod error;
mod flows;
mod keep;
mod ledger;
mod result;
mod review;
mod ruling;
mod setup;

pub use ask::{
    About, Answer, Asker, Changed, Done, NobodyToAsk, Place, Question, ScriptLine, ask_with,
};
pub use consult::Unanswered;
pub use dispatcher::Dispatcher;
pub use dry_run::{DryRun, Withheld};
pub use error::{CallError, code};
pub use keep::{Definitions, Keep};
pub use ledger::{
    CallEvent, DEFAULT_LEDGER_BYTES, LedgerError, LedgerEvent, LedgerFile, LedgerLine,
    LedgerOptions, LedgerReader, LedgerRecord, LedgerSink, Outcome,
};
pub use review::{ResultReview, Review, Reviewed, Reviewer};
pub use ruling::Ruling;
pub use setup::{CallOptions, LineText, Setup};

// For crates that still know these by the names and the place they had.
pub use callgate_auth::{Origin, Source, SourceError};
pub use callgate_catalog::Tool as Target;
pub use callgate_process::shell_word;
pub use callgate_servers::{
    Caller, Connect, Elicit, EraSetting, Http, ListRoots, Log, LogLevel, NoCaller, Offers, Opened,
    PageDone, Phase, Progress, Refusal, Remembered, Revision, Root, Sample, ServerInfo, ServerSpec,
    ServerState, Servers, StartError, StartErrorKind, Status, Stdio, ToolList, Transport,
    UnknownLogLevel, UnknownRevision, Wanted, WeakServers,
};
pub use dispatcher::Dispatcher as Run;
pub use ledger::{
    LedgerError as JournalError, LedgerFile as Journal, LedgerOptions as JournalOptions,
    LedgerReader as JournalReader, LedgerRecord as JournalLine,
};
pub use setup::Setup as RunSetup;

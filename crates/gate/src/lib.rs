//! Internal crate of Callgate: one call, from the decision to the result.
//!
//! [`Dispatcher::call`] is the only way from a script to a server. It finds data flows, decides
//! by rules, grants, [`Reviewer`]s and the [`Asker`], writes the ledger, sends the call, and
//! checks the result. Nothing is sent before the decision is in the ledger.

mod approval_clock;
mod arguments;
mod ask;
mod authority;
mod consult;
mod dispatcher;
mod dry_run;
mod error;
mod failure_message;
mod flows;
mod grant_store;
mod ids;
mod ledger;
mod open_question;
mod output_check;
mod pending_call;
mod review;
mod ruling;
mod server_answer;
mod setup;

pub use ask::{
    About, Answer, Asker, Changed, Done, NoAsker, OneAtATime, Question, Reply, ScriptLine,
};
pub use consult::Consulted;
pub use dispatcher::Dispatcher;
pub use dry_run::{DryRun, Withheld};
pub use error::{CallError, CallErrorKind, code};
pub use grant_store::{Definitions, GrantStore, GrantStoreError};
pub use ids::run_id;
pub use ledger::{
    CallEvent, DEFAULT_LEDGER_BYTES, Finding, Head, LedgerError, LedgerEvent, LedgerFile,
    LedgerLine, LedgerOptions, LedgerSink, MAX_LINE_BYTES, Outcome, Summary, Verifier,
};
pub use review::{ResultReview, Review, Reviewed, Reviewer};
pub use ruling::Ruling;
pub use setup::{CallOptions, People, Records, RunOptions, RunRules, Setup};

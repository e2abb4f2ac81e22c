//! What `callgate serve` and the command use beyond the public API. It changes without notice.

pub use callgate_auth::{Endpoint, Origin, Source, has_keyring, store_in_keyring};
pub use callgate_check::globals as sandbox_declarations;
pub use callgate_gate::{About, Changed, Done, LedgerOptions, NoAsker, OneAtATime, code, run_id};
pub use callgate_models::Api;
pub use callgate_policy::flow::{Finding, FlowRules};
pub use callgate_policy::{
    Because, Decision, Definition, Effect, Pattern, Permission, Rule, ToolName, Verdict,
    listed_members,
};
pub use callgate_rust_types::RustTypes;
pub use callgate_sandbox::{Jail, JailLayer, JailOptions, WorkerProgram, machine_memory};
pub use callgate_script::MAX_SCRIPT_BYTES;
pub use callgate_servers::{
    Caller, Connect, EraSetting, Http, Log, LogLevel, NoCaller, Offers, Opened, PageDone, Progress,
    Refusal, Remembered, Root, Stdio, ToolList, Transport, Wanted, WantedKind, nesting,
};
pub use callgate_typegen::ambient as ambient_declarations;
pub use callgate_typegen::names::prefix as function_prefix;

pub use crate::arguments::{WrongArguments, quoted, unknown_member};
pub use crate::config::Visibility;
pub use crate::gate::export::{ExportFormat, Exported};
pub use crate::gate::view::GateView;
pub use crate::question_text::{Shown, answer_text, call_text, change_text, question_text};
pub use crate::run_request::MAX_STDIN;
pub use crate::skill::Skill;
pub use crate::workers::Workers;

/// Questions as records, and the ways by which they are answered.
pub mod asking {
    pub use crate::asking::{
        AnswerLinks, Asking, AskingOptions, LinkAnswer, RecordedAsker, RunContext, Way,
        WebhookConfig, WebhookUrl, choice_of, question_texts, record_way, reply_record,
    };
}

/// The check of ledger files.
pub mod ledger {
    pub use callgate_gate::{Finding, Head, MAX_LINE_BYTES, Summary, Verifier};
}

/// The record of runs.
pub mod store {
    pub use callgate_store::{
        Access, AnswerRecord, Body, CallRecord, Choice, QuestionFilter, QuestionRecord,
        QuestionState, QuestionTexts, RunFilter, RunRecord, RunStatus, Settled, SqliteStore, Store,
        StoreError, StoreErrorKind,
    };

    pub use crate::record::{Recorder, StoreSink, open_store};
}

/// Logins at HTTP servers.
pub mod auth {
    pub use crate::auth::*;
}

//! A host stores values of the types that it meets in fields of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate::dry_run::{Preview, PreviewedTool, UnknownTool, Withheld};
use callgate::ledger::{
    CallEvent, FlowRecord, LedgerError, LedgerEvent, LedgerLine, LedgerSink, Outcome,
};
use callgate::question::{Grant, GrantStoreError, ScriptLine, SessionGrants};
use callgate::report::{
    CheckStatus, Denial, Emitted, LimitHit, Output, Position, Returned, TypeCheck, TypeError,
    Unavailable, Warning,
};
use callgate::rule::RuleError;
use callgate::{
    Answer, CallError, CallErrorKind, CallOutcome, ConfigError, ErrorKind, GateError,
    GateErrorKind, Question, Rules, RunError, RunReport, SearchHit, SearchResults, Server,
    ServerState, Status, ToolInfo,
};
use serde_json::json;

#[derive(Default)]
#[expect(dead_code, reason = "the types are named, and that is the test")]
struct Host {
    report: Option<(RunReport, Status, RunError, ErrorKind)>,
    parts: Option<(
        Output,
        Returned,
        Emitted,
        Denial,
        Warning,
        Unavailable,
        LimitHit,
    )>,
    check: Option<(TypeCheck, CheckStatus, TypeError, Position)>,
    calls: Vec<(LedgerLine, Outcome, FlowRecord)>,
    call: Option<(CallOutcome, CallError, CallErrorKind)>,
    question: Option<(Question, ScriptLine, Answer)>,
    grants: Option<(Grant, Arc<SessionGrants>, GrantStoreError)>,
    preview: Option<(Preview, PreviewedTool, UnknownTool, Withheld)>,
    found: Option<(SearchResults, SearchHit, ToolInfo)>,
    server: Option<(Server, ServerState)>,
    errors: Option<(GateError, GateErrorKind, ConfigError, RuleError)>,
}

/// Counts the sent calls that are over.
#[derive(Default)]
struct Counter(AtomicUsize);

impl LedgerSink for Counter {
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError> {
        if let LedgerEvent::CallEnded(CallEvent { was_sent: true, .. }) = event {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn types_used_by_a_host_are_public() {
    let _host = Host::default();
    let _sink: Arc<dyn LedgerSink> = Arc::new(Counter::default());
}

#[test]
fn first_wrong_rule_is_the_error_of_the_builder() {
    let tests = json!({ "tool": "fs_*", "arguments": [{ "at": "/path", "glob": "/out/**" }] });
    assert!(
        Rules::builder()
            .allow(tests)
            .deny("*_reset")
            .build()
            .is_ok()
    );
    let error = Rules::builder().deny("").allow("x").build().err();
    assert!(error.is_some_and(|error| error.to_string().contains("empty")));
}

//! A host can name every type that it meets, and stores values of each in fields of its own.

use callgate::flow::{Finding, FlowRecord};
use callgate::ledger::{CallEvent, LedgerError, LedgerEvent, LedgerLine, LedgerSink};
use callgate::question::{
    About, Because, Changed, Decision, Definition, Done, ScriptLine, Verdict,
};
use callgate::report::{
    CheckStatus, Denial, Emitted, LimitHit, Output, Position, Returned, TypeCheck, TypeError,
    Unavailable, Warning, Withheld,
};
use callgate::rule::PatternError;
use callgate::server::{Endpoint, EraSetting, Remembered, ToolList};
use callgate::{GateError, GateErrorKind, RulesBuilder, UnknownTool};

/// Parts of a report.
#[derive(Default)]
#[expect(dead_code, reason = "the types are named, and that is the test")]
struct OfReports {
    calls: Vec<LedgerLine>,
    check: Option<(TypeCheck, CheckStatus, Vec<TypeError>)>,
    denials: Vec<Denial>,
    emitted: Vec<Emitted>,
    flows: Vec<FlowRecord>,
    limit: Option<LimitHit>,
    output: Option<(Output, Returned)>,
    position: Option<Position>,
    unknown: Option<UnknownTool>,
    warnings: Vec<(Warning, Unavailable, Withheld)>,
}

/// Parts of a question.
#[derive(Default)]
#[expect(dead_code, reason = "the types are named, and that is the test")]
struct OfQuestions {
    about: Option<About>,
    because: Option<(Because, Decision, Verdict)>,
    changed: Option<Changed>,
    definition: Option<Definition>,
    done: Option<Done>,
    findings: Vec<Finding>,
    line: Option<ScriptLine>,
}

/// Parts of servers, and errors.
#[derive(Default)]
#[expect(dead_code, reason = "the types are named, and that is the test")]
struct OfGates {
    error: Option<(GateError, GateErrorKind, PatternError)>,
    list: Option<(ToolList, Remembered, EraSetting)>,
    endpoint: Option<Endpoint>,
    rules: Option<RulesBuilder>,
}

/// Counts the calls that are over.
#[derive(Default)]
struct Counter(std::sync::atomic::AtomicUsize);

impl LedgerSink for Counter {
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError> {
        if let LedgerEvent::CallEnded(CallEvent { was_sent: true, .. }) = event {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn types_used_by_a_host_are_public() {
    let _parts = (
        OfReports::default(),
        OfQuestions::default(),
        OfGates::default(),
    );
    let _sink: std::sync::Arc<dyn LedgerSink> = std::sync::Arc::new(Counter::default());
    let fault = callgate::Rules::builder().deny("").allow("").build();
    assert!(fault.is_err());
}

//! A host with a gate of its own: an asker, grants before a run, and the end of such grants.

use std::sync::Arc;

use callgate::ledger::{LedgerError, LedgerEvent, LedgerSink};
use callgate::question::Grant;
use callgate::{Answer, CallRequest, GateErrorKind, Question, Rules, RunRequest, Status};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};

use crate::meaning::builder;

const SCRIPT: &str = "return (await ticketing_createIssue({ title: 'x' })).issueId";

fn arguments() -> Box<RawValue> {
    to_raw_value(&json!({ "title": "x" })).expect("JSON")
}

/// The host answers from elsewhere, later.
#[tokio::test]
async fn a_host_answers_by_an_asynchronous_function() {
    let (questions, mut asked) = mpsc::unbounded_channel();
    let asker = Arc::new(move |question: Question| {
        let (answer, answered) = oneshot::channel();
        questions
            .send((question, answer))
            .expect("somebody listens");
        async move { answered.await.unwrap_or(Answer::Deny) }
    });
    let gate = Arc::new(builder().asker(asker).build().await.expect("a gate"));
    let run = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { gate.run(format!("\n\n  {SCRIPT}")).await }
    });
    let (question, answer) = asked.recv().await.expect("a question");
    assert_eq!(question.function, "ticketing_createIssue");
    assert_eq!(question.title.as_deref(), Some("Create issue"));
    let line = question.line.expect("a line");
    assert_eq!((line.number, line.text), (3, format!("  {SCRIPT}")));
    // Without a configuration there is no file for a lasting grant.
    assert_eq!(question.keeps_in, None);
    answer.send(Answer::Once).expect("the run waits");
    let report = run.await.expect("no panic");
    assert_eq!(report.status, Status::Completed, "{report}");
    // An asker that goes away says no.
    drop(asked);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_host_grants_before_a_run() {
    let gate = builder().build().await.expect("a gate");
    let preview = gate.preview(SCRIPT).await.expect("a script");
    let request = preview
        .tools
        .iter()
        .fold(RunRequest::new(SCRIPT), |request, tool| {
            request.grant(tool.grant())
        });
    let report = gate.run(request).await;
    assert_eq!(report.status, Status::Completed, "{report}");
    // The grants held for that run only.
    assert_eq!(gate.run(SCRIPT).await.status, Status::Denied);

    // No grant lifts a denial.
    let rules = Rules::builder()
        .deny("ticketing_*")
        .build()
        .expect("patterns");
    let request = RunRequest::new(SCRIPT).rules(rules);
    let request = request.grant(Grant::new("ticketing_createIssue"));
    assert_eq!(gate.run(request).await.status, Status::Denied);

    let request = CallRequest::new("ticketing_createIssue", arguments());
    let called = gate.call_with(request.clone()).await;
    assert!(called.result.is_err(), "{called:?}");
    let called = gate
        .call_with(request.grant(Grant::new("ticketing_createIssue")))
        .await;
    assert!(called.result.is_ok(), "{called:?}");
    assert!(gate.view().keep(&[Grant::new("x")]).await.is_err());
    gate.shutdown().await;
}

/// A ledger with no room for the decision about a call.
struct Full;

impl LedgerSink for Full {
    fn event(&self, event: &LedgerEvent<'_>) -> Result<(), LedgerError> {
        match event {
            LedgerEvent::CallDecided(_) => Err(LedgerError::new("notes", "no room is left")),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn call_is_not_sent_when_ledger_sink_fails() {
    let rules = Rules::builder().allow("ticketing_*").build();
    let gate = builder().rules(rules.expect("a pattern"));
    let gate = gate.ledger_sink(Arc::new(Full)).build().await;
    let gate = gate.expect("a gate");
    let report = gate.run(SCRIPT).await;
    assert_ne!(report.status, Status::Completed);
    assert!(report.to_string().contains("no room is left"), "{report}");
    gate.shutdown().await;
}

#[tokio::test]
async fn errors_of_a_gate_have_kinds() {
    let gate = builder().build().await.expect("a gate");
    let error = gate.enable("nowhere").await.expect_err("no such server");
    assert_eq!(error.kind(), GateErrorKind::NotFound);
    gate.shutdown().await;
}

//! A host with a gate of its own: who is asked, what is granted, and for how
//! long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use callgate::{
    Answer, CallEnd, CallRequest, CheckMode, DryRun, Event, Gate, GateBuilder, Grant, ResultReview,
    Review, Reviewed, Reviewer, Rules, RunRequest, ServerSpec, Status, ask_with,
};
use callgate_tests::binary;
use expect_test::expect;
use futures::future::BoxFuture;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::{mpsc, oneshot};

const SCRIPT: &str = "return (await ticketing_createIssue({ title: 'x' })).issueId";

fn builder() -> GateBuilder {
    let server = binary("callgate-demo-ticketing").display().to_string();
    Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .check(CheckMode::Off)
        .server(ServerSpec::stdio("ticketing", server, [] as [&str; 0]))
}

fn arguments() -> Box<RawValue> {
    to_raw_value(&json!({ "title": "x" })).expect("JSON")
}

/// The host answers from elsewhere, later.
#[tokio::test]
async fn a_host_answers_by_an_asynchronous_function() {
    let (questions, mut asked) = mpsc::unbounded_channel();
    let asker = ask_with(move |question| {
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
    assert_eq!(
        (line.number, line.text.as_deref()),
        (3, Some(&*format!("  {SCRIPT}")))
    );
    // No configuration, so there is nowhere to keep it.
    assert_eq!(question.keeps_in, None);
    answer.send(Answer::Once).expect("the run waits");
    let report = run.await.expect("no panic");
    assert_eq!(report.status, Status::Completed, "{report}");
    // An asker that goes away says no.
    drop(asked);
    gate.shutdown().await;
}

#[tokio::test]
async fn a_session_is_shared_by_its_runs_and_by_no_others() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let asker = ask_with(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Answer::Session)
    });
    let gate = builder().asker(asker).build().await.expect("a gate");
    for request in [RunRequest::new(SCRIPT), RunRequest::new(SCRIPT)] {
        let report = gate.run(request).await;
        assert_eq!(report.status, Status::Completed, "{report}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let called = gate.call("ticketing_createIssue", arguments()).await;
    called.expect("a call of the same session");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    gate.run(RunRequest::new(SCRIPT).session(Arc::default()))
        .await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    // It can be taken back.
    gate.session().clear();
    gate.run(SCRIPT).await;
    assert_eq!(asked.load(Ordering::SeqCst), 3);
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
    // It was for that run.
    assert_eq!(gate.run(SCRIPT).await.status, Status::Denied);

    // And no grant lifts a denial.
    let rules = Rules::new([], [], ["ticketing_*"]).expect("patterns");
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
    assert!(gate.keep(&[Grant::new("x")]).await.is_err());
    gate.shutdown().await;
}

/// Lets nothing pass that is secret, in either direction.
struct Censor;

impl Reviewer for Censor {
    fn review_arguments<'a>(&'a self, call: Reviewed<'a>) -> BoxFuture<'a, Review> {
        let reviewed = match call.arguments.contains("secret") {
            true => Review::Deny(format!("{} is not to know it", call.server)),
            false => Review::Allow,
        };
        Box::pin(std::future::ready(reviewed))
    }

    fn review_result<'a>(
        &'a self,
        call: Reviewed<'a>,
        result: &'a str,
    ) -> BoxFuture<'a, ResultReview> {
        let reviewed = match result.contains("hidden") {
            true => ResultReview::Withhold(format!("what {} says", call.tool)),
            false => ResultReview::Allow,
        };
        Box::pin(std::future::ready(reviewed))
    }
}

#[tokio::test]
async fn a_reviewer_looks_at_calls_without_a_script() {
    let server = binary("callgate-odd-server").display().to_string();
    let gate = Gate::builder()
        .server(ServerSpec::stdio("odd", server, ["flaky"]))
        .rules(Rules::new(["*"], [], []).expect("a pattern"))
        .reviewer(Arc::new(Censor))
        .build()
        .await
        .expect("a gate");
    let call = async |said: &str| {
        let arguments = to_raw_value(&json!({ "said": said })).expect("JSON");
        match gate.call("odd_echo", arguments).await {
            Ok(result) => result.to_string(),
            Err(error) => error.to_string(),
        }
    };
    expect![[r#"{"said":"open"}"#]].assert_eq(&call("open").await);
    expect!["odd_echo was not called: denied by a reviewer: odd is not to know it"]
        .assert_eq(&call("secret").await);
    expect!["the result of odd_echo is withheld: what echo says"].assert_eq(&call("hidden").await);
    gate.shutdown().await;
}

/// Whoever watches a run need not wait for its report to know.
#[tokio::test]
async fn events_say_what_came_of_each_call() {
    let gate = builder().build().await.expect("a gate");
    let rules = Rules::new(["*"], [], ["ticketing_list*"]).expect("patterns");
    let script = "const calls = [
            () => ticketing_createIssue({ title: 'x' }),
            () => ticketing_createIssue({}),
            () => ticketing_listIssues(),
        ];
        for (const call of calls) await call().catch(() => {});";
    let request = RunRequest::new(script).rules(rules);
    let ends = async |request: RunRequest| {
        let ends: Arc<Mutex<Vec<CallEnd>>> = Arc::default();
        let noted = Arc::clone(&ends);
        let request = request.on_event(move |event| {
            if let Event::CallEnded { end, .. } = event {
                noted.lock().expect("no panic").push(end);
            }
        });
        let report = gate.run(request).await;
        assert_eq!(report.status, Status::Completed, "{report}");
        std::mem::take(&mut *ends.lock().expect("no panic"))
    };
    assert_eq!(
        ends(request.clone()).await,
        [CallEnd::Ok, CallEnd::Failed, CallEnd::Denied]
    );
    assert_eq!(
        ends(request.dry_run(DryRun::new())).await,
        [CallEnd::Withheld, CallEnd::Withheld, CallEnd::Denied]
    );
    gate.shutdown().await;
}

/// The tool changes while the script runs: what was granted is void, and the
/// question shows how it changed.
#[tokio::test]
async fn a_tool_that_changes_in_a_run_loses_its_grant() {
    let changes: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let noted = Arc::clone(&changes);
    let asker = ask_with(move |question| {
        let answer = match question.changed {
            None => Answer::Session,
            Some(changed) => {
                let text = |definition: Option<Arc<callgate::rule::Definition>>| {
                    definition
                        .map(|it| it.text().to_owned())
                        .unwrap_or_default()
                };
                let pair = (text(changed.before), text(changed.now));
                noted.lock().expect("no panic").push(pair);
                Answer::Deny
            }
        };
        std::future::ready(answer)
    });
    let server = binary("callgate-odd-server").display().to_string();
    let rules = Rules::new(["changes_add", "changes_change"], [], []).expect("patterns");
    let gate = builder()
        .server(ServerSpec::stdio("changes", server, ["changes"]))
        .rules(rules)
        .asker(asker)
        .build()
        .await
        .expect("a gate");
    let script = "await changes_add({ name: 'x' });
await mcp.callTool('changes_x', {});
await mcp.callTool('changes_x', {});
await changes_change({ name: 'x' });
// It is known to have changed, and what it is now is waited for.
await mcp.callTool('changes_x', {});";
    let report = gate.run(script).await;
    assert_eq!(report.status, Status::Denied, "{report}");
    let changes = changes.lock().expect("no panic").clone();
    assert_eq!(changes.len(), 1, "{report}");
    assert!(changes[0].0.contains("Changed 0 times"), "{changes:?}");
    assert!(changes[0].1.contains("Changed 1 times"), "{changes:?}");
    gate.shutdown().await;
}

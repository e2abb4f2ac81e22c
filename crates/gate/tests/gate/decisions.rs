//! No call without a decision: rules, questions, grants, and their lines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use callgate_gate::{Answer, Asker, CallOptions, NoAsker, OneAtATime, Question, Reply};
use callgate_policy::Rules;
use callgate_servers::Servers;
use expect_test::{Expect, expect};
use futures::future::{BoxFuture, join_all};
use serde_json::json;

use crate::support::{Run, Runs as _, call, go, in_time, odd, raw, show, target};

/// Answers from a list, and records the questions.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<String>>,
    asking: AtomicUsize,
}

impl Scripted {
    fn new(answers: &[Answer]) -> Arc<Self> {
        let answers = answers.iter().rev().copied().collect();
        Arc::new(Self {
            answers: Mutex::new(answers),
            ..Self::default()
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Asker for Scripted {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let others = self.asking.fetch_add(1, Ordering::SeqCst);
            assert_eq!(others, 0, "two questions at once");
            let shown = format!(
                "{} {}.{} {}: {}",
                question.function,
                question.server,
                question.tool,
                question.arguments,
                question.decision
            );
            self.asked.lock().expect("no panic").push(shown);
            tokio::task::yield_now().await;
            self.asking.fetch_sub(1, Ordering::SeqCst);
            let answer = self.answers.lock().expect("no panic").pop();
            answer.unwrap_or(Answer::NoAsker).into()
        })
    }
}

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Arc<Rules> {
    let rules = Rules::builder();
    let rules = allow.iter().fold(rules, |rules, it| rules.allow(*it));
    let rules = ask.iter().fold(rules, |rules, it| rules.ask(*it));
    let rules = deny.iter().fold(rules, |rules, it| rules.deny(*it));
    Arc::new(rules.build().expect("patterns"))
}

fn check_ledger(run: &Run, expected: Expect) {
    let lines = run.ledger().into_iter().map(|line| {
        let sent = line.took_ms.map_or("not sent", |_| "sent");
        let (ordinal, function, decision) = (line.ordinal, line.function, line.decision);
        format!(
            "{ordinal} {function}: {decision}: {:?}, {sent}\n",
            line.outcome
        )
    });
    expected.assert_eq(&lines.collect::<String>());
}

/// Other functions are asked about still, and a function that a rule allows is not refused.
#[tokio::test]
async fn refusal_for_the_run_denies_later_calls() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let asker = Scripted::new(&[Answer::DenyRun, Answer::Once]);
    let run = servers.run(rules(&["flaky_empty"], &[], &[]), asker.clone());
    for (tool, text) in [("text", "a"), ("empty", ""), ("text", "b"), ("fails", "c")] {
        in_time(call(&run, "flaky", tool, json!({ "text": text }))).await;
    }
    assert_eq!(asker.asked().len(), 2);
    let decisions: Vec<String> = run.ledger().into_iter().map(|line| line.decision).collect();
    assert_eq!(
        decisions,
        [
            "denied for this run when asked",
            r#"allowed by rule "flaky_empty" in permissions.allow"#,
            "denied for this run when asked",
            "allowed once when asked",
        ]
    );
    servers.shut_down().await;
}

#[tokio::test]
async fn calls_without_matching_rule_are_asked_about() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let asker = Scripted::new(&[Answer::Once, Answer::Deny, Answer::Run]);
    let run = servers.run(rules(&["flaky_empty"], &[], &["flaky_bare"]), asker.clone());
    for tool in ["empty", "bare", "text", "text", "text", "text"] {
        in_time(call(&run, "flaky", tool, json!({ "text": "t\n" }))).await;
    }
    expect![[r#"
        flaky_text flaky.text {"text":"t\n"}: needs approval: no rule matches
        flaky_text flaky.text {"text":"t\n"}: needs approval: no rule matches
        flaky_text flaky.text {"text":"t\n"}: needs approval: no rule matches"#]]
    .assert_eq(&asker.asked().join("\n"));
    check_ledger(
        &run,
        expect![[r#"
            1 flaky_empty: allowed by rule "flaky_empty" in permissions.allow: Ok, sent
            2 flaky_bare: denied by rule "flaky_bare" in permissions.deny: Denied, not sent
            3 flaky_text: allowed once when asked: Ok, sent
            4 flaky_text: denied when asked: Denied, not sent
            5 flaky_text: allowed for this run when asked: Ok, sent
            6 flaky_text: allowed by the grant for this run: Ok, sent
        "#]],
    );

    // A grant is for its run alone.
    let next = servers.run(rules(&[], &[], &[]), Arc::new(NoAsker));
    expect![[r#"CallError { server: "flaky", function: "flaky_text", kind: Denied(Ruling { decision: Decision { verdict: Ask, because: NoRule, asked_by: None, may_deny: None }, answer: Some(NoAsker), details: Details { reason: None, by: None, via: None, is_edited: false, problem: None }, audience: Operator, file: None }) }"#]].assert_eq(&in_time(call(&next, "flaky", "text", json!({}))).await);
    servers.shut_down().await;
}

#[tokio::test]
async fn read_only_hint_needs_a_trusted_server() {
    for (trusted, expected) in [
        (true, expect!["null"]),
        (
            false,
            expect![
                "flaky_empty was not called: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted, and there is no one to ask; allow it with --allow flaky_empty, or with \"flaky_empty\" under permissions.allow"
            ],
        ),
    ] {
        let mut spec = odd("flaky");
        spec.trusted = trusted;
        let servers = in_time(Servers::connect(vec![spec])).await;
        let run = servers.run(rules(&[], &[], &[]), Arc::new(NoAsker));
        let mut target = target("flaky", "empty");
        target.hints.read_only = Some(true);
        expected.assert_eq(&go(&run, target).await);
        servers.shut_down().await;
    }
}

#[tokio::test]
async fn one_grant_answers_all_queued_questions() {
    let servers = in_time(Servers::connect(vec![odd("counter")])).await;
    let asker = Scripted::new(&[Answer::Run]);
    let one_at_a_time = Arc::new(OneAtATime::new(asker.clone()));
    let run = servers.run(rules(&[], &[], &[]), one_at_a_time);
    // All fifty must be in flight together, so all fifty must be let through.
    let calls = (0..50).map(|_| call(&run, "counter", "wait", json!({ "calls": 50 })));
    let results = in_time(join_all(calls)).await;
    assert_eq!(results, vec![r#"{"inFlight":50}"#; 50]);
    assert_eq!(asker.asked().len(), 1);
    servers.shut_down().await;
}

#[tokio::test]
async fn call_abandoned_during_question_is_not_sent() {
    struct Never;
    impl Asker for Never {
        fn ask(&self, _question: Question) -> BoxFuture<'_, Reply> {
            Box::pin(std::future::pending())
        }
    }
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let run = servers.run(rules(&[], &[], &[]), Arc::new(Never));
    {
        let call = call(&run, "flaky", "empty", json!({}));
        futures::pin_mut!(call);
        assert!(futures::poll!(call).is_pending());
        check_ledger(
            &run,
            expect![[r#"
            1 flaky_empty: : Asking, not sent
        "#]],
        );
    }
    check_ledger(
        &run,
        expect![[r#"
        1 flaky_empty: undecided: it was given up first: Cancelled, not sent
    "#]],
    );
    servers.shut_down().await;
}

#[tokio::test]
async fn a_ledger_is_bounded() {
    let servers = in_time(Servers::connect(vec![])).await;
    let run = servers.run(rules(&["*"], &[], &[]), Arc::new(NoAsker));
    let call = || run.call(target("no", "tool"), raw(json!({})), CallOptions::default());
    for _ in 0..10_000 {
        call().await.expect_err("there is no server");
    }
    let refused = call().await;
    expect![[r#"CallError { server: "no", function: "no_tool", kind: Protocol { code: -32053, message: "a run may make 10000 calls, and this one has", data: None, retryable: false } }"#]].assert_eq(&show(refused));
    assert_eq!(run.ledger().len(), 10_000);
}

//! Open questions, and the details of their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use callgate_gate::{Answer, Asker, CallOptions, Outcome, Question, Reply};
use callgate_policy::flow::FlowRules;
use callgate_policy::{Effect, Rule, Rules, Verdict};
use callgate_servers::Servers;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{
    Run, Runs as _, Words, call, flow_rule, in_time, named, odd, raw, setup, target,
};

/// The questions that were asked, and those that were dropped without an answer.
#[derive(Default)]
struct Counts {
    asked: AtomicUsize,
    dropped: AtomicUsize,
}

struct Unanswered(Arc<Counts>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Replies to the questions with this text in their arguments, and never to others.
fn only_about(text: &'static str, reply: Reply) -> (Arc<dyn Asker>, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let noted = Arc::clone(&counts);
    let asker = Arc::new(move |question: Question| {
        noted.asked.fetch_add(1, Ordering::SeqCst);
        let reply = question.arguments.contains(text).then(|| reply.clone());
        let unanswered = reply.is_none().then(|| Unanswered(Arc::clone(&noted)));
        async move {
            let _unanswered = unanswered;
            match reply {
                Some(reply) => reply,
                None => std::future::pending().await,
            }
        }
    });
    (asker, counts)
}

fn with_arguments(answer: Answer, arguments: &str) -> Reply {
    let mut reply = Reply::from(answer);
    reply.arguments = Some(arguments.to_owned());
    reply
}

/// Has the same reply for every question.
fn replying(reply: Reply) -> Arc<dyn Asker> {
    Arc::new(move |_: Question| std::future::ready(reply.clone()))
}

/// Rules that ask about everything but what these entries deny.
fn ask_but_deny(entries: &[Value]) -> Arc<Rules> {
    let denied = entries.iter().map(|entry| (Effect::Deny, entry.clone()));
    let all = denied.chain([(Effect::Ask, json!("*"))]);
    let rules = all.map(|(effect, entry)| Rule::parse(effect, &entry).expect("a rule"));
    Arc::new(rules.collect())
}

/// Calls a tool, and gives its result, or its error as a script sees it.
async fn said(run: &Run, server: &str, tool: &str, arguments: Value) -> String {
    let called = run.call(target(server, tool), raw(arguments), CallOptions::default());
    match in_time(called).await {
        Ok(result) => result.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn one_answer_covers_twenty_open_questions() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for (answer, expected) in [
        (Answer::Run, "allowed by the grant for this run"),
        (Answer::DenyRun, "denied for this run when asked"),
    ] {
        let mut reply = Reply::from(answer);
        reply.by = Some("Quince".to_owned());
        let (asker, counts) = only_about("n 19", reply);
        let run = servers.run_with(setup(Arc::default(), asker));
        let calls =
            (0..20).map(|n| call(&run, "flaky", "echo", json!({ "text": format!("n {n}") })));
        in_time(join_all(calls)).await;
        assert_eq!(counts.asked.load(Ordering::SeqCst), 20);
        assert_eq!(counts.dropped.load(Ordering::SeqCst), 19);
        let lines = run.ledger();
        for line in &lines[..19] {
            assert_eq!((&*line.decision, line.answer), (expected, Some(answer)));
            assert_eq!(line.answered_by.as_deref(), Some("Quince"));
            let via = line.answered_via.as_deref();
            assert_eq!(via, Some("question about call 20"));
        }
        assert_eq!(lines[19].answered_via, None);
        let sent = lines.iter().filter(|line| line.took_ms.is_some()).count();
        assert_eq!(sent, if answer.allows() { 20 } else { 0 });
    }
    servers.shut_down().await;
}

/// A refusal and a grant come at once. The call that equals the refused one is not sent.
#[tokio::test]
async fn refused_call_is_not_covered_by_a_grant() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for grant in [Answer::Run, Answer::Session] {
        let answers = Arc::<Notify>::default();
        let asker = Arc::new({
            let (answers, is_first) = (Arc::clone(&answers), AtomicBool::new(true));
            move |question: Question| {
                let answers = Arc::clone(&answers);
                let answer = if question.arguments.contains("Bottom") {
                    Some(grant)
                } else {
                    is_first
                        .swap(false, Ordering::SeqCst)
                        .then_some(Answer::Deny)
                };
                async move {
                    match answer {
                        Some(answer) => {
                            answers.notified().await;
                            answer
                        }
                        None => std::future::pending().await,
                    }
                }
            }
        });
        let run = servers.run_with(setup(Arc::default(), asker));
        let calls = ["Snug", "Bottom", "Snug"];
        let calls = calls.map(|text| call(&run, "flaky", "echo", json!({ "text": text })));
        let calls = join_all(calls);
        futures::pin_mut!(calls);
        assert!(futures::poll!(&mut calls).is_pending());
        answers.notify_waiters();
        in_time(calls).await;
        let answers: Vec<_> = run.ledger().iter().map(|line| line.answer).collect();
        let deny = Some(Answer::Deny);
        assert_eq!(answers, [deny, Some(grant), deny]);
    }
    servers.shut_down().await;
}

/// "Once", and a refusal of one call, are about equal calls at most.
#[tokio::test]
async fn other_calls_stay_open_after_narrow_answers() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for answer in [Answer::Once, Answer::Deny] {
        let (asker, counts) = only_about("Bottom", Reply::from(answer));
        let run = servers.run_with(setup(Arc::default(), asker));
        let waiting = call(&run, "flaky", "echo", json!({ "text": "Snout" }));
        futures::pin_mut!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        in_time(call(&run, "flaky", "echo", json!({ "text": "Bottom" }))).await;
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(counts.dropped.load(Ordering::SeqCst), 0);
    }
    servers.shut_down().await;
}

/// The grant is for the function; a reviewer's objection to this call's data is not granted.
#[tokio::test]
async fn grant_does_not_cover_waiting_objection() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let (asker, counts) = only_about("Flute", Reply::from(Answer::Session));
    let mut setup = setup(Arc::default(), asker);
    setup.people.reviewers = vec![Arc::new(Words)];
    let run = servers.run_with(setup);
    let objected = call(&run, "flaky", "echo", json!({ "text": "ask" }));
    futures::pin_mut!(objected);
    assert!(futures::poll!(&mut objected).is_pending());
    in_time(call(&run, "flaky", "echo", json!({ "text": "Flute" }))).await;
    assert!(futures::poll!(&mut objected).is_pending());
    assert_eq!(counts.dropped.load(Ordering::SeqCst), 0);
    servers.shut_down().await;
}

#[tokio::test]
async fn refusal_reason_is_in_error_and_line() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for (answer, reason, expected) in [
        (
            Answer::Deny,
            "ask Hermia\nfirst".to_owned(),
            "denied when asked: the operator says: \"ask Hermia\\nfirst\"",
        ),
        (
            Answer::DenyRun,
            "\u{1b}[2Jnot on Midsummer's eve".to_owned(),
            "denied for this run when asked: the operator says: \"\\u001b[2Jnot on Midsummer's eve\"",
        ),
    ] {
        let mut reply = Reply::from(answer);
        reply.reason = Some(reason);
        let (by, via) = ("Egeus".to_owned(), "webhook".to_owned());
        (reply.by, reply.via) = (Some(by), Some(via));
        let run = servers.run_with(setup(Arc::default(), replying(reply)));
        let error = said(&run, "flaky", "echo", json!({})).await;
        let start = format!("flaky_echo was not called: {expected}; ");
        assert!(error.starts_with(&start), "{error}");
        let line = run.ledger().pop().expect("a line");
        assert_eq!(line.decision, expected);
        let line = serde_json::to_value(line).expect("JSON");
        let reason = line["answerReason"].as_str().expect("a reason");
        assert!(expected.contains(reason), "{reason}");
        assert_eq!(line["answeredBy"], "Egeus");
        assert_eq!(line["answeredVia"], "webhook");
    }
    let mut long = Reply::from(Answer::Deny);
    long.reason = Some("ä".repeat(501));
    let run = servers.run_with(setup(Arc::default(), replying(long)));
    let error = said(&run, "flaky", "echo", json!({})).await;
    let cut = format!("says: \"{}…\";", "ä".repeat(500));
    assert!(error.contains(&cut), "{error}");
    servers.shut_down().await;
}

/// An answer with other arguments grants nothing.
#[tokio::test]
async fn edited_arguments_are_sent_once_and_marked() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let edited = r#"{ "to": "Lysander" }"#;
    // Of the text that is sent.
    let sha256 = "d86082d1c847eecc667d93231120f91772fd6e081de690f0b6f89e364e5cd3db";
    for answer in [Answer::Once, Answer::Always] {
        let run = servers.run_with(setup(
            Arc::default(),
            replying(with_arguments(answer, edited)),
        ));
        let given = json!({ "to": "Demetrius" });
        for _ in 0..2 {
            let result = said(&run, "flaky", "echo", given.clone()).await;
            assert_eq!(result, r#"{"to":"Lysander"}"#);
        }
        for line in run.ledger() {
            let expected = "allowed once when asked, with the operator's changed arguments";
            assert_eq!((&*line.decision, line.edited), (expected, true));
            assert_eq!(line.answer, Some(Answer::Once));
            assert_eq!(line.argument_bytes, 17);
            assert_eq!(line.argument_sha256.as_deref(), Some(sha256));
        }
        // The same arguments, written differently, are not a change.
        let same = with_arguments(Answer::Run, r#"{"to" : "Demetrius"}"#);
        let run = servers.run_with(setup(Arc::default(), replying(same)));
        for _ in 0..2 {
            said(&run, "flaky", "echo", given.clone()).await;
        }
        let lines = run.ledger();
        assert_eq!(lines[0].decision, "allowed for this run when asked");
        assert_eq!(lines[1].decision, "allowed by the grant for this run");
        assert!(!lines[0].edited);
    }
    servers.shut_down().await;
}

#[tokio::test]
async fn error_of_edited_call_names_the_edit() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for (tool, edited, expected) in [
        (
            "fails",
            r#"{"to":"Puck"}"#,
            "disk is full; the operator changed",
        ),
        (
            "rejects",
            r#"{"message":"no Puck here"}"#,
            "no Puck here; the operator changed",
        ),
    ] {
        let asker = replying(with_arguments(Answer::Once, edited));
        let run = servers.run_with(setup(Arc::default(), asker));
        let error = said(&run, "flaky", tool, json!({})).await;
        assert!(error.contains(expected), "{error}");
    }
    servers.shut_down().await;
}

#[tokio::test]
async fn edited_arguments_are_denied_by_rules() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let secret = json!({ "tool": "flaky_*", "arguments": [{ "at": "/path", "prefix": "/etc/" }] });
    let many = json!({ "tool": "flaky_*", "arguments": [{ "at": "/count", "min": 100 }] });
    let rules = ask_but_deny(&[secret, many]);
    for edited in [
        r#"{"path":"/etc/shadow","count":1}"#,
        r#"{"path":"/tmp/a","count":1000}"#,
    ] {
        let asker = replying(with_arguments(Answer::Run, edited));
        let run = servers.run_with(setup(Arc::clone(&rules), asker));
        let given = json!({ "path": "/tmp/a", "count": 1 });
        let error = said(&run, "flaky", "echo", given).await;
        let start =
            "flaky_echo was not called: the operator's changed arguments are denied by rule";
        assert!(error.starts_with(start), "{error}");
        let line = run.ledger().pop().expect("a line");
        assert_eq!((line.outcome, line.edited), (Outcome::Denied, true));
        assert_eq!(line.argument_bytes, edited.len());
    }
    servers.shut_down().await;
}

#[tokio::test]
async fn unusable_edits_are_not_sent() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for (edited, expected) in [
        (
            "[1]",
            "the operator's changed arguments must be one JSON object",
        ),
        (
            r#"{"to": Puck}"#,
            "the operator's changed arguments must be one JSON object: ",
        ),
    ] {
        let asker = replying(with_arguments(Answer::Once, edited));
        let run = servers.run_with(setup(Arc::default(), asker));
        let error = said(&run, "flaky", "echo", json!({ "to": "Oberon" })).await;
        let start = format!("flaky_echo was not called: {expected}");
        assert!(error.starts_with(&start), "{error}");
        let line = run.ledger().pop().expect("a line");
        assert_eq!((line.outcome, line.edited), (Outcome::Denied, false));
    }
    servers.shut_down().await;
}

/// The question shows no data of `a`, and no objection; the edit brings them in.
#[tokio::test]
async fn edit_with_unasked_data_is_not_sent() {
    const NOTE: &str = "Theseus, Hippolyta and Philostrate";
    let specs = [("a", "flaky"), ("b", "flaky")].map(named);
    let servers = in_time(Servers::connect(specs.into())).await;
    let objection = "with the operator's changed arguments, it needs approval by a reviewer: \
                     another word, and the answer was not about that";
    for (edited, expected) in [
        (
            json!({ "text": NOTE }),
            "it needs approval by the rule from",
        ),
        (json!({ "text": "ask" }), objection),
    ] {
        let rules = Rules::builder().allow("a_*").ask("b_*").build();
        let asker = replying(with_arguments(Answer::Once, &edited.to_string()));
        let mut setup = setup(Arc::new(rules.expect("patterns")), asker);
        let mut flows = FlowRules::default();
        flows.push(flow_rule("a", "b", Verdict::Ask));
        setup.rules.flows = Arc::new(flows);
        setup.people.reviewers = vec![Arc::new(Words)];
        let run = servers.run_with(setup);
        said(&run, "a", "echo", json!({ "note": NOTE })).await;
        let error = said(&run, "b", "echo", json!({ "text": "nothing of it" })).await;
        assert!(error.contains(expected), "{error}");
        assert_eq!(run.ledger()[1].outcome, Outcome::Denied);
    }
    servers.shut_down().await;
}

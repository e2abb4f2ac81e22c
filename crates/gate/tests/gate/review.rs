//! Data between servers, and reviewers of the host.

use std::sync::{Arc, Mutex};

use callgate_gate::{
    Answer, Asker, CallOptions, GrantStore, GrantStoreError, NoAsker, OneAtATime, Outcome,
    Question, Reviewer, Setup,
};
use callgate_policy::flow::{FlowRules, Seen};
use callgate_policy::{Grant, Rules, Verdict};
use callgate_servers::Servers;
use expect_test::{Expect, expect};
use futures::future::{BoxFuture, join_all};
use serde_json::json;

use crate::support::{
    Run, Runs as _, Target, Words, allow_all, always, call, flow_rule, in_time, named, raw, setup,
    target,
};

const NOTE: &str = "Oberon, Puck and Titania";

fn rules(action: Verdict) -> FlowRules {
    let mut rules = FlowRules::default();
    rules.push(flow_rule("a", "b", action));
    rules
}

async fn run_with(
    flows: FlowRules,
    asker: Arc<dyn Asker>,
    reviewers: Vec<Arc<dyn Reviewer>>,
) -> (Servers, Run) {
    let mut setup = setup(allow_all(), asker);
    setup.rules.flows = Arc::new(flows);
    setup.people.reviewers = reviewers;
    begin(setup).await
}

async fn begin(setup: Setup) -> (Servers, Run) {
    let specs = ["a", "b", "c"].map(|name| named((name, "flaky")));
    let servers = Servers::connect(specs.into()).await;
    let run = servers.run_with(setup);
    (servers, run)
}

/// The ledger: outcome, decision and flows of each call.
fn ledger(run: &Run) -> String {
    let lines = run.ledger();
    let line = |line: &callgate_gate::LedgerLine| {
        let flows = line.flows.iter().map(|flow| {
            let bytes = flow.bytes.unwrap_or_default();
            format!("{} → {} {bytes}", flow.from, flow.to)
        });
        let flows: Vec<String> = flows.collect();
        let outcome = serde_json::to_value(&line.outcome).expect("JSON");
        let outcome = &outcome["outcome"];
        format!("{} {outcome} {} {flows:?}", line.function, line.decision)
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(run: &Run, expected: Expect) {
    expected.assert_eq(&ledger(run));
}

#[tokio::test]
async fn flow_rule_denies_an_allowed_call() {
    in_time(async {
        let (servers, run) = run_with(rules(Verdict::Deny), Arc::new(NoAsker), vec![]).await;
        call(&run, "a", "echo", json!({ "note": NOTE })).await;
        call(&run, "b", "echo", json!({ "text": NOTE })).await;
        call(&run, "c", "echo", json!({ "text": NOTE })).await;
        call(&run, "b", "echo", json!({ "text": "nothing of it" })).await;
        check(&run, expect![[r#"
            a_echo "ok" allowed by rule "*" in permissions.allow []
            b_echo "denied" denied by the rule from "a" to "b" in flows: 24 bytes of a.echo (call 1) go to b.echo ["a_echo → b_echo 24"]
            c_echo "ok" allowed by rule "*" in permissions.allow ["a_echo → c_echo 24"]
            b_echo "ok" allowed by rule "*" in permissions.allow []"#]]);
        servers.shut_down().await;
    })
    .await;
}

/// There is more of it than is compared, so that it may be in any call.
#[tokio::test]
async fn uncompared_data_is_decided_by_flow_rules() {
    let servers = Servers::connect(vec![named(("a", "big")), named(("b", "flaky"))]).await;
    let mut lines = Vec::new();
    for (action, min_bytes) in [
        (Verdict::Deny, Some(1 << 40)),
        (Verdict::Ask, Some(1 << 40)),
        (Verdict::Allow, Some(1)),
        (Verdict::Allow, None),
    ] {
        let mut flows = FlowRules::default();
        flows.label_server("a", "private");
        let mut rule = flow_rule("a", "b", action);
        rule.min_bytes = min_bytes;
        flows.push(rule);
        let mut setup = setup(allow_all(), Arc::new(NoAsker));
        setup.rules.flows = Arc::new(flows);
        let run = servers.run_with(setup);
        in_time(call(&run, "a", "blob", json!({ "bytes": 11 << 20 }))).await;
        in_time(call(&run, "b", "empty", json!({}))).await;
        let said = ledger(&run);
        lines.extend(said.lines().skip(1).map(str::to_owned));
    }
    in_time(servers.shut_down()).await;
    expect![[r#"
        b_empty "denied" denied by the rule from "a" to "b" in flows: results of a.blob may go to b.empty: this run has more results than can be compared ["a_blob → b_empty 0"]
        b_empty "denied" needs approval by the rule from "a" to "b" in flows: results of a.blob may go to b.empty: this run has more results than can be compared, and there is no one to ask ["a_blob → b_empty 0"]
        b_empty "denied" needs approval: a_blob is labelled "private" and b_empty is not: results of a.blob may go to b.empty: this run has more results than can be compared, and there is no one to ask ["a_blob → b_empty 0"]
        b_empty "ok" allowed by rule "*" in permissions.allow ["a_blob → b_empty 0"]"#]]
    .assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn answer_for_run_covers_only_this_flow() {
    let (asker, asked) = always(Answer::Run);
    in_time(async {
        let mut rules = rules(Verdict::Ask);
        rules.label_server("c", "private");
        let asker = Arc::new(OneAtATime::new(asker));
        let (servers, run) = run_with(rules, asker, vec![]).await;
        call(&run, "a", "echo", json!({ "note": NOTE })).await;
        let calls = (0..10).map(|i| call(&run, "b", "echo", json!({ "text": NOTE, "i": i })));
        join_all(calls).await;
        call(&run, "c", "echo", json!({ "note": "another text of c's" })).await;
        call(&run, "b", "echo", json!({ "text": "another text of c's" })).await;
        servers.shut_down().await;
    })
    .await;
    let pieces = |question: Question| {
        let pieces = question.flows.iter().map(|flow| match &flow.seen {
            Seen::Copied(copied) => format!("{flow}: {}", copied.piece),
            _ => flow.to_string(),
        });
        pieces.collect::<Vec<_>>().join("; ")
    };
    let asked: Vec<String> = asked.all().into_iter().map(pieces).collect();
    expect![[r#"
        24 bytes of a.echo (call 1) go to b.echo: Oberon, Puck and Titania
        19 bytes of c.echo (call 12) go to b.echo: another text of c's"#]]
    .assert_eq(&asked.join("\n"));
}

#[tokio::test]
async fn questioned_flows_are_listed_first() {
    let (asker, asked) = always(Answer::Once);
    in_time(async {
        let mut flows = FlowRules::default();
        flows.push(flow_rule("a_19", "b", Verdict::Ask));
        let (servers, run) = run_with(flows, asker, vec![]).await;
        let words = (0..20).map(|number| format!("{number} of twenty fairies"));
        let words: Vec<String> = words.collect();
        for (number, word) in words.iter().enumerate() {
            let function = format!("a_{number}");
            let echo = target("a", "echo");
            let target = Target { function, ..echo };
            let arguments = raw(json!({ "note": word }));
            let result = run.call(target, arguments, CallOptions::default()).await;
            result.expect("it echoes");
        }
        call(&run, "b", "echo", json!({ "all": words })).await;
        let line = run.ledger().pop().expect("a line");
        let named: Vec<String> = line.flows.into_iter().map(|flow| flow.from).collect();
        assert_eq!(named[..3], ["a_19", "a_0", "a_1"]);
        assert_eq!((named.len(), line.more_flows), (16, 4));
        servers.shut_down().await;
    })
    .await;
    let asked = asked.all();
    let [question] = asked.as_slice() else {
        panic!("{asked:#?}");
    };
    let first = question.flows.first().map(|flow| &*flow.from.function);
    assert_eq!((first, question.flows.len()), (Some("a_19"), 20));
}

#[tokio::test]
async fn answer_for_run_does_not_cover_unasked_data() {
    let (asker, asked) = always(Answer::Run);
    in_time(async {
        let mut rule = flow_rule("a", "b", Verdict::Ask);
        rule.min_bytes = Some(25);
        let mut flows = FlowRules::default();
        flows.push(rule);
        let calls = Rules::builder()
            .allow("a_*")
            .ask("b_*")
            .build()
            .expect("patterns");
        let mut setup = setup(Arc::new(calls), asker);
        setup.rules.flows = Arc::new(flows);
        setup.options.script = Some("".into());
        let (servers, run) = begin(setup).await;
        let more = "and their company of fairies";
        for text in [NOTE, more] {
            call(&run, "a", "echo", json!({ "note": text })).await;
        }
        // Less data than the flow rule asks about; the question is about the call alone.
        for text in [NOTE, more, more] {
            call(&run, "b", "echo", json!({ "text": text })).await;
        }
        servers.shut_down().await;
    })
    .await;
    let asked = asked.all().into_iter().map(|question| question.about.data);
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked, [vec![], vec!["a_echo".to_owned()]]);
}

/// A question about data alone: longer answers than "once" let the data through for the run,
/// and keep no rule.
#[tokio::test]
async fn question_offers_only_applicable_answers() {
    let about = Arc::new(Mutex::new(Vec::new()));
    let asker = |answer| {
        let about = Arc::clone(&about);
        Arc::new(move |question: Question| {
            let line = format!("{:?} {:?}", question.about, question.answers());
            about.lock().expect("no panic").push(line);
            std::future::ready(answer)
        })
    };
    in_time(async {
        for (rules_over_calls, answer) in [
            (allow_all(), Answer::Always),
            (Arc::default(), Answer::Session),
        ] {
            let mut setup = setup(rules_over_calls, asker(answer));
            setup.rules.flows = Arc::new(rules(Verdict::Ask));
            setup.options.script = Some("".into());
            setup.records.keep = Some(Arc::new(Nowhere));
            let (servers, run) = begin(setup).await;
            call(&run, "a", "echo", json!({ "note": NOTE })).await;
            call(&run, "b", "echo", json!({ "text": NOTE })).await;
            call(&run, "b", "echo", json!({ "text": NOTE })).await;
            about.lock().expect("no panic").push(ledger(&run));
            servers.shut_down().await;
        }
        let (flows, asker) = (FlowRules::default(), asker(Answer::Run));
        let (servers, run) = run_with(flows, asker, vec![Arc::new(Words)]).await;
        call(&run, "a", "echo", json!({ "text": "ask" })).await;
        about.lock().expect("no panic").push(ledger(&run));
        servers.shut_down().await;
    })
    .await;
    let about = about.lock().expect("no panic").join("\n");
    expect![[r#"
        About { call: false, data: ["a_echo"] } [Once, Run, Deny, DenyRun]
        a_echo "ok" allowed by rule "*" in permissions.allow []
        b_echo "ok" allowed for this run when asked ["a_echo → b_echo 24"]
        b_echo "ok" allowed by rule "*" in permissions.allow ["a_echo → b_echo 24"]
        About { call: true, data: [] } [Once, Run, Session, Always, Deny, DenyRun]
        About { call: true, data: ["a_echo"] } [Once, Run, Session, Always, Deny, DenyRun]
        a_echo "ok" allowed for this session when asked []
        b_echo "ok" allowed for this session when asked ["a_echo → b_echo 24"]
        b_echo "ok" allowed by the grant for this session ["a_echo → b_echo 24"]
        About { call: false, data: [] } [Once, Deny]
        a_echo "ok" allowed once when asked []"#]]
    .assert_eq(&about);
}

/// Nothing may be kept here.
struct Nowhere;

impl GrantStore for Nowhere {
    fn place(&self) -> String {
        "nowhere".to_owned()
    }

    fn keep<'a>(&'a self, grants: &'a [Grant]) -> BoxFuture<'a, Result<(), GrantStoreError>> {
        panic!("{grants:?}");
    }
}

#[tokio::test]
async fn reviewer_judges_arguments_and_results() {
    in_time(async {
        let asker = Arc::new(NoAsker);
        let flows = FlowRules::default();
        let (servers, run) = run_with(flows, asker, vec![Arc::new(Words)]).await;
        let mut said = String::new();
        for word in ["plain", "deny", "ask", "hide this note from everybody"] {
            said += &call(&run, "a", "echo", json!({ "text": word })).await;
            said += "\n";
        }
        let rejects = json!({ "message": "hide this, too" });
        said += &call(&run, "a", "rejects", rejects).await;
        said += "\n";
        // The script cannot pass on a result that was kept from it.
        let hidden = json!({ "text": "hide this note from everybody" });
        call(&run, "b", "echo", hidden).await;
        expect![[r#"
            {"text":"plain"}
            CallError { server: "a", function: "a_echo", kind: Denied(Ruling { decision: Decision { verdict: Deny, because: Reviewer("a word"), asked_by: None, may_deny: None }, answer: None, details: Details { reason: None, by: None, via: None, is_edited: false, problem: None }, audience: Operator, file: None }) }
            CallError { server: "a", function: "a_echo", kind: Denied(Ruling { decision: Decision { verdict: Ask, because: Reviewer("another word"), asked_by: None, may_deny: None }, answer: Some(NoAsker), details: Details { reason: None, by: None, via: None, is_edited: false, problem: None }, audience: Operator, file: None }) }
            CallError { server: "a", function: "a_echo", kind: Kept { reason: "not for scripts" } }
            CallError { server: "a", function: "a_rejects", kind: Kept { reason: "not for scripts" } }
        "#]].assert_eq(&said);
        check(&run, expect![[r#"
            a_echo "ok" allowed by rule "*" in permissions.allow []
            a_echo "denied" denied by a reviewer: a word []
            a_echo "denied" needs approval by a reviewer: another word, and there is no one to ask []
            a_echo "kept" allowed by rule "*" in permissions.allow []
            a_rejects "kept" allowed by rule "*" in permissions.allow []
            b_echo "kept" allowed by rule "*" in permissions.allow []"#]]);
        servers.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn rule_question_includes_the_reviewer_objection() {
    let (asker, asked) = always(Answer::Session);
    in_time(async {
        let mut setup = setup(Arc::default(), asker);
        setup.people.reviewers = vec![Arc::new(Words)];
        let (servers, run) = begin(setup).await;
        for _ in 0..2 {
            call(&run, "a", "echo", json!({ "text": "ask" })).await;
        }
        servers.shut_down().await;
    })
    .await;
    let asked = asked.all().into_iter().map(|question| {
        let also_asked = question.also_asked.map(|asked| asked.to_string());
        (question.decision.to_string(), also_asked)
    });
    let asked: Vec<_> = asked.collect();
    let reviewed = "needs approval by a reviewer: another word".to_owned();
    let ruled = "needs approval: no rule matches".to_owned();
    assert_eq!(asked, [(ruled, Some(reviewed.clone())), (reviewed, None)]);
}

#[tokio::test]
async fn last_words_of_a_server_are_its_data() {
    in_time(async {
        let specs = [("a", "dies-on-call"), ("b", "flaky")].map(named);
        let servers = Servers::connect(specs.into()).await;
        let mut setup = setup(allow_all(), Arc::new(NoAsker));
        setup.rules.flows = Arc::new(rules(Verdict::Deny));
        let run = servers.run_with(setup);
        call(&run, "a", "die", json!({})).await;
        let said = json!({ "text": "it says: odd server: out of luck" });
        call(&run, "b", "echo", said).await;
        let denied = run.ledger().pop().expect("a line");
        assert_eq!(denied.outcome, Outcome::Denied);
        assert_eq!(denied.flows[0].from, "a_die");
        servers.shut_down().await;
    })
    .await;
}

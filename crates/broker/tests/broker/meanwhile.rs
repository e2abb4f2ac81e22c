//! Looks at large arguments that go on while the call is made, and those that the call
//! has to wait for.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::Poll;

use callgate_broker::{
    Answer, Broker, DryRun, Journal, JournalOptions, NobodyToAsk, Reviewer, Run, RunSetup,
};
use callgate_policy::flow::FlowRules;
use callgate_policy::{Rules, Verdict};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::support::{allow_all, always, call, flow_rule, in_time, named};

const NOTE: &str = "Oberon, Puck, Titania and Bottom";

/// A run whose looks at large arguments have no thread until they are given it.
struct Held {
    broker: Broker,
    run: Run,
    thread: mpsc::Sender<()>,
}

impl Held {
    /// Of a run with three servers, in which `a` has said this.
    async fn run(setup: RunSetup, said: &str) -> Self {
        let servers = [("a", "flaky"), ("b", "counter"), ("c", "flaky")].map(named);
        let broker = Broker::start(servers.into()).await;
        let run = broker.run_with(setup);
        call(&run, "a", "echo", json!({ "note": said })).await;
        let (done, wait) = mpsc::channel::<()>();
        // The only thread that there is for such work has other work.
        tokio::task::spawn_blocking(move || wait.recv());
        Self {
            broker,
            run,
            thread: done,
        }
    }

    fn give_thread(&self) {
        self.thread.send(()).expect("the other work waits for it");
    }

    /// A call of `b`, which answers when it has so many of them.
    async fn wait(&self, calls: u32, text: String) -> String {
        let arguments = json!({ "calls": calls, "text": text });
        call(&self.run, "b", "wait", arguments).await
    }

    /// The second of two calls of `b`, in which there is nothing to look for.
    async fn wait_again(&self) -> String {
        call(&self.run, "b", "wait", json!({ "calls": 2 })).await
    }

    /// The outcome of each call, and the size of its flows.
    fn lines(&self) -> Vec<String> {
        let lines = self.run.ledger();
        let line = |line: &callgate_broker::LedgerLine| {
            let flows: Vec<Option<usize>> = line.flows.iter().map(|flow| flow.bytes).collect();
            let outcome = serde_json::to_value(&line.outcome).expect("JSON");
            format!("{} {} {flows:?}", line.function, outcome["outcome"])
        };
        lines.iter().map(line).collect()
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.lines().join("\n"));
    }
}

fn large(text: &str) -> String {
    format!("{text}{}", " and so on".repeat(20_000))
}

/// So much that a look at it has a thread of its own.
fn huge(text: &str) -> String {
    format!("{text}{}", " and so on".repeat(220_000))
}

fn setup() -> RunSetup {
    RunSetup::new(allow_all(), Arc::new(NobodyToAsk))
}

fn with_one_thread(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    runtime.block_on(in_time(test));
}

#[test]
fn a_call_is_made_while_its_arguments_are_looked_at() {
    // There is much to look at, or much to learn before.
    for (said, text) in [(NOTE.to_owned(), huge(NOTE)), (huge(NOTE), NOTE.to_owned())] {
        with_one_thread(async {
            let held = Held::run(setup(), &said).await;
            let mut one = pin!(held.wait(2, text));
            let answered = tokio::select! {
                biased;
                _ = &mut one => panic!("answered before anybody looked"),
                answered = held.wait_again() => answered,
            };
            // The server has both.
            assert_eq!(answered, r#"{"inFlight":2}"#);
            let flows = &held.run.ledger()[1].flows;
            assert_eq!(json!(flows), json!([{ "from": "a_echo", "to": "b_wait" }]));
            held.give_thread();
            assert_eq!(one.await, r#"{"inFlight":2}"#);
            held.check(expect![[r#"
                a_echo "ok" []
                b_wait "ok" [Some(32)]
                b_wait "ok" []"#]]);
            held.broker.shutdown().await;
        });
    }
}

/// By the task that made it, which needs no other thread for it.
#[test]
fn a_look_that_is_put_off_is_done_before_the_call_is_over() {
    for (said, text) in [
        (NOTE.to_owned(), large(NOTE)),
        (large(NOTE), NOTE.to_owned()),
    ] {
        with_one_thread(async {
            let held = Held::run(setup(), &said).await;
            // The server has both at one time.
            let answered = tokio::join!(held.wait(2, text), held.wait_again());
            let both = r#"{"inFlight":2}"#;
            assert_eq!((answered.0.as_str(), answered.1.as_str()), (both, both));
            held.check(expect![[r#"
                a_echo "ok" []
                b_wait "ok" [Some(32)]
                b_wait "ok" []"#]]);
            held.give_thread();
            held.broker.shutdown().await;
        });
    }
}

#[test]
fn of_a_call_that_is_given_up_the_ledger_says_that_nobody_looked() {
    with_one_thread(async {
        let held = Held::run(setup(), NOTE).await;
        {
            let mut one = pin!(held.wait(2, huge(NOTE)));
            tokio::select! {
                biased;
                _ = &mut one => panic!("answered before anybody looked"),
                _ = held.wait_again() => {}
            }
        }
        held.check(expect![[r#"
            a_echo "ok" []
            b_wait "cancelled" [None]
            b_wait "ok" []"#]]);
        held.give_thread();
        held.broker.shutdown().await;
    });
}

/// A call that is neither made nor refused before its arguments are looked at, and what
/// comes of it then: what was found is in the ledger.
fn waits(setup: RunSetup, outcome: &str) {
    with_one_thread(async {
        let held = Held::run(setup, NOTE).await;
        {
            let mut one = pin!(held.wait(1, huge(NOTE)));
            tokio::select! {
                biased;
                _ = &mut one => panic!("answered before anybody looked"),
                // The run goes on. That another server says what is in the arguments makes it
                // none of its data: it came too late for that.
                answered = call(&held.run, "c", "echo", json!({ "text": " and so on and so on and so on" })) => {
                    assert_eq!(answered, r#"{"text":" and so on and so on and so on"}"#);
                }
            }
            let outcome = &held.run.ledger()[1].outcome;
            assert_eq!(*outcome, callgate_broker::Outcome::Asking);
            held.give_thread();
            one.await;
        }
        let called = format!("b_wait \"{outcome}\" [Some(32)]");
        assert_eq!(
            held.lines(),
            ["a_echo \"ok\" []", &called, "c_echo \"ok\" []"]
        );
        held.broker.shutdown().await;
    });
}

#[test]
fn a_call_waits_where_a_rule_may_stop_its_flows() {
    for action in [Verdict::Deny, Verdict::Ask] {
        let mut flows = FlowRules::default();
        flows.push(flow_rule("a", "b", action));
        let mut setup = setup();
        setup.flows = Arc::new(flows);
        // Nobody is there to be asked.
        waits(setup, "denied");
    }
}

#[test]
fn a_look_that_a_call_waits_for_needs_no_other_thread() {
    with_one_thread(async {
        let mut flows = FlowRules::default();
        flows.push(flow_rule("a", "b", Verdict::Deny));
        let mut setup = setup();
        setup.flows = Arc::new(flows);
        let held = Held::run(setup, NOTE).await;
        let denied = held.wait(1, large(NOTE)).await;
        assert!(denied.contains("32 bytes of a.echo (call 1)"), "{denied}");
        assert_eq!(held.wait(1, large("")).await, r#"{"inFlight":1}"#);
        held.check(expect![[r#"
            a_echo "ok" []
            b_wait "denied" [Some(32)]
            b_wait "ok" []"#]]);
        held.give_thread();
        held.broker.shutdown().await;
    });
}

#[test]
fn a_call_waits_where_a_label_may_be_in_the_way() {
    let mut flows = FlowRules::default();
    flows.label_server("a", "private");
    let mut setup = setup();
    setup.flows = Arc::new(flows);
    waits(setup, "denied");
}

#[test]
fn a_call_waits_for_what_reviewers_are_to_see() {
    struct Nothing;
    impl Reviewer for Nothing {}
    let mut setup = setup();
    setup.reviewers = vec![Arc::new(Nothing)];
    waits(setup, "ok");
}

#[tokio::test]
async fn what_was_found_behind_the_line_before_a_call_is_in_the_one_after_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let journal = Journal::open(&path, JournalOptions::default()).expect("a journal");
    let mut setup = setup();
    setup.journal = Some(Arc::new(journal));
    let broker = Broker::start([("a", "flaky"), ("b", "counter")].map(named).into()).await;
    let run = broker.run_with(setup);
    call(&run, "a", "echo", json!({ "note": NOTE })).await;
    for text in [large(NOTE), large(""), NOTE.to_owned()] {
        call(&run, "b", "wait", json!({ "calls": 1, "text": text })).await;
    }
    run.write_out();
    let lines = std::fs::read_to_string(path).expect("lines");
    let flows = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let flows = line["flows"].as_array();
        let bytes = flows.map(|flows| flows.iter().map(|flow| flow["bytes"].to_string()));
        let bytes = bytes.map(Vec::from_iter);
        format!("{} {}: {bytes:?}\n", line["event"], line["call"])
    };
    expect![[r#"
        "before" 1: None
        "after" 1: None
        "before" 2: Some(["null"])
        "after" 2: Some(["32"])
        "before" 3: Some(["null"])
        "after" 3: Some([])
        "before" 4: Some(["32"])
        "after" 4: None
    "#]]
    .assert_eq(&lines.lines().map(flows).collect::<String>());
    broker.shutdown().await;
}

#[test]
fn a_call_that_is_not_made_waits_too() {
    let mut setup = setup();
    let dry_run = DryRun::new().reads("*_echo").expect("a pattern");
    setup.dry_run = Some(Arc::new(dry_run));
    waits(setup, "withheld");
}

#[test]
fn who_is_asked_sees_what_was_found() {
    let rules = Rules::new(["*_echo"], ["b_*"], []).expect("patterns");
    let (asker, asked) = always(Answer::Once);
    waits(RunSetup::new(Arc::new(rules), asker), "ok");
    let asked = asked.all().into_iter().flat_map(|question| question.flows);
    let asked: Vec<String> = asked.map(|flow| flow.to_string()).collect();
    assert_eq!(asked, ["32 bytes of a.echo (call 1) go to b.wait"]);
}

#[test]
fn what_is_sent_is_looked_at_if_the_script_wrote_it_otherwise() {
    with_one_thread(async {
        let held = Held::run(setup(), NOTE).await;
        // A number that nobody would find as the script writes it.
        let noted = json!({ "note": 49_151_120 });
        call(&held.run, "a", "echo", noted).await;
        let text = format!(r#"{{"calls":1,"text":"{}","id":4915112e1}}"#, huge(""));
        let arguments = serde_json::value::RawValue::from_string(text).expect("JSON");
        let target = crate::support::target("b", "wait");
        let mut one = pin!(held.run.call(target, arguments, Default::default()));
        let waits = poll_fn(|context| Poll::Ready(one.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        held.give_thread();
        assert!(one.await.is_ok());
        held.check(expect![[r#"
            a_echo "ok" []
            a_echo "ok" []
            b_wait "ok" [Some(8)]"#]]);
        held.broker.shutdown().await;
    });
}

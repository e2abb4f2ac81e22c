//! Runs that change nothing.

use std::sync::Arc;

use callgate_gate::{Answer, DryRun, NoAsker};
use callgate_policy::{Pattern, Rules};
use callgate_schema::Declared;
use callgate_servers::Servers;
use expect_test::{Expect, expect};
use serde_json::json;

use crate::support::{Runs as _, always, decisions, go, in_time, odd, raw, setup, target};

#[tokio::test]
async fn dry_run_makes_only_read_only_calls() {
    for (trusted, expected) in [
        (
            true,
            expect![[r#"
                null
                ""
                {"made":"up"}
                flaky_bare was not called: denied by rule "flaky_bare" in permissions.deny; to allow it, change that rule
                ""
                flaky_empty Ok true
                flaky_text Ok true
                flaky_fails Recorded false
                flaky_bare Denied false
                flaky_structured Withheld false
                {"ordinal":3,"function":"flaky_fails","server":"flaky","tool":"fails","line":null,"arguments":{},"argumentBytes":2,"decision":"allowed by rule \"*\" in permissions.allow","recorded":true,"madeUp":false}
                {"ordinal":5,"function":"flaky_structured","server":"flaky","tool":"structured","line":null,"arguments":{},"argumentBytes":2,"decision":"allowed by rule \"*\" in permissions.allow","recorded":false,"madeUp":true}
            "#]],
        ),
        (
            false,
            expect![[r#"
                ""
                ""
                {"made":"up"}
                flaky_bare was not called: denied by rule "flaky_bare" in permissions.deny; to allow it, change that rule
                ""
                flaky_empty Withheld false
                flaky_text Ok true
                flaky_fails Recorded false
                flaky_bare Denied false
                flaky_structured Withheld false
                {"ordinal":1,"function":"flaky_empty","server":"flaky","tool":"empty","line":null,"arguments":{},"argumentBytes":2,"decision":"allowed by rule \"*\" in permissions.allow","recorded":false,"madeUp":true}
                {"ordinal":3,"function":"flaky_fails","server":"flaky","tool":"fails","line":null,"arguments":{},"argumentBytes":2,"decision":"allowed by rule \"*\" in permissions.allow","recorded":true,"madeUp":false}
                {"ordinal":5,"function":"flaky_structured","server":"flaky","tool":"structured","line":null,"arguments":{},"argumentBytes":2,"decision":"allowed by rule \"*\" in permissions.allow","recorded":false,"madeUp":true}
            "#]],
        ),
    ] {
        check_dry_run(trusted, expected).await;
    }
}

fn text_reads() -> DryRun {
    DryRun {
        reads: vec![Pattern::new("flaky_text").expect("a pattern")],
        ..DryRun::default()
    }
}

async fn check_dry_run(trusted: bool, expected: Expect) {
    let mut spec = odd("flaky");
    spec.trusted = trusted;
    let servers = in_time(Servers::connect(vec![spec])).await;
    let rules = Rules::builder()
        .allow("*")
        .deny("flaky_bare")
        .build()
        .expect("patterns");
    let mut setup = setup(Arc::new(rules), Arc::new(NoAsker));
    let mut dry_run = text_reads();
    let made_up = raw(json!({ "made": "up" }));
    dry_run.recorded.insert("flaky_fails".to_owned(), made_up);
    setup.options.dry_run = Some(Arc::new(dry_run));
    let run = servers.run_with(setup);
    let mut hinted = target("flaky", "empty");
    hinted.hints.read_only = Some(true);
    let mut text = String::new();
    for target in [
        hinted,
        target("flaky", "text"),
        target("flaky", "fails"),
        target("flaky", "bare"),
        target("flaky", "structured"),
    ] {
        text += &format!("{}\n", go(&run, target).await);
    }
    for line in run.ledger() {
        text += &format!(
            "{} {:?} {:?}\n",
            line.function,
            line.outcome,
            line.took_ms.is_some()
        );
    }
    for call in run.dispatcher.withheld() {
        text += &format!("{}\n", serde_json::to_string(&call).expect("JSON"));
    }
    expected.assert_eq(&text);
    servers.shut_down().await;
}

/// The run stops where a result cannot be made up, and a single call gets no made-up result.
#[tokio::test]
async fn dry_run_without_made_up_result_gives_error() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let mut typed = target("flaky", "counts");
    typed.output_schema = Some(Declared::new(
        json!({ "type": "string", "pattern": "^[A-Z]" }),
    ));
    for (target, one_call) in [(typed, false), (target("flaky", "empty"), true)] {
        let mut setup = setup(Arc::default(), Arc::new(NoAsker));
        setup.options.dry_run = Some(Arc::default());
        setup.options.one_call = one_call;
        let run = servers.run_with(setup);
        let said = go(&run, target).await;
        assert!(said.contains("was not called: this is a dry run"), "{said}");
        let withheld = run.dispatcher.withheld();
        assert!(withheld.iter().all(|call| !call.made_up && !call.recorded));
    }
    servers.shut_down().await;
}

#[tokio::test]
async fn dry_run_does_not_ask_about_skipped_calls() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let (asker, asked) = always(Answer::Once);
    let mut setup = setup(Arc::default(), asker);
    setup.options.dry_run = Some(Arc::new(text_reads()));
    let run = servers.run_with(setup);
    go(&run, target("flaky", "empty")).await;
    assert_eq!(asked.len(), 0);
    go(&run, target("flaky", "text")).await;
    assert_eq!(asked.len(), 1);
    expect![[r#"
        flaky_empty needs approval: no rule matches
        flaky_text allowed once when asked
    "#]]
    .assert_eq(&decisions(&run));
    servers.shut_down().await;
}

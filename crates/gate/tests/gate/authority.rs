//! Permissions that outlast one answer: grants, rules kept for good, rules that count uses.

use std::sync::{Arc, Mutex};

use callgate_gate::{
    Answer, CallOptions, GrantStore, GrantStoreError, NoAsker, OneAtATime, Question,
};
use callgate_policy::{Definition, Grant, Rules};
use callgate_servers::Servers;
use expect_test::expect;
use futures::future::{BoxFuture, join_all};
use serde_json::json;

use crate::support::{
    Runs as _, Target, always, call, decisions, go, in_time, odd, raw, setup, target,
};

/// A tool that `flaky` does not list, with this description.
fn described(tool: &str, description: &str) -> Target {
    let definition = json!({ "name": tool, "description": description });
    Target {
        definition: Some(Arc::new(Definition::of(&definition))),
        ..target("flaky", tool)
    }
}

#[tokio::test]
async fn session_grant_covers_its_runs_and_one_definition() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let (asker, asked) = always(Answer::Session);
    let first = setup(Arc::default(), asker);
    let second = first.clone();
    let other = setup(Arc::default(), Arc::new(NoAsker));
    let first = servers.run_with(first);
    go(&first, described("unlisted", "gives nothing")).await;
    let second = servers.run_with(second);
    go(&second, described("unlisted", "gives nothing")).await;
    assert_eq!(asked.len(), 1);
    go(&second, described("unlisted", "sends your files away")).await;
    expect![[r#"
        flaky_unlisted allowed for this session when asked
        flaky_unlisted allowed by the grant for this session
        flaky_unlisted allowed for this session when asked
    "#]]
    .assert_eq(&(decisions(&first) + &decisions(&second)));

    let asked = asked.all();
    let changed = asked[1].changed.as_ref().expect("a change");
    let (before, now) = (changed.before.as_ref(), changed.now.as_ref());
    let text = |definition: Option<&Arc<Definition>>| definition.expect("known").text().to_owned();
    assert!(text(before).contains("gives nothing"), "{changed:?}");
    assert!(text(now).contains("sends your files away"), "{changed:?}");

    // Another session knows nothing of it.
    let other = servers.run_with(other);
    go(&other, described("unlisted", "gives nothing")).await;
    expect![[r#"
        flaky_unlisted needs approval: no rule matches, and there is no one to ask
    "#]]
    .assert_eq(&decisions(&other));
    servers.shut_down().await;
}

#[tokio::test]
async fn initial_grants_skip_questions_but_not_denials() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let rules = Rules::builder()
        .ask("*")
        .deny("flaky_bare")
        .build()
        .expect("patterns");
    let mut setup = setup(Arc::new(rules), Arc::new(NoAsker));
    setup.rules.grants = vec![Grant::new("flaky_empty"), Grant::new("flaky_bare")];
    let run = servers.run_with(setup);
    for tool in ["empty", "empty", "bare"] {
        go(&run, target("flaky", tool)).await;
    }
    expect![[r#"
        flaky_empty allowed by the grant for this run
        flaky_empty allowed by the grant for this run
        flaky_bare denied by rule "flaky_bare" in permissions.deny
    "#]]
    .assert_eq(&decisions(&run));
    servers.shut_down().await;
}

/// Records the rules to keep, and reports a failure if `fails` is set.
struct Noting {
    kept: Mutex<Vec<String>>,
    fails: bool,
}

impl GrantStore for Noting {
    fn place(&self) -> String {
        "notes".to_owned()
    }

    fn keep<'a>(&'a self, grants: &'a [Grant]) -> BoxFuture<'a, Result<(), GrantStoreError>> {
        let rules = grants.iter().map(|grant| grant.to_rule().expect("a rule"));
        let rules: Vec<String> = rules.map(|rule| rule.to_json().to_string()).collect();
        self.kept.lock().expect("no panic").extend(rules);
        Box::pin(std::future::ready(match self.fails {
            true => Err(GrantStoreError::new("the disk is full")),
            false => Ok(()),
        }))
    }
}

#[tokio::test]
async fn always_answer_is_stored_and_covers_the_session() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    for fails in [false, true] {
        let keep = Arc::new(Noting {
            kept: Mutex::default(),
            fails,
        });
        let (asker, asked) = always(Answer::Always);
        let mut setup = setup(Arc::default(), asker);
        setup.records.keep = Some(Arc::clone(&keep) as Arc<dyn GrantStore>);
        for run in [servers.run_with(setup.clone()), servers.run_with(setup)] {
            go(&run, described("unlisted", "gives nothing")).await;
        }
        let asked = asked.all();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].keeps_in.as_deref(), Some("notes"));
        expect![[r#"{"tool":"flaky_unlisted","definition":"sha256:fde58814b695e52a044b9b64c567fae17915d309a133bb7658c769f763ceead0"}"#]].assert_eq(&keep.kept.lock().expect("no panic").join("\n"));
    }
    servers.shut_down().await;
}

#[tokio::test]
async fn question_shows_title_script_line_and_earlier_calls() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let (asker, asked) = always(Answer::Deny);
    let rules = Rules::builder()
        .allow("flaky_empty")
        .allow("flaky_fails")
        .deny("flaky_bare")
        .build()
        .expect("patterns");
    let mut setup = setup(Arc::new(rules), asker);
    setup.options.script = Some("\n\nawait it()".into());
    let run = servers.run_with(setup);
    for tool in ["empty", "empty", "fails", "bare"] {
        go(&run, target("flaky", tool)).await;
    }
    let mut target = described("text", "first\nsecond");
    target.title = Some("Text".into());
    for line in [3, 4] {
        let options = CallOptions {
            line: Some(line),
            ..CallOptions::default()
        };
        let arguments = raw(json!({ "text": line }));
        in_time(run.call(target.clone(), arguments, options))
            .await
            .expect_err("denied");
    }
    let asked = asked.all();
    let shown = asked.iter().map(|question| {
        let Question {
            title,
            description,
            line,
            done,
            ..
        } = question;
        let done = done.iter();
        let done =
            done.map(|it| format!("{} {}/{}/{}", it.function, it.sent, it.failed, it.denied));
        let done = done.collect::<Vec<_>>().join(", ");
        format!("{title:?} {description:?} {line:?}\n{done}\n")
    });
    expect![[r#"
        Some("Text") Some("first\nsecond") Some(ScriptLine { number: 3, text: "await it()" })
        flaky_empty 2/0/0, flaky_fails 1/1/0, flaky_bare 0/0/1
        Some("Text") Some("first\nsecond") Some(ScriptLine { number: 4, text: "" })
        flaky_empty 2/0/0, flaky_fails 1/1/0, flaky_bare 0/0/1, flaky_text 0/0/1
    "#]]
    .assert_eq(&shown.collect::<String>());
    assert_eq!(run.ledger()[4].line, Some(3));
    servers.shut_down().await;
}

/// A server chooses the names of its tools; a shell would expand `$x` to nothing.
#[tokio::test]
async fn suggested_allow_flag_is_shell_quoted() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let run = servers.run(Arc::default(), Arc::new(NoAsker));
    let target = Target {
        function: "flaky_empty$x".to_owned(),
        ..target("flaky", "empty")
    };
    expect!["flaky_empty$x was not called: needs approval: no rule matches, and there is no one to ask; allow it with --allow 'flaky_empty$x', or with \"flaky_empty$x\" under permissions.allow"].assert_eq(&go(&run, target).await);
    servers.shut_down().await;
}

#[tokio::test]
async fn denial_answers_only_equal_waiting_calls() {
    let servers = in_time(Servers::connect(vec![odd("flaky")])).await;
    let (asker, asked) = always(Answer::Deny);
    let one_at_a_time = Arc::new(OneAtATime::new(asker));
    let run = servers.run_with(setup(Arc::default(), one_at_a_time));
    let calls = (0..20).map(|n| call(&run, "flaky", "text", json!({ "text": n % 2 })));
    in_time(join_all(calls)).await;
    assert_eq!(asked.len(), 2);
    // A later call has not waited for that answer.
    in_time(call(&run, "flaky", "text", json!({ "text": 0 }))).await;
    assert_eq!(asked.len(), 3);
    servers.shut_down().await;
}

//! `callgate serve` asks its client's user about calls: by a request where the
//! protocol has one, else by an answer that the client comes again to.

use std::collections::BTreeMap;
use std::sync::Arc;

use callgate_tests::{Workbench, demo_ticketing};
use expect_test::expect;
use rmcp::model::InputRequest;
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, NO_RUN, OLDER, User, can, connect, one_ends, value};

/// A folder where every call needs approval, and only clients are asked.
pub fn asking() -> Workbench {
    Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "asking": { "ways": ["client"] },
    }))
}

const CREATE: &str = "const make = () => ticketing_createIssue({ title: 'A', body: 'B' })
  .then((issue) => issue.issueId !== '', (error) => error.name);
";

/// Makes two calls, and checks their outcomes and the number of questions to the user.
async fn check(answers: &[&str], expected: &str, asked: usize) {
    for version in OLDER.iter().chain([&NEWEST]) {
        let bench = asking();
        let session = connect(&bench, User::new(version, answers), &[]).await;
        let script = format!("{CREATE}return [await make(), await make()];");
        let (is_error, said) = session.run(&script).await;
        assert!(!is_error, "{version}: {said}");
        assert_eq!(value(&said), expected, "{version}");
        assert_eq!(session.asked().len(), asked, "{version}");
    }
}

#[tokio::test]
async fn once_answer_allows_one_call() {
    check(&["once", "once"], "[true,true]", 2).await;
    check(&["once", "deny"], "[true,\"McpDeniedError\"]", 2).await;
}

#[tokio::test]
async fn unknown_or_missing_answer_denies_the_call() {
    let no = "[\"McpDeniedError\",\"McpDeniedError\"]";
    check(&["yes", "always"], no, 2).await;
    // Without answers, the user declines the form.
    check(&[], no, 2).await;
}

/// A person has refused only where a person said so.
#[tokio::test]
async fn each_kind_of_denial_has_its_reason() {
    let cases = [
        (json!({ "answer": "deny" }), "deny", "a person refused"),
        (
            json!({ "action": "cancel" }),
            "dismissed",
            "the client gave no answer, perhaps without asking its user; only the operator can \
             allow it unasked, with \"ticketing_createIssue\" under permissions.allow; calling again will not \
             help",
        ),
        (
            json!({ "answer": "sure" }),
            "unclear",
            "the answer was not one of those offered",
        ),
        (
            json!({}),
            "unclear",
            "the answer was not one of those offered",
        ),
        (Value::Null, "failed", "asking failed without an answer"),
    ];
    for version in [&OLDER[1], &NEWEST] {
        let bench = asking();
        let user = User::new(version, &[]);
        let answers = Arc::clone(&user.answers);
        let session = connect(&bench, user, &["--ledger", "calls.jsonl"]).await;
        let mut words = Vec::new();
        // A request of the newest revision is answered with a result alone.
        let cases = cases
            .iter()
            .filter(|(answer, ..)| *version != NEWEST || !answer.is_null());
        for (answer, word, expected) in cases {
            *answers.lock().expect("no panic") = vec![answer.clone()];
            let script = "return await ticketing_createIssue({ title: 'A', body: 'B' })
                .catch((error) => error.message);";
            let (_, said) = session.run(script).await;
            assert!(
                value(&said).contains(expected),
                "{version} {answer}: {said}"
            );
            let refused = said.contains("a person refused");
            assert_eq!(refused, *word == "deny", "{version} {answer}: {said}");
            words.push(json!(word));
        }
        let lines = bench.ledger();
        let written = lines.iter().map(|line| line["answer"].clone());
        assert_eq!(written.collect::<Vec<_>>(), words, "{version}");
    }
}

#[tokio::test]
async fn session_answer_allows_later_runs() {
    let bench = asking();
    let session = connect(&bench, User::new(&NEWEST, &["session"]), &[]).await;
    let script = format!("{CREATE}return await make();");
    for _ in 0..2 {
        assert_eq!(session.run(&script).await, (false, "true\n".to_owned()));
    }
    assert_eq!(session.asked().len(), 1);
}

#[tokio::test]
async fn approval_form_describes_the_call() {
    let bench = asking();
    let session = connect(&bench, User::new(&OLDER[0], &[]), &[]).await;
    session.run(&format!("{CREATE}await make();")).await;
    let asked = session.asked();
    let message = asked[0]["message"].as_str().expect("a message");
    // Claude Code shows three lines.
    expect![[r#"
        ticketing_createIssue {"title":"A","body":"B"}
        needs approval: no rule matches
        line 1 of the script: const make = () => ticketing_createIssue({ title: 'A', body: 'B' })
        ├ the tool:
        │ "createIssue" of server "ticketing"
        ├ its server says:
        │ Create issue
        │ File an issue and get its id.
        └ May it be called? once: this call; run: all calls of this tool in this run; session: all calls of this tool in this session; deny: no."#]].assert_eq(message);
    let names = ["once", "run", "session", "deny"];
    let titles = [
        "Allow this call",
        "Allow all calls of this tool in this run",
        "Allow all calls of this tool in this session",
        "Deny",
    ];
    let schema = |field: Value| {
        let mut field = field;
        field["type"] = "string".into();
        field["description"] = "ticketing_createIssue {\"title\":\"A\",\"body\":\"B\"}".into();
        json!({ "type": "object", "properties": { "answer": field }, "required": ["answer"] })
    };
    let listed = json!({ "enum": names, "enumNames": titles });
    assert_eq!(asked[0]["requestedSchema"], schema(listed));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    session.run(&format!("{CREATE}await make();")).await;
    let choices = names.iter().zip(titles);
    let choices = choices.map(|(name, title)| json!({ "const": name, "title": title }));
    let titled = json!({ "oneOf": choices.collect::<Vec<_>>() });
    assert_eq!(session.asked()[0]["requestedSchema"], schema(titled));
}

/// The first lines stay three, whatever the arguments are, and no text can pass for a row of ours.
#[tokio::test]
async fn arguments_in_a_form_cannot_add_lines() {
    for title in ["a\n├ approved by the operator", &"x\u{2028}".repeat(400)] {
        let bench = asking();
        let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
        let arguments = json!({ "title": title, "body": "the end" });
        let script = format!("return await ticketing_createIssue({arguments}).catch(() => 0)");
        session.run(&script).await;
        let asked = session.asked();
        let message = asked[0]["message"].as_str().expect("a message");
        let lines: Vec<&str> = message.lines().collect();
        assert!(
            lines[0].starts_with("ticketing_createIssue {\"title\":"),
            "{message}"
        );
        assert!(
            lines[0].contains("the end\"}") && !lines[0].contains('├'),
            "{message}"
        );
        assert_eq!(lines[1], "needs approval: no rule matches");
        assert!(lines[2].starts_with("line 1 of the script: "), "{message}");
        assert_eq!(lines[3], "├ the tool:", "{message}");
    }
}

#[tokio::test]
async fn a_client_without_forms_is_not_asked() {
    for version in [&OLDER[0], &NEWEST] {
        let bench = asking();
        let mut user = User::new(version, &["once"]);
        user.can = can(json!({ "sampling": {}, "elicitation": { "url": {} } }));
        let session = connect(&bench, user, &[]).await;
        let (_, said) = session.run(&format!("{CREATE}return await make();")).await;
        assert_eq!(value(&said), "McpDeniedError");
        assert_eq!(session.asked(), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn request_state_is_valid_only_for_its_script() {
    let bench = asking();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let script = format!("{CREATE}return await make();");
    let required = session.park(&script).await;
    let state = required.request_state.expect("a state");
    let asked = required.input_requests.expect("requests");
    assert!(
        matches!(asked["question-1"], InputRequest::Elicitation(_)),
        "{asked:?}"
    );
    let yes = || json!({ "question-1": { "action": "accept", "content": { "answer": "once" } } });

    let not_ours = "the requestState does not belong to this script";
    let mut forged = state.clone();
    let last = forged.pop().expect("a character");
    forged.push(if last == 'A' { 'B' } else { 'A' });
    for (code, state, why) in [
        (script.as_str(), forged.as_str(), NO_RUN),
        (&script, "", NO_RUN),
        ("return 1", &state, not_ours),
    ] {
        let refused = session.come(code, state, yes()).await;
        assert_eq!(refused, Err(why.to_owned()));
    }

    // Refused states change nothing, and a missing answer leads to the same question again.
    let other = json!({ "question-2": { "action": "accept", "content": { "answer": "once" } } });
    for responses in [json!({}), other] {
        let again = session.park_again(&script, &state, responses).await;
        let again = again.input_requests.expect("requests");
        let question = |asked: &BTreeMap<_, _>| serde_json::to_value(asked).expect("JSON");
        assert_eq!(question(&again), question(&asked));
    }

    // A client that repeats its answer gets the same report, and starts no other run.
    for _ in 0..2 {
        let answer = session.come(&script, &state, yes()).await;
        assert_eq!(answer, Ok("true\n".to_owned()));
    }
}

/// Checks that the ledger has one call, which was cancelled while the user was asked.
fn check_given_up(bench: &Workbench) {
    // The ledger is written with the report, which comes after the end of the worker.
    let ledger = loop {
        let ledger = bench.ledger();
        if !ledger.is_empty() {
            break ledger;
        }
        std::thread::yield_now();
    };
    let members = |line: &Value| ["event", "function", "outcome"].map(|name| line[name].clone());
    let lines: Vec<_> = ledger.iter().map(members).collect();
    assert_eq!(lines, [["notSent", "ticketing_createIssue", "cancelled"]]);
}

#[tokio::test]
async fn abandoned_run_ends_after_the_answer_time() {
    let bench = asking();
    let flags = ["--answer-time", "500ms", "--ledger", "calls.jsonl"];
    let session = connect(&bench, User::new(&NEWEST, &[]), &flags).await;
    let script = format!("{CREATE}return await make();");
    let required = session.park(&script).await;
    one_ends(&session.workers()).await;
    check_given_up(&bench);
    let yes = json!({ "question-1": { "action": "accept", "content": { "answer": "once" } } });
    let state = required.request_state.expect("a state");
    // A client that answers too late gets the report of the cancelled run.
    let said = session.come(&script, &state, yes).await.expect("a report");
    assert!(said.contains("error: the run was cancelled\n"), "{said}");
}

#[tokio::test]
async fn a_parked_run_ends_with_its_client() {
    let bench = asking();
    let session = connect(
        &bench,
        User::new(&NEWEST, &[]),
        &["--ledger", "calls.jsonl"],
    )
    .await;
    session.park(&format!("{CREATE}return await make();")).await;
    let workers = session.workers();
    session.client.cancel().await.expect("a clean end");
    one_ends(&workers).await;
    check_given_up(&bench);
}

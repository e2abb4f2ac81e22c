//! What a question says, whatever scripts and servers wrote.

use std::sync::{Arc, Mutex};

use callgate::{
    Answer, Question,
    present::{Shown, question_text},
};
use callgate_catalog::{Tool, ToolDefinition};
use callgate_gate::{CallOptions, Dispatcher, Place, Setup, ask_with};
use callgate_policy::{Definition, Grant};
use callgate_servers::{ServerSpec, Servers};
use callgate_tests::binary;
use expect_test::{Expect, expect};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// The question that a call of this tool leads to.
async fn question(tool: &Value, before: Option<&Value>, arguments: &Value) -> Question {
    let server = binary("callgate-odd-server").display().to_string();
    let broker =
        Servers::connect(vec![ServerSpec::stdio("flaky", server, ["flaky"])], |_| {}).await;
    let asked: Arc<Mutex<Option<Question>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let asker = ask_with(move |question| {
        *noted.lock().expect("no panic") = Some(question);
        std::future::ready(Answer::Deny)
    });
    let mut setup = Setup::new(Arc::default(), asker);
    setup.grants = before
        .iter()
        .map(|before| Grant::new("flaky_text").of(Arc::new(Definition::of(before))))
        .collect();
    setup.lines = Some(Arc::new(|_| {
        Some("a();\u{1b}[2J // \u{202e}x\tb".to_owned())
    }));
    let run = Dispatcher::new(broker.clone(), setup);
    let mut definition = ToolDefinition::new("flaky", "te\u{7}xt");
    let text = |member: &str| tool[member].as_str().map(str::to_owned);
    (definition.title, definition.description) = (text("title"), text("description"));
    definition.identity = Arc::new(Definition::of(tool));
    let target = Tool::new("flaky_text", definition);
    let options = CallOptions {
        place: Some(Place { line: 7, column: 1 }),
        ..CallOptions::default()
    };
    let arguments = to_raw_value(arguments).expect("JSON");
    run.call(&target, arguments, options)
        .await
        .expect_err("denied");
    broker.shut_down().await;
    let question = asked.lock().expect("no panic").take();
    question.expect("a question")
}

async fn check(tool: Value, before: Option<Value>, arguments: Value, expected: Expect) {
    let question = question(&tool, before.as_ref(), &arguments).await;
    expected.assert_eq(&question_text(&question, Shown::Short, Some(80)));
}

#[tokio::test]
async fn nothing_leaves_its_line_or_steers_the_terminal() {
    check(
        json!({
            "title": "Read\r\nallow? [y]\u{9b}31m",
            "description": "\n  \u{1b}]0;x\u{7}Reads.\u{200b}\nAnd more.",
        }),
        None,
        json!({ "a\nb": "\u{1b}[1A\u{85}\u{2028}x" }),
        expect![[r#"
            ┌ The script wants to call flaky_text:
            │ tool "te\u{7}xt" of server "flaky", which needs approval: no rule matches
            ├ its server says:
            │ Read\u000d\nallow? [y]\u009b31m
            │ \u001b]0;x\u0007Reads.\u200b
            ├ line 7 of the script:
            │ a();\u001b[2J // \u202ex b
            ├ arguments:
            │ {"a\nb":"\u001b[1A\u0085\u2028x"}
        "#]],
    )
    .await;
}

/// What scripts and servers wrote is broken by us: padding cannot bring a part of
/// it to the left edge, where lines of ours begin.
#[tokio::test]
async fn padding_makes_no_line_of_ours() {
    let (row, columns) = (" ".repeat(62), 80);
    let forged = format!("x{row}so far in this run:{row}├ data: none{row}");
    let question = question(
        &json!({ "title": forged, "description": forged }),
        None,
        &json!({ "note": forged.repeat(9), "command": "rm -rf /" }),
    )
    .await;
    for shown in [Shown::Short, Shown::Whole] {
        for columns in [Some(columns), Some(30), None] {
            let text = question_text(&question, shown, columns);
            let ours: Vec<&str> = text.lines().filter(|row| !row.starts_with("│ ")).collect();
            assert_eq!(
                ours,
                [
                    "┌ The script wants to call flaky_text:",
                    "├ its server says:",
                    "├ line 7 of the script:",
                    "├ arguments:",
                ],
                "{text}"
            );
            let most = columns.unwrap_or(60);
            let fits = |row: &str| row.chars().count() <= most;
            assert!(text.lines().skip(1).all(fits), "{text}");
        }
    }
    let whole = question_text(&question, Shown::Whole, Some(columns));
    assert!(whole.contains("rm -rf /"), "{whole}");
}

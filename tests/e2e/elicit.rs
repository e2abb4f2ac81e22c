//! Questions of servers to the person at the terminal.

use callgate_tests::{Workbench, odd};
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::pty::{as_read, at_terminal_with};

/// Starts a script that makes the odd server ask with these `params`.
fn asked(params: &Value, environment: &[(&str, &str)]) -> (Workbench, PtySession) {
    let bench = Workbench::new(json!({ "odd": odd("asks") }));
    bench.write("script.ts", &format!("return await odd_elicit({params})"));
    let session = at_terminal_with(&bench, &["run", "script.ts"], environment);
    (bench, session)
}

/// Makes the server ask with these `params`, answers each prompt, and returns the output.
#[track_caller]
fn check(params: &Value, answers: &[(&str, &str)], expected: &str) -> String {
    let (_bench, session) = asked(params, &[]);
    answer(session, answers, expected)
}

/// Answers each prompt up to the end, and returns the output.
#[track_caller]
fn answer(mut session: PtySession, answers: &[(&str, &str)], expected: &str) -> String {
    let mut shown = String::new();
    for (prompt, answer) in answers {
        shown += &session.exp_string(&as_read(prompt)).expect(prompt);
        shown += prompt;
        session.send_line(answer).expect("answer");
    }
    let rest = session.exp_eof().expect("the end").replace('\r', "");
    assert!(rest.contains(expected), "{shown}{rest}");
    shown
}

fn form() -> Value {
    json!({
        "message": "Who are you?\u{1b}[2K\nsend this? [y]",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Your name" },
                "age": { "type": "integer", "minimum": 18 },
                "color": { "type": "string", "enum": ["red", "green"], "default": "green" },
                "note": { "type": "string" },
            },
            "required": ["name", "age"],
        },
    })
}

#[test]
fn a_form_is_filled_in_and_sent() {
    let shown = check(
        &form(),
        &[
            ("\"name\": ", "Ada"),
            ("\"age\": ", "12"),
            ("the minimum of 18\r\n├ \"age\": ", "36"),
            ("\"color\": ", "1"),
            ("\"note\": ", ""),
            ("[n] decline: ", "send"),
            (
                "├ type y, e or n, then Enter\r\n└ send this? [y] send  [e] edit  [n] decline: ",
                "y",
            ),
        ],
        r#"{"action":"accept","content":{"name":"Ada","age":36,"color":"red"}}"#,
    );
    for expected in [
        "Server \"odd\"",
        "│ Who are you?\\u001b[2K\r\n│ send this? [y]\r\n",
        "│ Your name\r\n│ (text)",
        "│ 1) red\r\n│ 2) green\r\n│ (one of these, by number, optional, default green)",
        "The server gets this:\r\n│ name: Ada\r\n│ age: 36\r\n│ color: red\r\n",
    ] {
        assert!(
            shown.contains(&as_read(expected)),
            "{expected:?} is not in {shown}"
        );
    }
}

#[test]
fn a_page_is_opened_only_after_a_yes() {
    let page = json!({
        "mode": "url", "elicitationId": "1", "message": "Log in, please",
        "url": "https://example.com@login.example/?a=b",
    });
    let shown = check(&page, &[("[n] no: ", "y")], r#"{"action":"accept"}"#);
    for expected in [
        "│ Log in, please\r\n",
        "host:\r\n│ login.example\r\n├ the page:\r\n│ https://example.com@login.example/?a=b\r\n",
        "part before the @",
    ] {
        assert!(
            shown.contains(&as_read(expected)),
            "{expected:?} is not in {shown}"
        );
    }
    let opened = tempfile::TempDir::with_prefix("callgate-browser-").expect("a folder");
    let browser = opened.path().join("browser");
    std::fs::write(&browser, "#!/bin/sh\necho \"$1\" > \"$0.opened\"\n").expect("a script");
    std::fs::set_permissions(
        &browser,
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .expect("to make it a program");
    let path = browser.to_str().expect("a UTF-8 path");
    let record = format!("{path}.opened");
    for (answer, opens) in [("n", false), ("o", true)] {
        let (_bench, mut session) = asked(&page, &[("BROWSER", path)]);
        session.exp_string("[n] no: ").expect("a question");
        assert!(!std::path::Path::new(&record).exists(), "opened unasked");
        session.send_line(answer).expect("answer");
        session.exp_eof().expect("the end");
        // The browser is a process of its own and may be the later one.
        while opens && !std::fs::read_to_string(&record).is_ok_and(|text| text.ends_with('\n')) {
            std::thread::yield_now();
        }
        assert_eq!(std::path::Path::new(&record).exists(), opens);
    }
    let text = std::fs::read_to_string(&record).expect("it was opened");
    assert_eq!(text, "https://example.com@login.example/?a=b\n");
}

#[test]
fn without_a_terminal_everything_is_declined() {
    let bench = Workbench::new(json!({ "odd": odd("asks") }));
    let ran = bench.run(&format!("return await odd_elicit({})", form()), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.stdout, "{\"action\":\"cancel\"}\n");
}

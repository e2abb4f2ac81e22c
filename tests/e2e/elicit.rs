//! Servers' questions to the person at the terminal, and what is said of work.

use std::time::{Duration, Instant};

use callgate_tests::{Workbench, odd};
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::pty::{as_read, at_terminal, at_terminal_with};

/// A script that has the odd server ask this.
fn asked(params: &Value, environment: &[(&str, &str)]) -> (Workbench, PtySession) {
    let bench = Workbench::new(json!({ "odd": odd("asks") }));
    bench.write("script.ts", &format!("return await odd_elicit({params})"));
    let session = at_terminal_with(&bench, &["run", "script.ts"], environment);
    (bench, session)
}

/// Has the server ask this, answers each prompt, and gives all that was shown.
#[track_caller]
fn check(params: &Value, answers: &[(&str, &str)], expected: &str) -> String {
    let (_bench, session) = asked(params, &[]);
    answer(session, answers, expected)
}

/// Answers each prompt up to the end, and gives all that was shown.
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
            ("name: ", "Ada"),
            ("age: ", "12"),
            ("of at least 18\r\n├ age: ", "36"),
            ("color: ", "1"),
            ("note: ", ""),
            ("[n] decline: ", "send"),
            (
                "├ type y, e or n, then Enter\r\n└ send this? [y] send  [e] fill it in again  \
                 [n] decline: ",
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
        "This is what the server gets:\r\n│ name: Ada\r\n│ age: 36\r\n│ color: red\r\n",
    ] {
        assert!(
            shown.contains(&as_read(expected)),
            "{expected:?} is not in {shown}"
        );
    }
}

/// So long that a key which is struck twice has come twice: the second time takes no default.
#[test]
fn the_next_field_is_asked_for_after_a_while() {
    let (_bench, mut session) = asked(&form(), &[]);
    session.exp_string("name: ").expect("the first field");
    let answered = Instant::now();
    session.send_line("Ada").expect("answer");
    session.exp_string("age: ").expect("the next field");
    assert!(answered.elapsed() >= Duration::from_millis(400));
    session.send_line("!no").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains(r#"{"action":"decline"}"#), "{rest}");
}

#[test]
fn answers_can_be_changed_before_they_are_sent() {
    check(
        &form(),
        &[
            ("name: ", "Ada"),
            ("age: ", "36"),
            ("color: ", ""),
            ("note: ", ""),
            ("[n] decline: ", "e"),
            ("name: ", "Grace"),
            ("age: ", "85"),
            ("color: ", ""),
            ("note: ", "a note"),
            ("[n] decline: ", "y"),
        ],
        r#"{"action":"accept","content":{"name":"Grace","age":85,"color":"green","note":"a note"}}"#,
    );
}

#[test]
fn a_form_can_be_declined_and_given_up() {
    check(&form(), &[("name: ", "!no")], r#"{"action":"decline"}"#);
    check(&form(), &[("name: ", "!cancel")], r#"{"action":"cancel"}"#);
    let answers = [
        ("name: ", "Ada"),
        ("age: ", "36"),
        ("color: ", ""),
        ("note: ", ""),
        ("[n] decline: ", "n"),
    ];
    check(&form(), &answers, r#"{"action":"decline"}"#);
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
        "what stands before the @ is no host",
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

/// Calls a tool that wants a page opened first, and gives all that was shown.
#[track_caller]
fn check_locked(answers: &[(&str, &str)], expected: &str) -> String {
    let bench = Workbench::new(json!({ "odd": odd("asks") }));
    bench.write("script.ts", "return await odd_locked({})");
    let session = at_terminal(&bench, &["run", "script.ts"]);
    answer(session, answers, expected)
}

#[test]
fn a_call_that_needs_a_page_is_made_again_when_the_user_is_back() {
    let answers = [
        ("[n] no: ", "open"),
        (
            "├ type o, y or n, then Enter\r\n└ open it? [o] open it in a browser  [y] I open it \
             myself  [n] no: ",
            "Y",
        ),
        ("give the call up: ", "x"),
        (
            "├ type y or n, then Enter\r\n└ done there? [y] yes, call  [n] give the call up: ",
            "y",
        ),
    ];
    let shown = check_locked(&answers, "open\n");
    for expected in [
        "Server \"odd\" wants you to open a page:\r\n│ (while it works on \"locked\")\r\n",
        "│ Unlock the door, please\r\n├ its host:\r\n│ door.example\r\n",
        "This tool is called again when you are done at the page:\r\n│ \"locked\"\r\n",
    ] {
        assert!(
            shown.contains(&as_read(expected)),
            "{expected:?} is not in {shown}"
        );
    }
    check_locked(
        &[("[n] no: ", "n")],
        "McpProtocolError: the door is locked; the user declined to open its page",
    );
    check_locked(
        &[("[n] no: ", "y"), ("give the call up: ", "n")],
        "McpProtocolError: the door is locked; the user gave its page up",
    );
}

#[test]
fn without_a_terminal_the_error_lists_the_pages() {
    let bench = Workbench::new(json!({ "odd": odd("asks") }));
    let script = "try { await odd_locked({}); } catch (error: any) {
                    return [error.code, error.data.elicitations[0].url, error.message];
                  }";
    let ran = bench.run(script, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(
        ran.json(),
        json!([
            -32042,
            "https://door.example/open",
            "the door is locked; there is nobody to ask, so open \"https://door.example/open\" and \
             call again",
        ])
    );
}

#[test]
fn without_a_terminal_everything_is_declined() {
    let bench = Workbench::new(json!({ "odd": odd("asks") }));
    let ran = bench.run(&format!("return await odd_elicit({})", form()), &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.stdout, "{\"action\":\"decline\"}\n");
}

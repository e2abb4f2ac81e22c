//! `callgate questions`: a question of one process is answered in another terminal.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use callgate_tests::{Workbench, demo_ticketing};
use rexpect::process::Signal;
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::pty::{at_terminal, at_terminal_with};

/// A run that asks about a new issue with this title.
fn waiting(title: &str) -> (Workbench, PtySession) {
    let bench = Workbench::asking();
    bench.write(
        "script.ts",
        &format!(
            "try {{ return (await ticketing_createIssue({{ title: '{title}' }})).title + ' made'; }}
            catch (error) {{ return error.name; }}"
        ),
    );
    let mut run = at_terminal(&bench, &["run", "script.ts"]);
    run.exp_string("[n] no: ").expect("a question");
    (bench, run)
}

/// `callgate questions` at a terminal, once it shows its first question.
fn shown(bench: &Workbench) -> PtySession {
    let mut session = at_terminal(bench, &["questions"]);
    session.exp_string("question of run r-").expect("the run");
    session.exp_string("createIssue").expect("the function");
    session.exp_string("[n] no: ").expect("the whole question");
    session
}

#[test]
fn question_is_answered_at_another_terminal() {
    for (typed, said, expected) in [
        ("yes", "allowed once", "ferry made"),
        ("no the pier is closed", ": denied", "McpDeniedError"),
    ] {
        let (bench, mut run) = waiting("ferry");
        let mut other = shown(&bench);
        other.send_line(typed).expect("answer");
        other.exp_string("callgate questions").expect("the way");
        other.exp_string(said).expect("the answer");
        other.exp_eof().expect("the end");
        run.exp_string("answered elsewhere by").expect("a remark");
        let rest = run.exp_eof().expect("the end");
        assert!(rest.contains(expected), "{rest}");
    }
}

#[test]
fn second_answerer_learns_who_was_first() {
    for is_owner_first in [true, false] {
        let (bench, mut run) = waiting("tram");
        let (mut one, mut two) = (shown(&bench), shown(&bench));
        if is_owner_first {
            run.send_line("y").expect("answer");
            one.exp_string("at the terminal of run r-")
                .expect("the way");
        } else {
            one.send_line("y").expect("answer");
            run.exp_string("answered elsewhere by").expect("a remark");
        }
        two.exp_string("answered by").expect("the first answer");
        two.exp_string("ago: allowed once").expect("its choice");
        two.exp_eof().expect("the end");
        let rest = run.exp_eof().expect("the end");
        assert!(rest.contains("tram made"), "{rest}");
    }
}

#[test]
fn question_of_a_killed_process_is_withdrawn() {
    let (bench, mut run) = waiting("barge");
    let mut other = shown(&bench);
    run.process_mut().kill(Signal::SIGKILL).expect("a signal");
    let why = "the process of the run ended";
    other.exp_string(why).expect("the reason");
    other.exp_eof().expect("the end");
    let ran = bench.callgate(&["questions", "--json"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "[]"));
}

#[test]
fn open_questions_are_listed_without_a_terminal() {
    for title in ["canoe", "sledge"] {
        let (bench, mut run) = waiting(title);
        let ran = bench.callgate(&["questions"]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stdout.contains(title), "{ran:#?}");
        assert!(ran.stderr.contains("at a terminal"), "{ran:#?}");
        let ran = bench.callgate(&["questions", "--json"]);
        let listed = ran.json();
        assert_eq!(listed[0]["function"], "ticketing_createIssue");
        let arguments = listed[0]["texts"]["arguments"].as_str();
        assert!(arguments.is_some_and(|it| it.contains(title)), "{listed}");
        run.send_line("n").expect("answer");
        run.exp_eof().expect("the end");
        let ran = bench.callgate(&["questions"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    }
}

#[test]
fn arguments_are_changed_in_an_editor() {
    for (title, editor) in [
        ("kayak", "sed -i s/kayak/raft/"),
        ("buggy", "sed -i s/buggy/raft/"),
    ] {
        let (bench, mut run) = waiting(title);
        let environment = [("VISUAL", ""), ("EDITOR", editor)];
        let mut other = at_terminal_with(&bench, &["questions"], &environment);
        other.exp_string("[n] no: ").expect("a question");
        other.send_line("e").expect("a key");
        other
            .exp_string("send the call with them?")
            .expect("the change");
        other.exp_string("[n] no: ").expect("the whole prompt");
        other.send_line("y").expect("answer");
        other
            .exp_string("with other arguments")
            .expect("the answer");
        other.exp_eof().expect("the end");
        let rest = run.exp_eof().expect("the end");
        assert!(rest.contains("raft made"), "{rest}");
    }
}

/// A program that gives one request this answer: its URL, and the question.
pub(crate) fn webhook(answer: &'static str) -> (String, Receiver<Value>) {
    let (question, asked) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let mut read = BufReader::new(stream.try_clone().expect("a stream"));
        let mut length = 0;
        loop {
            let mut line = String::new();
            read.read_line(&mut line).expect("a line");
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().expect("a number");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        read.read_exact(&mut body).expect("the body");
        let body = serde_json::from_slice(&body).expect("JSON");
        question.send(body).expect("a test that waits");
        let length = answer.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream
            .write_all(format!("{head}{answer}").as_bytes())
            .expect("the answer");
    });
    (format!("http://{address}/"), asked)
}

#[test]
fn webhook_answers_for_a_run_without_terminal() {
    for (answer, expected) in [
        (r#"{"answer":"allow"}"#, "made"),
        (
            r#"{"answer":"deny","reason":"frozen until Monday"}"#,
            "frozen until Monday",
        ),
        (r#"{"answer":"ask"}"#, "was not called"),
    ] {
        let (url, _asked) = webhook(answer);
        let bench = Workbench::with_config(json!({
            "mcpServers": { "ticketing": demo_ticketing() },
            "asking": { "ways": ["webhook"],
                        "webhook": { "url": url, "secret": "whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0" } },
        }));
        let script = "return await ticketing_createIssue({ title: 'A' })
            .then(() => 'made', (error) => error.message);";
        let ran = bench.run(script, &[]);
        assert!(ran.stdout.contains(expected), "{ran:#?}");
    }
}

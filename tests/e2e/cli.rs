//! The command line as a newcomer meets it: exit codes and messages.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use callgate_tests::{Ran, Workbench, demo_ticketing, odd, workers};
use expect_test::Expect;
use serde_json::json;

/// Checks the exit code and the output, without the temporary folder's name.
#[track_caller]
pub(crate) fn check(bench: &Workbench, ran: &Ran, expected: Expect) {
    let folder = bench.path().display().to_string();
    let said = format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        ran.code, ran.stdout, ran.stderr
    );
    expected.assert_eq(&said.replace(&folder, "$FOLDER"));
}

/// Checks the exit code of a command, and phrases of its output.
#[track_caller]
pub(crate) fn check_output(bench: &Workbench, command: &str, code: i32, phrases: &[&str]) {
    let ran = bench.callgate(&command.split(' ').collect::<Vec<_>>());
    let output = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, code, "{command}: {output}");
    for phrase in phrases {
        assert!(
            output.contains(phrase),
            "{command}: {phrase:?} is not in {output}"
        );
    }
}

pub(crate) fn ticketing() -> Workbench {
    Workbench::new(json!({ "ticketing": demo_ticketing() }))
}

#[test]
fn help_of_each_command_lists_exit_codes() {
    let bench = Workbench::empty();
    for command in [
        "run",
        "check",
        "types",
        "tools",
        "search",
        "call",
        "serve",
        "export",
        "auth",
        "ledger",
        "runs",
        "questions",
    ] {
        let ran = bench.callgate(&[command, "--help"]);
        assert!(ran.stdout.contains("Exit codes"), "{}", ran.stdout);
    }
    let ran = bench.callgate(&["completions", "zsh"]);
    assert!(ran.stdout.contains("#compdef callgate"), "{ran:#?}");
}

#[test]
fn misspelled_tool_name_suggests_the_right_name() {
    let bench = ticketing();
    let suggestion = r#"did you mean "ticketing_createIssue"? `callgate tools`"#;
    for command in ["types ticketing_createIsue", "call ticketing_createIsue {}"] {
        check_output(&bench, command, 2, &[suggestion]);
    }
    let several = "types ticketing_createIsue ticketing_listIssues x";
    check_output(
        &bench,
        several,
        2,
        &[suggestion, r#""x"; `callgate tools`"#],
    );
}

#[test]
fn call_command_prints_result_or_tool_error() {
    let bench = ticketing();
    for (arguments, code, phrase) in [
        (r#"{"title":"Mine"}"#, 0, r#"{"issueId":"ISSUE-1","url":"#),
        (r#"{"title":"\t"}"#, 1, "an issue needs a title"),
    ] {
        let command = format!("call ticketing_createIssue {arguments}");
        check_output(&bench, &command, code, &[phrase]);
    }
}

/// `head` reads one line and ends: no panic, no message.
#[test]
fn closed_output_pipe_ends_run_without_error() {
    let bench = Workbench::empty();
    bench.write(
        "script.ts",
        "for (let i = 0; i < 100_000; i++) console.log(i)",
    );
    let mut child = start(&bench, &["run", "script.ts", "--output", "64MiB"]);
    let mut stdout = child.stdout.take().expect("a piped stdout");
    let mut first = [0; 2];
    stdout.read_exact(&mut first).expect("the first line");
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().expect("the end"));
    assert_eq!((&first, ran.code, ran.stderr.as_str()), (b"0\n", 0, ""));
}

#[test]
fn each_run_outcome_has_its_exit_code() {
    let bench = Workbench::new(json!({ "odd": odd("flaky"), "exits": odd("exits") }));
    for (script, code) in [
        ("return 1", 0),
        ("throw new Error('x')", 1),
        ("const = 1", 1),
        ("await odd_fails({})", 1),
        ("while (true) {}", 4),
        ("await exits_x({})", 5),
    ] {
        let ran = bench.run(script, &["--timeout", "300ms"]);
        assert_eq!(ran.code, code, "{script}: {ran:#?}");
    }
    assert_eq!(bench.callgate(&["run"]).code, 2);
}

/// A command cancelled before all servers have started still ends in a report, or in one message
/// if the command makes no reports.
#[test]
fn ctrl_c_during_server_start_cancels_the_command() {
    for command in ["run", "check"] {
        let ran = interrupted(&[command, "script.ts", "--json"]);
        assert_eq!(ran.code, 130, "{ran:?}");
        let report = ran.json();
        let end = [&report["status"], &report["error"]["message"]];
        assert_eq!(
            end,
            ["cancelled", "cancelled; nothing was run"],
            "{command}"
        );
    }
    let unlisted = "the command was cancelled while servers started";
    for (command, said) in [
        (
            &["call", "slow_x"][..],
            "slow_x was cancelled before it was sent",
        ),
        (&["tools"], unlisted),
        (&["types"], unlisted),
    ] {
        let ran = interrupted(command);
        let end = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(end, (130, "", format!("error: {said}\n").as_str()));
    }
}

/// The worker's parser would take hours for this script.
#[test]
fn ctrl_c_during_script_parsing_cancels_the_run() {
    let bench = Workbench::new(json!({}));
    let levels = format!("f({}1{})", "<T>[".repeat(40), "]".repeat(40));
    bench.write("script.ts", &levels);
    let child = start(&bench, &["run", "script.ts", "--json"]);
    while workers(child.id()).is_empty() {
        std::thread::yield_now();
    }
    let ran = interrupt(child);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert_eq!(ran.json()["error"]["message"], "cancelled; nothing was run");
}

/// The exit code and output of a command on Ctrl-C while its server starts.
fn interrupted(command: &[&str]) -> Ran {
    let begin = "echo > started; exec cat > /dev/null";
    let slow = json!({ "slow": { "command": "sh", "args": ["-c", begin] } });
    let bench = Workbench::new(slow);
    bench.write("script.ts", "await slow_x({})");
    let started = bench.path().join("started");
    let made = Command::new("mkfifo").arg(&started).status();
    assert!(made.expect("start mkfifo").success());
    let child = start(&bench, command);
    // The read ends when the server has started; the server then stays silent.
    assert_eq!(std::fs::read(started).expect("a line"), b"\n");
    interrupt(child)
}

fn start(bench: &Workbench, command: &[&str]) -> Child {
    let mut command = bench.command(command);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.expect("start callgate")
}

/// Sends SIGINT to a command and waits for its end.
pub(crate) fn interrupt(child: Child) -> Ran {
    let pid = i32::try_from(child.id()).expect("a process id");
    // SAFETY: a system call with numbers; the process is ours and not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    Ran::from(child.wait_with_output().expect("wait for callgate"))
}

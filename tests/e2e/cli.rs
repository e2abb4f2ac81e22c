//! The command line as a newcomer meets it: exit codes and messages.

use std::io::Read as _;
use std::process::Stdio;

use callgate_tests::{Ran, Workbench, fixture, odd};
use expect_test::{Expect, expect};
use serde_json::json;

/// The exit code and everything printed, with the temporary folder's name out
/// of it.
#[track_caller]
fn check(bench: &Workbench, ran: &Ran, expected: Expect) {
    let folder = bench.path().display().to_string();
    let said = format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        ran.code, ran.stdout, ran.stderr
    );
    expected.assert_eq(&said.replace(&folder, "$FOLDER"));
}

fn ticketing() -> Workbench {
    Workbench::new(json!({ "ticketing": fixture("callgate-demo-ticketing", &[]) }))
}

#[test]
fn no_configuration() {
    let bench = Workbench::empty();
    check(&bench, &bench.callgate(&["tools"]), expect![[""]]);
}

#[test]
fn a_script_needs_no_configuration() {
    let bench = Workbench::empty();
    let ran = bench.run("console.log('hello', [1, { a: 2 }]); return 'done'", &[]);
    check(&bench, &ran, expect![[""]]);
}

#[test]
fn a_named_configuration_that_is_not_there() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["tools", "--config", "nope.json"]),
        expect![[""]],
    );
}

#[test]
fn a_configuration_with_mistakes() {
    let bench = Workbench::empty();
    bench.write(
        "callgate.json",
        "{\n  // a comment\n  \"mcpServers\": {\n    \"git\": { \"commnad\": \"mcp-server-git\" },\n    \"web\": { \"type\": \"sse\", \"url\": \"http://127.0.0.1:1/sse\" },\n    \"db\": { \"command\": \"db\", \"env\": { \"TOKEN\": \"${CALLGATE_UNSET}\" } }\n  }\n}\n",
    );
    check(&bench, &bench.callgate(&["tools"]), expect![[""]]);
}

#[test]
fn a_configuration_that_is_not_json() {
    let bench = Workbench::empty();
    bench.write("callgate.json", "{ \"mcpServers\": ");
    check(&bench, &bench.callgate(&["tools"]), expect![[""]]);
}

#[test]
fn a_missing_script() {
    let bench = Workbench::empty();
    check(&bench, &bench.callgate(&["run", "nope.ts"]), expect![[""]]);
}

#[test]
fn an_unknown_command() {
    let bench = Workbench::empty();
    check(&bench, &bench.callgate(&["rnu", "x.ts"]), expect![[""]]);
}

#[test]
fn a_limit_that_is_no_time() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["run", "-", "--timeout", "soon"]),
        expect![[""]],
    );
}

#[test]
fn an_allowed_pattern_that_matches_nothing() {
    let bench = ticketing();
    check(
        &bench,
        &bench.run("return 1", &["--allow", "tickting_*"]),
        expect![[""]],
    );
}

#[test]
fn an_allowed_pattern_that_is_none() {
    let bench = ticketing();
    check(
        &bench,
        &bench.run("return 1", &["--allow", "ticketing-*"]),
        expect![[""]],
    );
}

#[test]
fn a_typo_in_a_tools_name() {
    let bench = ticketing();
    check(
        &bench,
        &bench.run("await ticketing_createIsue({ title: 'a' })", &[]),
        expect![[""]],
    );
    check(
        &bench,
        &bench.callgate(&["types", "ticketing_createIsue"]),
        expect![[""]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIsue", "{}"]),
        expect![[""]],
    );
}

#[test]
fn a_tool_called_by_hand() {
    let bench = ticketing();
    let ran = bench.callgate(&["call", "ticketing_createIssue", "{\"title\": \"By hand\"}"]);
    check(&bench, &ran, expect![[""]]);
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIssue", "{}"]),
        expect![[""]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIssue", "[1]"]),
        expect![[""]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIssue", "{"]),
        expect![[""]],
    );
}

#[test]
fn tools_are_listed_by_server() {
    let bench = Workbench::new(json!({
        "ticketing": fixture("callgate-demo-ticketing", &[]),
        "logging": fixture("callgate-demo-logging", &[]),
    }));
    check(&bench, &bench.callgate(&["tools"]), expect![[""]]);
}

#[test]
fn the_declarations_of_one_tool() {
    let bench = Workbench::new(json!({ "logging": fixture("callgate-demo-logging", &[]) }));
    check(
        &bench,
        &bench.callgate(&["types", "logging_getLogs"]),
        expect![[""]],
    );
}

#[test]
fn what_a_script_would_call() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_list*"] },
    }));
    bench.write(
        "script.ts",
        "const { issues } = await ticketing_listIssues();\n\
         if (!issues.length) await ticketing_createIssue({ title: 'first' });\n\
         await ticketing_closeIssue({});\n",
    );
    check(
        &bench,
        &bench.callgate(&["check", "script.ts"]),
        expect![[""]],
    );
    let allowed = ["check", "script.ts", "--allow", "ticketing_create*"];
    check(&bench, &bench.callgate(&allowed), expect![[""]]);
}

#[test]
fn a_call_that_no_rule_allows_is_denied_without_a_terminal() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
    }));
    let script = "console.log('before');\nawait ticketing_createIssue({ title: 'a' });";
    let ran = bench.run(script, &[]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let ran = bench.run(script, &["--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "before\n"), "{ran:#?}");
    let ran = bench.run(script, &["--allow", "ticketing_*"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "before\n"), "{ran:#?}");
}

#[test]
fn deny_wins_over_every_flag() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "deny": ["ticketing_create*"] },
    }));
    let script = "await ticketing_createIssue({ title: 'a' })";
    let ran = bench.run(script, &["--yes", "--allow", "ticketing_createIssue"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.stderr.contains("permissions.deny"), "{ran:#?}");
}

/// `head` takes one line and goes: no panic, no message.
#[test]
fn a_reader_that_goes_away() {
    let bench = Workbench::empty();
    bench.write(
        "script.ts",
        "for (let i = 0; i < 100_000; i++) console.log(i)",
    );
    let mut child = bench
        .command(&["run", "script.ts", "--output", "64MiB"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let mut stdout = child.stdout.take().expect("a piped stdout");
    let mut first = [0; 2];
    stdout.read_exact(&mut first).expect("the first line");
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().expect("the end"));
    assert_eq!((&first, ran.code, ran.stderr.as_str()), (b"0\n", 0, ""));
}

#[test]
fn output_over_the_limit_keeps_head_and_tail() {
    let bench = Workbench::empty();
    let script = "for (let i = 0; i < 1000; i++) console.log('line', i, 'ü'.repeat(5))";
    check(
        &bench,
        &bench.run(script, &["--output", "200B"]),
        expect![[""]],
    );
}

#[test]
fn completions_are_written_for_each_shell() {
    let bench = Workbench::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = bench.callgate(&["completions", shell]);
        assert!(
            ran.code == 0 && ran.stdout.contains("callgate"),
            "{shell}: {ran:#?}"
        );
    }
}

#[test]
fn each_end_has_its_exit_code() {
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

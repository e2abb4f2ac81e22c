//! Scripts and calls as programs of a shell: arguments, standard input, exit codes.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use callgate_tests::{Ran, Workbench, host, odd, profile_dir};
use serde_json::{Value, json};

use crate::cli::{interrupt, ticketing};
use crate::pty::at_terminal;

/// The value that a run returns.
#[track_caller]
fn value(ran: &Ran) -> Value {
    let report = ran.json();
    assert_eq!(report["status"], "completed", "{ran:#?}");
    report["value"]["json"].clone()
}

/// Runs `callgate` with a file of these bytes as standard input.
fn with_input(bench: &Workbench, arguments: &[&str], input: &[u8]) -> Ran {
    let path = bench.path().join("input");
    std::fs::write(&path, input).expect("write the input");
    let mut command = bench.command(arguments);
    command.stdin(File::open(path).expect("the input"));
    command.output().expect("start callgate").into()
}

/// A program, to be run in the folder with the environment of `callgate`.
fn program(bench: &Workbench, name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .current_dir(bench.path())
        .env("XDG_CACHE_HOME", bench.cache())
        .env("XDG_STATE_HOME", bench.state())
        .stdin(Stdio::null());
    command
}

#[test]
fn words_after_the_script_are_its_arguments() {
    let bench = Workbench::empty();
    bench.write(
        "args.ts",
        "const all: readonly string[] = mcp.args; return [...all]",
    );
    for (words, expected) in [
        (&["args.ts"][..], json!([])),
        (
            &["args.ts", "a", "--timeout", "5s", "b c"],
            json!(["a", "b c"]),
        ),
        (
            &["args.ts", "--", "--timeout", "-", "--", ""],
            json!(["--timeout", "-", "--", ""]),
        ),
        (&["--", "args.ts", "--json"], json!(["--json"])),
        (&["args.ts", "1", "--dry-run"], json!(["1"])),
        (
            &["-e", "return mcp.args", "args.ts", "é"],
            json!(["args.ts", "é"]),
        ),
        (
            &["--eval", "return mcp.args", "--", "", "-e"],
            json!(["", "-e"]),
        ),
    ] {
        let ran = bench.callgate(&[&["run", "--json", "--check=require"], words].concat());
        assert_eq!(value(&ran), expected, "{words:?}");
    }
    let ran = bench.callgate(&["run", "args.ts", "--zzz"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("-- --zzz"), "{ran:#?}");
}

#[test]
fn granted_run_keeps_its_arguments() {
    let bench = Workbench::empty();
    bench.write("args.ts", "console.log('given: ' + mcp.args.join(' and '))");
    for words in [["x", "--grant", "y"], ["--grant", "x", "y"]] {
        let mut session = at_terminal(&bench, &[&["run", "args.ts"], &words[..]].concat());
        session.exp_string("given: x and y").expect("the arguments");
        session.exp_eof().expect("the end");
    }
}

#[test]
fn script_with_interpreter_line_is_a_program() {
    let bench = Workbench::empty();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", profile_dir().display());
    for (flags, words, expected) in [
        ("--json", &["a", "b=1"][..], json!(["a", "b=1"])),
        ("--json --", &["--json", "-v"], json!(["--json", "-v"])),
    ] {
        let text = format!("#!/usr/bin/env -S callgate run {flags}\nreturn mcp.args\n");
        let script = bench.write("report.ts", &text);
        std::fs::set_permissions(script, Permissions::from_mode(0o755)).expect("its mode");
        let mut command = program(&bench, "./report.ts");
        let output = command.env("PATH", &path).args(words).output();
        assert_eq!(value(&output.expect("start it").into()), expected);
    }
}

#[test]
fn standard_input_is_read_if_named() {
    let bench = Workbench::empty();
    bench.write(
        "count.ts",
        "return mcp.stdin.trim().split('\\n').length + mcp.args.length",
    );
    let ran = with_input(&bench, &["run", "count.ts", "x", "--json"], b"a\nb\nc\n");
    assert_eq!(value(&ran), 4);
    let code = "const { stdin } = mcp; return [stdin, stdin.length]";
    let ran = with_input(
        &bench,
        &["run", "--json", "-e", code],
        "é\u{feff}€".as_bytes(),
    );
    assert_eq!(value(&ran), json!(["é\u{feff}€", 3]));
    // The script itself, or nothing, is on standard input.
    let report = bench.report("return [mcp.stdin]", &[]);
    assert_eq!(report["value"]["json"], json!([""]), "{report:#}");
    assert_eq!(
        value(&bench.callgate(&["run", "--json", "-e", code])),
        json!(["", 0])
    );
}

#[test]
fn standard_input_is_left_to_a_shell_loop() {
    let bench = Workbench::empty();
    bench.write("lines.txt", "one\ntwo\n");
    let line = "while read -r word; do \"$0\" run -e \"$SCRIPT\" \"$word\"; done < lines.txt";
    for (script, expected) in [
        (
            "console.log(mcp.args[0], 'stdin')",
            "one stdin\ntwo stdin\n",
        ),
        ("console.log(mcp.args[0], mcp.stdin.trim())", "one two\n"),
    ] {
        let mut command = program(&bench, "sh");
        command
            .args(["-c", line])
            .arg(host::program())
            .env("SCRIPT", script);
        let ran = Ran::from(command.output().expect("start a shell"));
        assert_eq!(ran.stdout, expected, "{ran:#?}");
    }
}

#[test]
fn unusable_standard_input_is_refused() {
    let bench = Workbench::empty();
    for (input, part) in [
        (&b"ok \xff"[..], "not UTF-8 text (byte 4)"),
        (&b"\xf0\x9f"[..], "not UTF-8 text (byte 1)"),
        (&vec![b'x'; (16 << 20) + 1], "longer than 16 MiB"),
    ] {
        let ran = with_input(&bench, &["run", "-e", "return mcp.stdin.length"], input);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let most = vec![b'x'; 16 << 20];
    let ran = with_input(
        &bench,
        &["run", "--json", "-e", "return mcp.stdin.length"],
        &most,
    );
    assert_eq!(value(&ran), 16 << 20);
}

#[test]
fn ctrl_c_ends_the_wait_for_standard_input() {
    let bench = Workbench::empty();
    let mut command = bench.command(&["run", "--json", "-e", "return mcp.stdin"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("start callgate");
    let mut stdin = child.stdin.take().expect("a pipe");
    // More than a pipe holds, so that the command is reading when all is written.
    stdin.write_all(&vec![b'x'; 1 << 20]).expect("write");
    let ran = interrupt(child);
    drop(stdin);
    assert_eq!(ran.code, 130, "{ran:#?}");
    assert_eq!(ran.json()["status"], "cancelled");
}

#[test]
fn pairs_of_a_call_follow_the_schema() {
    let bench = Workbench::new(json!({ "odd": odd("many") }));
    let call = ["call", "odd_search_records_7"];
    let pairs = ["query=17", "project=x=y", "page=4", "labels:=[]"];
    let ran = bench.callgate(&[&call[..], &pairs[..]].concat());
    // The tool answers with its arguments.
    let title = &ran.json()["records"][0]["title"];
    let sent: Value = serde_json::from_str(title.as_str().expect("a title")).expect("JSON");
    let expected = json!({ "query": "17", "project": "x=y", "page": 4, "labels": [] });
    assert_eq!(sent, expected);
}

#[test]
fn wrong_arguments_of_a_call_are_not_sent() {
    let mut server = odd("many");
    let bench = Workbench::empty();
    let sent = bench.path().join("sent");
    server["env"] = json!({ "CALLS": sent });
    let config = json!({ "mcpServers": { "odd": server }, "permissions": { "allow": ["*"] } });
    bench.write("callgate.json", &config.to_string());
    for (words, parts) in [
        (
            &[r#"{"query":"a","projekt":"b"}"#][..],
            &["\"projekt\"; did you mean \"project\"?"][..],
        ),
        (&["query=a", "project=b", "page=0"], &["/page: "]),
        (
            &["query=a", "project=b", "page=soon"],
            &["/page: ", "\"integer\""],
        ),
        (
            &[r#"{"query":7,"project":"b"}"#],
            &["/query: ", "\"string\""],
        ),
        (&[], &["\"query\" is a required property"]),
        (&["query"], &["\"query\" is no pair", "path=README.md"]),
    ] {
        let ran = bench.callgate(&[&["call", "odd_search_records_7"], words].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        for part in parts {
            assert!(ran.stderr.contains(part), "{part}: {ran:#?}");
        }
    }
    assert!(!sent.exists());
}

#[test]
fn wrong_arguments_end_a_call_before_its_question() {
    let bench = Workbench::asking();
    let ran = bench.callgate(&["call", "ticketing_createIssue", "titles=x"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let said = "ticketing_createIssue was not called: there is no argument \"titles\"";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    let ran = bench.callgate(&["call", "ticketing_createIssue", "title=x"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
}

#[test]
fn arguments_over_the_limit_are_refused() {
    let bench = ticketing();
    let long = format!(r#"{{"title":"{}"}}"#, "x".repeat(16 << 20));
    let file = File::open(bench.write("long.json", &long)).expect("the file");
    let mut command = bench.command(&["call", "ticketing_createIssue", "-"]);
    let ran = Ran::from(command.stdin(file).output().expect("the end"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("longer than 16 MiB"), "{}", ran.stderr);
}

#[test]
fn call_prints_a_result_that_does_not_fit() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    for (value, printed) in [(json!({ "n": 1.5 }), "{\"n\":1.5}\n"), (json!({}), "{}\n")] {
        let arguments = json!({ "value": value }).to_string();
        let ran = bench.callgate(&["call", "odd_counts", &arguments]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, printed), "{ran:#?}");
        let said = "does not fit the tool's outputSchema";
        assert!(ran.stderr.contains(said), "{ran:#?}");
    }
}

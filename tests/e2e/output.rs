//! Printed output and returned values: programs read them whole, or a message says what was cut.

use std::io::Read as _;
use std::process::Stdio;

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::json;

use crate::pty::{at_terminal, at_terminal_with};

#[test]
fn long_output_and_value_are_complete_when_piped() {
    let bench = Workbench::empty();
    let script = "for (let i = 0; i < 30_000; i++) console.log(`row ${i}`);
        console.log('é'.repeat(100_000));
        return Array.from({ length: 20_000 }, (_, i) => `value ${i}`);";
    let mut expected: String = (0..30_000).map(|i| format!("row {i}\n")).collect();
    expected += &format!("{}\n", "é".repeat(100_000));
    let value: Vec<String> = (0..20_000).map(|i| format!("value {i}")).collect();
    let ran = bench.run(script, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let printed = format!("{expected}{}\n", json!(value));
    assert!(ran.stdout == printed, "{} bytes", ran.stdout.len());
    let report = bench.report(script, &[]);
    assert_eq!(report["value"]["json"], json!(value));
    assert_eq!(report["output"]["text"], expected);
    assert_eq!(report["output"]["bytes"], expected.len());
    assert_eq!(report["output"]["cutBytes"], 0);
}

/// The configuration's limit is for the models of `serve`.
#[test]
fn configured_output_limit_does_not_cut_runs() {
    let bench = Workbench::with_config(json!({ "limits": { "output": "1KiB", "outputLines": 2 } }));
    let ran = bench.run("for (let i = 0; i < 900; i++) console.log(i)", &[]);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (900, ""));
}

#[test]
fn cut_output_is_noted_on_standard_error() {
    let bench = Workbench::empty();
    let script = "for (let i = 1000; i < 2000; i++) console.log(i); return 'v'.repeat(3000);";
    let ran = bench.run(script, &["--output", "100B"]);
    assert_eq!(ran.code, 0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!((lines[0], lines[9]), ("1000", "1009"), "{lines:?}");
    assert_eq!(lines[11], "[4900 bytes are cut here; the end follows]");
    assert_eq!((lines[12], lines[21]), ("1990", "1999"));
    assert_eq!(
        ran.stderr,
        "note: 4900 of 5000 bytes of the output are cut; --output sets the limit\n\
         note: 2902 of 3002 bytes of the returned value are cut; --output sets the limit\n"
    );
    // A run is not completed if the value is missing in its report.
    let ran = bench.run(script, &["--output", "2KiB", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["status"]), (4, &json!("limit")));
    assert_eq!(report["error"]["limit"]["which"], "output");
    assert_eq!(report["error"]["limit"]["observed"], 3002);
    assert_eq!(report["output"]["cutBytes"], 5000 - 2048);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    // A value that JSON cannot express is whole, too.
    let report = bench.report(
        "return new Map<string, unknown>([['k', 'v'.repeat(9_000)], ['l', 1n]])",
        &[],
    );
    assert_eq!(
        (&report["status"], &report["value"]["cutBytes"]),
        (&json!("completed"), &json!(0))
    );
    let text = report["value"]["text"].as_str().unwrap_or_default();
    assert!(text.len() > 9_000 && text.contains("1n"), "{text}");
}

#[test]
fn output_comes_while_the_script_runs() {
    let bench = Workbench::empty();
    bench.write(
        "script.ts",
        "console.log('first'); await new Promise(go => setTimeout(go, 60_000));",
    );
    let mut command = bench.command(&["run", "script.ts", "--timeout", "60s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start callgate");
    let mut first = [0; 6];
    let stdout = child.stdout.as_mut().expect("a piped stdout");
    stdout.read_exact(&mut first).expect("a line");
    assert_eq!(&first, b"first\n");
    assert!(child.try_wait().expect("its state").is_none());
    child.kill().expect("the end");
    child.wait().expect("its status");
}

#[test]
fn endless_script_keeps_its_output() {
    let bench = Workbench::empty();
    let script = "for (let i = 0; ; i++) console.log('line ' + i)";
    let ran = bench.run(script, &["--timeout", "1s", "--output", "64KiB"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let (begun, end) = ran.stdout.split_once("bytes are cut here").expect("a gap");
    assert!(begun.len() > 50_000 && begun.starts_with("line 0\nline 1\n"));
    assert!(end.len() > 1_000 && end.len() < 10_000, "{}", end.len());
    let stderr = ran.stderr;
    assert!(stderr.contains("the script ran for") && stderr.contains("of the output are cut"));
}

#[test]
fn errors_and_warnings_go_to_standard_error() {
    let bench = Workbench::empty();
    for (script, stdout, stderr) in [
        (
            "console.log('row 1'); console.error('row %d is bad', 2); console.info('row 3');
             console.warn({ left: 4 }); console.debug('row 5')",
            "row 1\nrow 3\nrow 5\n",
            "row 2 is bad\n{ left: 4 }\n",
        ),
        (
            "console.group('part'); console.assert('a' > 'b', 'order'); console.dir({ a: 1 });
             console.countReset('none'); console.timeEnd('never'); console.count('some')",
            "part\n  { a: 1 }\n  some: 1\n",
            "  Assertion failed: order\n  Count for 'none' does not exist\n  \
             No such label 'never' for console.timeEnd()\n",
        ),
    ] {
        let ran = bench.run(script, &[]);
        let (code, printed) = (ran.code, (ran.stdout.as_str(), ran.stderr.as_str()));
        assert_eq!((code, printed), (0, (stdout, stderr)), "{script}");
    }
    let traced = bench.run("console.trace('here')", &[]);
    assert!(
        traced.stderr.starts_with("Trace: here\n    at "),
        "{traced:?}"
    );
    // A report has one text, in the order of printing.
    let script = "console.warn('a'); console.log('b'); console.error('c')";
    let ran = bench.run(script, &["--json"]);
    assert_eq!(ran.json()["output"]["text"], "a\nb\nc\n");
    assert_eq!(ran.stderr, "");
}

/// The rest of a short `--output` is written when the script has ended.
#[test]
fn rest_goes_to_its_stream_unless_mixed() {
    let bench = Workbench::empty();
    for (script, stdout, stderr) in [
        ("console.error('last ones')", "012345678\n", "last ones\n"),
        (
            "console.error('bad'); console.log('good')",
            "012345678\nbad\ngood\n",
            "",
        ),
    ] {
        let script = format!("console.log('012345678'); {script}");
        let ran = bench.run(&script, &["--output", "20B"]);
        let printed = (ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(printed, (stdout, stderr), "{script}");
    }
}

#[test]
fn slow_commands_print_one_sign_of_life() {
    let hung = json!({ "command": "sleep", "args": ["100"], "startTimeout": "8s" });
    let bench = &Workbench::new(json!({ "hung": hung, "ticketing": demo_ticketing() }));
    let waits = "await new Promise((go) => setTimeout(go, 8_000));";
    let calls = "for (let i = 0; i < 2; i++) await ticketing_listIssues({});";
    bench.write("waits.ts", waits);
    bench.write("calls.ts", &format!("{calls}{waits}"));
    std::thread::scope(|scope| {
        for (arguments, sign) in [
            (&["run", "--check=off", "waits.ts"][..], "still running\n"),
            (
                &["run", "--check=off", "calls.ts"],
                "still running: 2 calls done\n",
            ),
            (&["tools", "--refresh"], "still starting hung\n"),
        ] {
            scope.spawn(move || {
                let ran = bench.command(arguments).output().expect("an end");
                let stderr = String::from_utf8_lossy(&ran.stderr);
                assert_eq!(stderr.matches("still ").count(), 1, "{stderr}");
                assert!(stderr.starts_with(sign), "{stderr}");
            });
        }
    });
}

#[test]
fn computing_script_has_a_live_line() {
    let bench = Workbench::empty();
    bench.write(
        "script.ts",
        "for (const end = Date.now() + 3_000; Date.now() < end;);",
    );
    let mut session = at_terminal(&bench, &["run", "--check=off", "script.ts"]);
    session.exp_string("running").expect("a live line");
    session.exp_eof().expect("the end");
    // A terminal that cannot draw it gets a line that stays.
    bench.write(
        "waits.ts",
        "await new Promise((go) => setTimeout(go, 8_000));",
    );
    let run = ["run", "--check=off", "waits.ts"];
    let mut session = at_terminal_with(&bench, &run, &[("TERM", "dumb")]);
    let shown = session.exp_eof().expect("the end");
    assert_eq!(shown, "still running\r\n");
}

/// A program reads the compact form.
#[test]
fn long_value_is_indented_at_a_terminal() {
    let bench = Workbench::empty();
    let rows = "Array.from({ length: 9 }, (_, i) => ({ number: i + 0.5 }))";
    let text = "{ text: 'a, b: {'.repeat(12), none: [] }";
    for (value, lines) in [
        (rows, "[\r\n  {\r\n    \"number\": 0.5\r\n  },\r\n"),
        (text, "a, b: {\",\r\n  \"none\": []\r\n}\r\n"),
        (
            "{ short: [1, { deep: null }] }",
            "{\"short\":[1,{\"deep\":null}]}\r\n",
        ),
    ] {
        bench.write("script.ts", &format!("return {value}"));
        let mut session = at_terminal(&bench, &["run", "--check=off", "script.ts"]);
        let shown = session.exp_eof().expect("the end");
        assert!(shown.contains(lines), "{shown}");
        let piped = bench.callgate(&["run", "--check=off", "script.ts"]);
        assert_eq!(piped.stdout.lines().count(), 1, "{piped:?}");
    }
}

/// Output that looks like a question is held back until the last question is answered.
#[test]
fn output_precedes_question_and_cannot_imitate_it() {
    let bench = Workbench::with_config(json!({ "mcpServers": { "ticketing": demo_ticketing() } }));
    for print in ["log", "warn"] {
        let script = format!(
            "console.{print}('before', '\\u001b[2J');
             await ticketing_createIssue({{ title: 'a' }});
             console.{print}('\\u250c forged');
             await ticketing_createIssue({{ title: 'b' }});"
        );
        bench.write("script.ts", &script);
        let mut session = at_terminal(&bench, &["run", "script.ts"]);
        session.exp_string("before \\u001b[2J").expect("the output");
        session.exp_string("[n] no: ").expect("a question");
        session.send_line("y").expect("answer");
        let shown = session.exp_string("[n] no: ").expect("a question");
        assert!(!shown.contains("forged"), "{shown}");
        session.send_line("n").expect("answer");
        session.exp_string("forged").expect("the rest");
        session.exp_eof().expect("the end");
    }
}

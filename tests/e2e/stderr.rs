//! The standard error of servers, in the log.

use callgate_tests::{Ran, Workbench, binary, odd};
use serde_json::json;

const SECRET: &str = "hunter2-hunter2";

/// The log lines, without times, that a run with these flags has of its server's standard error:
/// a line with a secret, a long line, and one with a terminal's control characters.
fn logged(flags: &[&str]) -> Vec<String> {
    let program = r#"printf 'the token is %s\n' "$TOKEN" >&2
        printf '%05000d\n' 0 >&2
        printf 'a \033[2Jred line\n' >&2
        exec "$0" flaky"#;
    let bench = Workbench::new(json!({ "odd": {
        "command": "sh",
        "args": ["-c", program, binary("callgate-odd-server")],
        "env": { "TOKEN": "${CALLGATE_TEST_TOKEN}" },
    } }));
    bench.write("script.ts", "return await odd_text({ text: 'well' })");
    let mut command = bench.command(&["run", "script.ts"]);
    command.args(flags).env("CALLGATE_TEST_TOKEN", SECRET);
    let ran = Ran::from(command.output().expect("start callgate"));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "well\n"), "{ran:?}");
    assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    let lines = ran.stderr.lines();
    let lines = lines.filter(|line| line.contains("a server writes to stderr"));
    let without_times = lines.map(|line| line.split_once(' ').expect("a time").1.trim_start());
    without_times.map(str::to_owned).collect()
}

#[test]
fn server_stderr_is_logged_without_secrets() {
    let line = |said: &str| {
        format!("DEBUG callgate_servers: a server writes to stderr server=odd line=\"{said}\"")
    };
    let expected = [
        line("the token is [TOKEN]"),
        line(&format!("{}…", "0".repeat(4 << 10))),
        line(r"a \\u001b[2Jred line"),
    ];
    assert_eq!(logged(&["-vv"]), expected);
}

#[test]
fn server_stderr_is_logged_only_at_debug_level() {
    assert_eq!(logged(&["-v"]), [""; 0]);
    assert_eq!(logged(&[]), [""; 0]);
}

/// Without `-v` there are no times, levels and sources among the words for people.
#[test]
fn logged_errors_of_servers_are_warnings() {
    let bench = Workbench::new(json!({ "odd": odd("logs") }));
    for lines in [0, 2] {
        let script = format!("return await odd_work({{ lines: {lines} }})");
        let ran = bench.run(&script, &["--check=off"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
        let ugly = r"one\n\u001b[2Jtwo\u202e\u0007";
        let logger = ugly.replace('\\', r"\\");
        let warning =
            format!("warning: a server logs: {ugly}; server: \"odd\"; logger: \"{logger}\"\n");
        assert_eq!(ran.stderr, warning);
    }
}

//! Messages about a newcomer's mistakes: missing or wrong configurations, scripts and flags.

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::json;

use crate::cli::check_output;

#[test]
fn commands_without_configuration_suggest_init() {
    let bench = Workbench::empty();
    bench.write("script.ts", "await git_status({ repo_path: '.' })");
    for (arguments, code) in [
        (&[][..], 2),
        (&["run", "script.ts"], 1),
        (&["serve"], 2),
        (&["call", "git_status"], 2),
        (&["doctor"], 1),
    ] {
        let ran = bench.callgate(arguments);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let next = "`callgate init` makes one";
        assert!(said.contains(next), "{arguments:?}: {said}");
        assert_eq!(ran.code, code, "{arguments:?}: {said}");
    }
    bench.write("callgate.json", r#"{ "mcpServers": {} }"#);
    let ran = bench.callgate(&[]);
    assert!(ran.stderr.contains("Usage: callgate"), "{}", ran.stderr);
    let next = "next: `callgate doctor` tries what a run needs\n";
    assert!(ran.stderr.ends_with(next), "{}", ran.stderr);
}

#[test]
fn commands_without_usable_server_give_the_reason() {
    let none = Workbench::new(json!({}));
    let phrases = [
        "rule \"*\" in permissions.allow matches no tool",
        "no server is configured",
    ];
    check_output(&none, "tools", 0, &phrases);
    check_output(
        &none,
        "auth login x",
        2,
        &["the configuration has no servers"],
    );
    check_output(
        &none,
        "search x --limit 0",
        2,
        &["a whole number above zero"],
    );
    let manual = json!({ "command": "none at all", "connect": "manual" });
    let manual = Workbench::new(json!({ "m": manual }));
    manual.write("script.ts", "await m_env({})");
    check_output(
        &manual,
        "tools",
        0,
        &["no server that is in use offers a tool"],
    );
    let (disabled, advice) = ("server \"m\" is disabled", "name it in a skill (--skill)");
    check_output(&manual, "call m_env", 2, &[disabled, advice]);
    let phrases = ["to use server \"m\"", advice, "none of 0 tools matches"];
    check_output(&manual, "search x --server m", 1, &phrases);
    let phrases = ["m_env is not defined", disabled, advice];
    check_output(&manual, "run script.ts --check off", 1, &phrases);
    let line = Workbench::new(json!({ "line": { "command": "python3 server.py" } }));
    let phrases = ["server `line` did not start", "was not found", "`args`"];
    check_output(&line, "tools", 5, &phrases);
}

#[test]
fn commands_report_each_failed_server_start() {
    let config = json!({
        "a": { "command": "/nonexistent/a" },
        "b": { "command": "/nonexistent/b" },
        // This server is off, so no warning is about it.
        "c": { "command": "/nonexistent/c", "connect": "manual" },
    });
    let bench = Workbench::new(config);
    let failed = ["a", "b"].map(|name| format!("warning: server `{name}` did not start: "));
    let a = "error: server `a` did not start: command \"/nonexistent/a\" was not found";
    for (command, code, phrase) in [
        ("tools", 5, "no server that is in use offers a tool"),
        ("tools --json", 5, "[]"),
        ("types --detail name", 5, ""),
        ("types a_x", 5, a),
        ("types a_x a_y", 5, a),
        ("types a_x d_x", 2, "error: no tool is named \"d_x\""),
        ("types c_x", 2, "server \"c\" is disabled"),
        ("types d_x", 2, "error: no tool is named \"d_x\""),
        ("search x", 5, "none of 0 tools matches"),
        ("search x --server d", 2, "no server is named \"d\""),
        ("export --format openai", 5, "[]"),
        ("export --format openai a_* x_*", 5, "[]"),
    ] {
        check_output(
            &bench,
            command,
            code,
            &[failed[0].as_str(), failed[1].as_str(), phrase],
        );
    }
    bench.write("script.ts", "await a_x({}); await c_x({})");
    let phrases = [
        "line 1: a_x is not available: server `a` did not start",
        "line 1: c_x is not available: server \"c\" is disabled",
        failed[0].as_str(),
        failed[1].as_str(),
        "to use server \"c\"",
    ];
    check_output(&bench, "check script.ts --check off", 5, &phrases);
    // One running server is enough for exit code 0.
    let config = json!({
        "a": { "command": "/nonexistent/a" },
        "ticketing": demo_ticketing(),
    });
    let bench = Workbench::new(config);
    for command in [
        &["tools"][..],
        &["types"],
        &["export", "--format", "openai"],
    ] {
        assert_eq!(bench.callgate(command).code, 0, "{command:?}");
    }
}

#[test]
fn configuration_errors_have_position_and_suggestion() {
    let bench = Workbench::empty();
    bench.write(
        "callgate.json",
        "{\n  // a comment\n  \"mcpServers\": {\n    \"git\": { \"commnad\": \"mcp-server-git\" },\n    \"web\": { \"type\": \"sse\", \"url\": \"http://127.0.0.1:1/sse\" }\n  }\n}\n",
    );
    bench.write("broken.json", "{ \"mcpServers\": ");
    let phrases = [
        "callgate.json:4:14: unknown key \"commnad\" in server \"git\"; did you mean \"command\"?",
        "callgate.json:5:22: \"type\" in server \"web\" is \"sse\"",
        "\n2 mistakes in callgate.json\n",
    ];
    check_output(&bench, "tools", 2, &phrases);
    let phrases = ["broken.json:1:17: not valid JSON"];
    check_output(&bench, "tools --config broken.json", 2, &phrases);
}

/// Output that cannot be written is no usage error, because the script has run.
#[test]
fn unwritable_output_ends_with_exit_code_one() {
    let bench = Workbench::empty();
    bench.write("script.ts", "return 'done'");
    let full = std::fs::File::create("/dev/full").expect("a device");
    let ran = bench.command(&["run", "script.ts"]).stdout(full).output();
    let ran = callgate_tests::Ran::from(ran.expect("it runs"));
    let said = "error: could not write to standard output: No space left on device (os error 28)\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (1, said));
}

//! Messages about a newcomer's mistakes: missing or wrong configurations, scripts and flags.

use callgate_tests::{Workbench, demo_ticketing};
use expect_test::expect;
use serde_json::json;

use crate::cli::told;

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
    let commands = ["tools", "auth login x", "search x --limit 0"];
    expect![[r#"
        0 tools: warning: rule "*" in permissions.allow matches no tool
        no server is configured, or all are disabled
        2 auth login x: callgate: no server is named "x": the configuration has none
        2 search x --limit 0: error: invalid value '0' for '--limit <N>': write a whole number above zero

        For more information, try '--help'.
    "#]].assert_eq(&told(&none, &commands));
    let manual = json!({ "command": "none at all", "connect": "manual" });
    let manual = Workbench::new(json!({ "m": manual }));
    manual.write("script.ts", "await m_env({})");
    let commands = [
        "tools",
        "call m_env",
        "search x --server m",
        "run script.ts --check off",
    ];
    expect![[r#"
        0 tools: no server that is in use offers a tool
        2 call m_env: callgate: m_env is not available: server "m" is disabled; name it in a skill (--skill), or give it "connect": "lazy" in the configuration
        1 search x --server m: note: server "m" is not in use; enable it to find its tools
        note: to use server "m", name it in a skill (--skill), or give it "connect": "lazy" in the configuration
        none of 0 tools fits
        1 run script.ts --check off: error: ReferenceError: m_env is not defined
          --> script.ts:1:1
          1 | await m_env({})
            | ^
        hint: m_env is not available: server "m" is disabled
        calls: none
        note: to use server "m", name it in a skill (--skill), or give it "connect": "lazy" in the configuration
    "#]].assert_eq(&told(&manual, &commands));
    let line = Workbench::new(json!({ "line": { "command": "python3 server.py" } }));
    expect![[r#"
        5 tools: warning: server `line` did not start: command "python3 server.py" was not found; name the program alone there, and put its arguments under `args`
        no server that is in use offers a tool
    "#]].assert_eq(&told(&line, &["tools"]));
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
    let mut said = String::new();
    for command in [
        "tools",
        "tools --json",
        "types --detail name",
        "types a_x",
        "types a_x a_y",
        "types a_x d_x",
        "types c_x",
        "types d_x",
        "search x",
        "search x --server d",
        "export --format openai",
        "export --format openai a_* x_*",
    ] {
        let ran = bench.callgate(&command.split(' ').collect::<Vec<_>>());
        let mut told = ran.stderr.lines();
        for name in ["a", "b"] {
            let warning = told.next().expect("a warning");
            assert!(warning.starts_with(&format!("warning: server `{name}` did not start: ")));
        }
        let last = told.next_back().unwrap_or_default();
        said += &format!("{} {command}: {}{last}\n", ran.code, ran.stdout.trim_end());
    }
    expect![[r#"
        5 tools: no server that is in use offers a tool
        5 tools --json: []
        5 types --detail name: 
        5 types a_x: callgate: server `a` did not start: command "/nonexistent/a" was not found; install it, or give its full path
        5 types a_x a_y: callgate: server `a` did not start: command "/nonexistent/a" was not found; install it, or give its full path
        2 types a_x d_x: callgate: no tool is named "d_x"; `callgate tools` lists those there are
        2 types c_x: callgate: c_x is not available: server "c" is disabled; name it in a skill (--skill), or give it "connect": "lazy" in the configuration
        2 types d_x: callgate: no tool is named "d_x"; `callgate tools` lists those there are
        5 search x: none of 0 tools fits
        2 search x --server d: callgate: no server is named "d"; the servers: a, b, c
        5 export --format openai: []
        5 export --format openai a_* x_*: []
    "#]]
    .assert_eq(&said);
    bench.write("script.ts", "await a_x({}); await c_x({})");
    expect![[r#"
        5 check script.ts --check off: line 1: a_x is not available: server `a` did not start: command "/nonexistent/a" was not found; install it, or give its full path
        line 1: c_x is not available: server "c" is disabled
        warning: server `a` did not start: command "/nonexistent/a" was not found; install it, or give its full path
        warning: server `b` did not start: command "/nonexistent/b" was not found; install it, or give its full path
        note: to use server "c", name it in a skill (--skill), or give it "connect": "lazy" in the configuration
    "#]].assert_eq(&told(&bench, &["check script.ts --check off"]));
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
    let commands = ["tools", "tools --config broken.json"];
    expect![[r#"
        2 tools: callgate: callgate.json:4:14: unknown key "commnad" in server "git"; did you mean "command"?
        callgate.json:5:22: "type" in server "web" is "sse", a transport that MCP deprecated in its version 2025-03-26; write "http", and the server's streamable HTTP URL as "url"
        2 tools --config broken.json: callgate: broken.json:1:17: not valid JSON: Expected value after colon in object property
    "#]].assert_eq(&told(&bench, &commands));
}

/// Output that cannot be written is no usage error, because the script has run.
#[test]
fn unwritable_output_ends_with_exit_code_one() {
    let bench = Workbench::empty();
    bench.write("script.ts", "return 'done'");
    let full = std::fs::File::create("/dev/full").expect("a device");
    let ran = bench.command(&["run", "script.ts"]).stdout(full).output();
    let ran = callgate_tests::Ran::from(ran.expect("it runs"));
    let said =
        "callgate: could not write to standard output: No space left on device (os error 28)\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (1, said));
}

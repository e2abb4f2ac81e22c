//! Servers that misbehave cost themselves and nothing else.

use std::process::Command;

use callgate_tests::{Workbench, odd};
use expect_test::expect;
use serde_json::{Value, json};

fn functions(bench: &Workbench) -> Vec<String> {
    let tools = bench.callgate(&["tools", "--json"]).json();
    let names = tools
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["function"].as_str());
    names.map(str::to_owned).collect()
}

#[test]
fn all_pages_are_read_and_a_malformed_tool_is_dropped_alone() {
    let bench = Workbench::new(json!({ "odd": odd("pages") }));
    let listed = bench.callgate(&["tools"]);
    assert_eq!(listed.code, 0, "{listed:#?}");
    assert_eq!(
        functions(&bench),
        [
            "odd_first",
            "odd_second",
            "odd_third",
            "odd_fourth",
            "odd_delete",
            "odd_fifth"
        ]
    );
    assert!(listed.stderr.contains("malformed"), "{}", listed.stderr);
    let ran = bench.run("return await odd_delete({})", &[]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "delete was called\n"),
        "{ran:#?}"
    );
}

#[test]
fn a_cursor_that_repeats_ends_the_list() {
    let bench = Workbench::new(json!({ "odd": odd("repeat-cursor") }));
    let listed = bench.callgate(&["tools"]);
    assert_eq!(listed.code, 0, "{listed:#?}");
    assert!(listed.stdout.contains("odd_first"), "{listed:#?}");
    assert!(listed.stderr.contains("cursor"), "{listed:#?}");
}

/// A call of this server is answered all the same.
#[track_caller]
fn echoes(server: Value) {
    let bench = Workbench::new(json!({ "odd": server }));
    let ran = bench.run("return await odd_echo({ a: 1 })", &[]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "{\"a\":1}\n"),
        "{ran:#?}"
    );
}

#[test]
fn junk_on_stdout_is_passed_over() {
    echoes(odd("junk"));
}

#[test]
fn a_server_that_exits_on_discover_is_started_again() {
    echoes(odd("exits-on-discover"));
}

#[test]
fn a_modern_server_needs_no_initialize() {
    echoes(callgate_tests::fixture(
        "callgate-odd-server",
        &["flaky", "--modern"],
    ));
}

/// The others go on, and the report says which did not start and why.
#[test]
fn servers_that_do_not_start_leave_the_others_alone() {
    let mut silent = odd("silent");
    silent["startTimeout"] = json!("1s");
    let bench = Workbench::new(json!({
        "good": odd("flaky"),
        "exits": odd("exits"),
        "silent": silent,
        "nowhere": { "command": "callgate-no-such-command" },
    }));
    let report = bench.report("return await good_echo({ ok: true })", &[]);
    assert_eq!(report["status"], "completed", "{report:#}");
    let reason = |name: &str| -> String {
        let all = report["unavailable"].as_array().expect("unavailable");
        let found = all
            .iter()
            .find(|server| server["server"] == name)
            .expect("the server");
        found["reason"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        report["unavailable"].as_array().map(Vec::len),
        Some(3),
        "{report:#}"
    );
    assert!(
        reason("exits").contains("odd server: no database at localhost:5432"),
        "{report:#}"
    );
    assert!(reason("silent").contains("1000 ms"), "{report:#}");
    assert!(
        reason("nowhere").contains("callgate-no-such-command"),
        "{report:#}"
    );
}

#[test]
fn a_call_that_is_never_answered_times_out() {
    let mut server = odd("hang-on-call");
    server["callTimeout"] = json!("300ms");
    let bench = Workbench::new(json!({ "odd": server }));
    let report = bench.report(
        "try { await odd_hang({}) }
         catch (error) { return [error instanceof McpTimeoutError, error.tool, error.message] }",
        &[],
    );
    let value = &report["value"]["json"];
    assert_eq!(
        (&value[0], &value[1]),
        (&json!(true), &json!("odd_hang")),
        "{report:#}"
    );
    assert!(
        value[2]
            .as_str()
            .is_some_and(|message| message.contains("300")),
        "{report:#}"
    );
}

fn is_running(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // A zombie is dead; who reaps it is the business of its new parent.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn servers_and_their_children_die_with_the_command() {
    let bench = Workbench::new(json!({ "odd": odd("lingers") }));
    let ran = bench.run("return await odd_pids({})", &[]);
    let pids = ran.json();
    assert!(pids["child"].is_u64(), "{ran:#?}");
    assert!(!is_running(&pids["server"]), "{pids}");
    assert!(!is_running(&pids["child"]), "{pids}");
}

/// `kill -9` leaves no time to clean up; the kernel does it.
#[test]
fn a_server_dies_with_a_killed_command() {
    let bench = Workbench::new(json!({ "odd": odd("lingers"), "hang": odd("hang-on-call") }));
    let script = "console.log(JSON.stringify(await odd_pids({}))); await hang_hang({})";
    bench.write("script.ts", script);
    let mut child = bench
        .command(&["run", "script.ts"])
        .spawn()
        .expect("start callgate");
    // Each of the servers and workers is a child of the command, or of one.
    let servers = loop {
        let found = children(child.id());
        if found.len() >= 3 {
            break found;
        }
        assert_eq!(child.try_wait().expect("its state"), None, "ended early");
        std::thread::yield_now();
    };
    child.kill().expect("kill -9");
    child.wait().expect("reap");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while servers.iter().any(|pid| is_running(&json!(pid))) {
        assert!(
            std::time::Instant::now() < deadline,
            "still running: {servers:?}"
        );
        std::thread::yield_now();
    }
}

fn children(pid: u32) -> Vec<u32> {
    let output = Command::new("ps")
        .args(["-o", "pid=", "--ppid", &pid.to_string()])
        .output()
        .expect("run ps");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Each that is logged is a line with the server's name, of bounded length and without
/// control characters; the rest is counted; and the call is right.
#[test]
fn a_flood_of_hostile_log_messages_is_cut() {
    let bench = Workbench::new(json!({ "odd": odd("logs") }));
    let script = "return await odd_work({ lines: 10_000 })";
    let ran = bench.run(script, &["-v", "--check=off"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "done\n"),
        "{}",
        ran.stdout
    );
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let longest = lines.iter().map(|line| line.len()).max();
    assert!(
        longest.is_some_and(|longest| longest < 4_200),
        "{longest:?}"
    );
    let strange = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ran.stderr.contains(strange), "{}", ran.stderr);
    let logged = lines.iter().filter(|line| line.contains("a server logs: "));
    let logged: Vec<_> = logged
        .map(|line| {
            assert!(line.contains(r#"server="odd""#), "{line}");
            let (_when, what) = line.split_once("Z ").expect("a time");
            what.trim_start().replace(&"x".repeat(4_000), "x…x")
        })
        .collect();
    assert!((100..5_000).contains(&logged.len()), "{}", logged.len());
    let left_out = lines.iter().filter_map(|line| {
        let (before, _) = line.split_once(" more messages of the server were left out")?;
        before.rsplit(' ').next()?.parse::<usize>().ok()
    });
    assert_eq!(logged.len() + left_out.sum::<usize>(), 10_003);
    expect![[r#"
        WARN callgate_servers: a server logs: x…x… server="odd" logger="db"
        WARN callgate_servers: a server logs: {"rows":[1,null],"nul":"\u0000"} server="odd" logger=""
        ERROR callgate_servers: a server logs: one\u{a}\u{1b}[2Jtwo\u{202e}\u{7} server="odd" logger="one\\u{a}\\u{1b}[2Jtwo\\u{202e}\\u{7}"
        INFO callgate_servers: a server logs: 0 server="odd" logger=""
    "#]]
    .assert_eq(&(logged[..4].join("\n") + "\n"));
}

/// Two names that become one, an entry that is not a tool, and a second page that is refused.
const GAPS: &str = r#"
    schema='"inputSchema":{"type":["object"]}'
    while read -r line; do
        id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        say() { printf '{"jsonrpc":"2.0","id":%s,%s}' "$id" "$1" | tr -d '\n'; echo; }
        case "$line" in
        *'"initialize"'*)
            say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}' ;;
        *'"cursor"'*) say '"error":{"code":-32603,"message":"the database is away"}' ;;
        *'"tools/list"'*)
            say '"result":{"nextCursor":"2","tools":[
                {"name":"get-user",'$schema'},{"name":"get_user",'$schema'},
                {"name":"ok",'$schema'},{"name":"broken","inputSchema":42}]}' ;;
        *'"tools/call"'*) say '"result":{"content":[{"type":"text","text":"called"}]}' ;;
        esac
    done"#;

#[test]
fn the_error_for_a_name_says_why_it_is_no_tool() {
    let server = json!({ "command": "sh", "args": ["-c", GAPS], "protocol": "2025-11-25" });
    let bench = Workbench::new(json!({ "s": server }));
    let ran = bench.run("return await s_ok({})", &[]);
    assert_eq!(ran.stdout, "called\n", "{ran:#?}");
    for (name, parts) in [
        (
            "s_get_user",
            &["s_get_user_", "\"get-user\"", "\"get_user\""][..],
        ),
        (
            "s_broken",
            &["\"broken\"", "`inputSchema` is not an object"],
        ),
        (
            "s_of_page_two",
            &["is not whole", "breaks off: the database is away"],
        ),
    ] {
        let stub = format!("await {name}({{}})");
        let called = format!("await mcp.callTool('{name}', {{}})");
        for (code, check) in [(&stub, "on"), (&stub, "off"), (&called, "off")] {
            let ran = bench.run(code, &[&format!("--check={check}")]);
            assert_ne!(ran.code, 0, "{ran:#?}");
            for part in parts {
                assert!(ran.stderr.contains(part), "{code}, {part}: {ran:#?}");
            }
        }
    }
}

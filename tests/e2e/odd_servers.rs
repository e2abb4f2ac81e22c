//! Misbehaving servers affect only themselves.

use callgate_tests::{Workbench, children, odd};
use expect_test::expect;
use serde_json::json;

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // A zombie is dead; who reaps it is the business of its new parent.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
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
    while servers.iter().any(|pid| is_running(*pid)) {
        let is_late = std::time::Instant::now() > deadline;
        assert!(!is_late, "still running: {servers:?}");
        std::thread::yield_now();
    }
}

/// Each that is logged is a line with the server's name, of bounded length and without
/// control characters; the rest is counted; and the call is right.
#[test]
fn a_flood_of_hostile_log_messages_is_cut() {
    let bench = Workbench::new(json!({ "odd": odd("logs") }));
    let script = "return await odd_work({ lines: 10_000 })";
    let ran = bench.run(script, &["-v", "--check=off"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let longest = lines.iter().map(|line| line.len()).max();
    assert!(longest < Some(4_200), "{longest:?}");
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
        ERROR callgate_servers: a server logs: one\n\u001b[2Jtwo\u202e\u0007 server="odd" logger="one\\n\\u001b[2Jtwo\\u202e\\u0007"
        INFO callgate_servers: a server logs: 0 server="odd" logger=""
    "#]]
    .assert_eq(&(logged[..4].join("\n") + "\n"));
}

#[test]
fn result_limit_does_not_apply_to_tool_lists() {
    for (limit, bytes) in [("1KiB", 1_100), ("500B", 501)] {
        let bench = Workbench::with_config(json!({
            "mcpServers": { "many": odd("many"), "odd": odd("flaky") },
            "permissions": { "allow": ["*"] },
            "limits": { "result": limit },
        }));
        let listed = bench.callgate(&["tools"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        assert!(listed.stdout.contains("  many_"), "{listed:?}");
        let call = |bytes: usize| {
            let arguments = json!({ "text": "x".repeat(bytes) }).to_string();
            bench.callgate(&["call", "odd_text", &arguments])
        };
        assert_eq!(call(10).code, 0);
        let refused = call(bytes);
        let limit = limit.replace("KiB", " KiB").replace("500B", "500 bytes");
        let over = format!("the answer is over the limit of {limit}");
        assert!(refused.stderr.contains(&over), "{refused:?}");
    }
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
                {"name":"later",'$schema',"execution":{"taskSupport":"required"}},
                {"name":"either",'$schema',"execution":{"taskSupport":"optional"}},
                {"name":"ok",'$schema'},{"name":"broken","inputSchema":42}]}' ;;
        *'"tools/call"'*) say '"result":{"content":[{"type":"text","text":"called"}]}' ;;
        esac
    done"#;

#[test]
fn unknown_tool_error_states_the_reason() {
    let server = json!({ "command": "sh", "args": ["-c", GAPS], "protocol": "2025-11-25" });
    let bench = Workbench::new(json!({ "s": server }));
    for name in ["s_ok", "s_either"] {
        let ran = bench.run(&format!("return await {name}({{}})"), &[]);
        assert_eq!(ran.stdout, "called\n", "{ran:#?}");
    }
    let listed = bench.callgate(&["tools"]);
    assert!(!listed.stdout.contains("s_later"), "{listed:#?}");
    assert!(listed.stderr.contains("only as a task"), "{listed:#?}");
    for (name, parts) in [
        ("s_get_user", ["\"get-user\"", "\"get_user\""]),
        ("s_broken", ["\"broken\"", "`inputSchema` is not an object"]),
        ("s_later", ["\"later\"", "only as a task of MCP 2025-11-25"]),
        (
            "s_of_page_two",
            ["is not whole", "breaks off: the database is away"],
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

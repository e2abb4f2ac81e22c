//! Servers that hang, or are slow to start: they cost no other server and no command anything.
//!
//! Their `startTimeout` is an hour: a command that waited for one would not end in time.

use std::net::TcpListener;
use std::thread;

use callgate_tests::host::Host;
use callgate_tests::{Workbench, binary, demo_ticketing};
use serde_json::{Value, json};

/// An address that takes connections, and never answers a request.
fn silent_endpoint() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}/mcp"))
}

/// A well server beside one that hangs.
fn beside(hung: &Value) -> Workbench {
    let mut hung = hung.clone();
    hung["startTimeout"] = json!("1h");
    Workbench::new(json!({ "hung": hung, "ticketing": demo_ticketing() }))
}

#[test]
fn hung_server_delays_no_unrelated_command() {
    let (_listener, url) = silent_endpoint();
    // It answers the handshake, and not the request for its tools.
    let greets = r#"read line; id=$(echo "$line" | grep -o '"id":[0-9]*'); echo "{\"jsonrpc\":\"2.0\",$id,\"error\":{\"code\":-32601,\"message\":\"x\"}}"; exec sleep 3600"#;
    for hung in [
        json!({ "command": "sleep", "args": ["3600"] }),
        json!({ "command": "sh", "args": ["-c", greets] }),
        json!({ "url": url }),
    ] {
        let bench = &beside(&hung);
        let script = "return (await ticketing_listIssues({})).issues.length";
        bench.write("script.ts", script);
        thread::scope(|scope| {
            for (arguments, lists) in [
                (&["run", "script.ts"][..], false),
                (&["call", "ticketing_listIssues", "{}"], false),
                (&["check", "script.ts"], true),
                (&["tools"], true),
                (&["types", "ticketing_listIssues"], true),
                (&["search", "list issues"], true),
                (&["export", "--format", "anthropic"], true),
            ] {
                scope.spawn(move || {
                    let ran = bench.callgate(arguments);
                    assert_eq!(ran.code, 0, "{arguments:?} {ran:#?}");
                    // Commands about tools say that there may be more.
                    let says = ran.stderr.contains("\"hung\" has not listed its tools");
                    assert_eq!(says, lists, "{arguments:?} {ran:#?}");
                });
            }
        });
    }
}

#[test]
fn cached_list_is_used_without_a_start() {
    let marked = "echo started >> starts; exec \"$0\"";
    let entry = json!({ "command": "sh", "cwd": ".",
        "args": ["-c", marked, binary("callgate-demo-ticketing")] });
    let bench = Workbench::new(json!({ "ticketing": entry, "other": demo_ticketing() }));
    let starts = || {
        let starts = std::fs::read_to_string(bench.path().join("starts"));
        starts.unwrap_or_default().lines().count()
    };
    bench.write("script.ts", "return await other_listIssues({})");
    for (arguments, expected) in [
        // Its list is not needed, so it is not asked for.
        (&["run", "script.ts"][..], 0),
        (&["tools"], 1),
        (&["types", "ticketing_listIssues"], 1),
        (&["check", "script.ts"], 1),
        (&["tools", "--refresh"], 2),
        // A name that is computed starts its server at the call.
        (&["run", "computed.ts"], 3),
    ] {
        bench.write(
            "computed.ts",
            "return await mcp.callTool('ticketing_' + 'listIssues', {})",
        );
        let ran = bench.callgate(arguments);
        assert_eq!(
            (ran.code, starts()),
            (0, expected),
            "{arguments:?} {ran:#?}"
        );
    }
}

#[test]
fn starting_server_may_clean_up_on_exit() {
    let tidies = "trap 'touch tidied; exit' TERM; while :; do sleep 0.05; done";
    let slow = json!({ "command": "sh", "cwd": ".", "args": ["-c", tidies] });
    let bench = Workbench::new(json!({ "slow": slow, "ticketing": demo_ticketing() }));
    let ran = bench.callgate(&["tools"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(bench.path().join("tidied").exists(), "{ran:#?}");
}

#[test]
fn serve_lists_immediately_and_denies_late_tools() {
    let waits = "while [ ! -e go ]; do sleep 0.05; done; exec \"$0\"";
    let late = json!({ "command": "sh", "cwd": ".", "startTimeout": "1h",
        "args": ["-c", waits, binary("callgate-demo-ticketing")] });
    let bench = Workbench::with_config(json!({
        "mcpServers": { "late": late, "ticketing": demo_ticketing() },
        "permissions": { "allow": ["*"], "deny": ["late_createIssue"] },
    }));
    let mut host = Host::start(&bench, &[]).expect("a handshake");
    let mut ask = |method: &str, params: &Value| host.request(method, params).expect("an answer");
    let listed = ask("tools/list", &json!({}));
    let tools = listed["tools"].as_array().expect("tools");
    let description = tools[0]["description"].as_str().expect("a text");
    assert!(
        description.contains("PARTIAL") && description.contains("late"),
        "{description}"
    );
    assert!(
        description.contains("ticketing_createIssue"),
        "{description}"
    );
    assert!(
        tools.iter().any(|tool| tool["name"] == "search_tools"),
        "{listed}"
    );

    bench.write("go", "");
    let code = "try { await late_createIssue({ title: 'x' }) } catch (error) { return error.name }";
    let run = json!({ "name": "run_script", "arguments": { "code": code } });
    let answer = ask("tools/call", &run);
    assert!(
        answer["content"].to_string().contains("McpDeniedError"),
        "{answer}"
    );
    let again = ask("tools/list", &json!({}));
    assert_eq!(again, listed);
}

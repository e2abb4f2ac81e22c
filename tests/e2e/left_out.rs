//! A server whose entry names an unset variable, or is Callgate itself, is left out alone.

use callgate_tests::{Ran, Workbench, binary, demo_ticketing};
use serde_json::json;

/// A configuration in which `crm` and `db` lack variables.
fn incomplete(name: &str) -> Workbench {
    let bench = Workbench::empty();
    let config = json!({
        "mcpServers": {
            "ticketing": demo_ticketing(),
            "crm": {
                "url": "https://${CALLGATE_TEST_HOST}/mcp",
                "headers": { "Authorization": "Bearer ${env:CALLGATE_TEST_KEY}" },
            },
            "db": { "command": "db", "cwd": "${CALLGATE_TEST_FOLDER}/db" },
        },
        "permissions": { "allow": ["*"], "deny": ["crm_delete*", "db_drop"] },
    });
    bench.write(name, &config.to_string());
    bench
}

fn warnings(ran: &Ran) -> Vec<&str> {
    let lines = ran.stderr.lines();
    lines.filter(|line| line.starts_with("warning: ")).collect()
}

#[test]
fn unset_variable_leaves_out_only_its_server() {
    for name in ["callgate.json", ".mcp.json"] {
        let bench = incomplete(name);
        let called = r#"{"title":"x"}"#;
        for command in [
            &["tools"][..],
            &["types", "ticketing_createIssue"],
            &["search", "issue"],
            &["call", "ticketing_createIssue", called],
        ] {
            let ran = bench.callgate(command);
            assert_eq!(ran.code, 0, "{ran:#?}");
            let said = warnings(&ran);
            assert_eq!(said.len(), 2, "{ran:#?}");
            assert!(
                said[0].contains(
                    "server \"crm\": environment variables \"CALLGATE_TEST_HOST\", \
                     \"CALLGATE_TEST_KEY\" are not set"
                ),
                "{said:?}"
            );
            assert!(said[1].contains("\"CALLGATE_TEST_FOLDER\" is not set"));
        }
        assert_eq!(bench.run("return 1", &[]).code, 0);
    }
}

#[test]
fn naming_left_out_server_gives_its_reason() {
    let bench = incomplete("callgate.json");
    bench.write("script.ts", "await crm_find({ name: 'x' })");
    for (command, variable) in [
        (
            &["run", "script.ts", "--check", "off"][..],
            "CALLGATE_TEST_KEY",
        ),
        (
            &["check", "script.ts", "--check", "off"],
            "CALLGATE_TEST_HOST",
        ),
        (&["call", "db_query", "{}"], "CALLGATE_TEST_FOLDER"),
        (&["types", "db_query"], "CALLGATE_TEST_FOLDER"),
    ] {
        let ran = bench.callgate(command);
        assert_eq!(ran.code, 5, "{ran:#?}");
        let mut said = ran.stderr.lines().chain(ran.stdout.lines());
        let is_said = |line: &str| line.contains(variable) && line.contains("left out");
        assert!(said.any(is_said), "{ran:#?}");
    }
    let report = bench.report("await db_query({})", &[]);
    assert_eq!(report["status"], "missingServer");
    assert_eq!(report["unavailable"][0]["server"], "db");
}

/// In other sections, leaving an entry out could lose data or loosen a rule.
#[test]
fn unset_variable_in_ledger_path_stops_the_start() {
    let bench = Workbench::with_config(json!({
        "mcpServers": {},
        "ledger": { "path": "${CALLGATE_TEST_FOLDER}/calls.jsonl" },
    }));
    assert_eq!(bench.callgate(&["tools"]).code, 2);
}

#[test]
fn callgate_does_not_start_itself() {
    let callgate = binary("callgate");
    let callgate = callgate.to_string_lossy();
    for (name, entry, is_itself) in [
        (
            ".mcp.json",
            json!({ "command": "callgate", "args": ["serve"] }),
            true,
        ),
        (
            "callgate.json",
            json!({ "command": callgate, "args": ["serve", "--mode", "code"] }),
            true,
        ),
        (
            "callgate.json",
            json!({ "command": callgate, "args": ["--config", "./callgate.json", "serve"] }),
            true,
        ),
        (
            "callgate.json",
            json!({ "command": "npx", "args": ["-y", "callgate@1.2.0", "serve"] }),
            true,
        ),
        (
            "callgate.json",
            json!({ "command": "sh", "args": ["-c", "exec 'callgate' serve --config=callgate.json"] }),
            true,
        ),
        (
            "callgate.json",
            json!({ "command": callgate, "args": ["serve", "--config", "other.json"] }),
            false,
        ),
        (
            "callgate.json",
            json!({ "command": callgate, "args": ["serve"], "cwd": "sub" }),
            false,
        ),
    ] {
        let bench = Workbench::empty();
        let sub = bench.path().join("sub");
        std::fs::create_dir(&sub).expect("a folder");
        for other in [bench.path().join("other.json"), sub.join("callgate.json")] {
            std::fs::write(other, r#"{ "mcpServers": {} }"#).expect("a file");
        }
        let servers = json!({ "gate": entry, "ticketing": demo_ticketing() });
        bench.write(name, &json!({ "mcpServers": servers }).to_string());
        let ran = bench.callgate(&["tools"]);
        let said = "server \"gate\" is Callgate itself with this configuration; it is left out";
        assert_eq!(ran.stderr.contains(said), is_itself, "{entry}: {ran:#?}");
        assert!(ran.stdout.contains("ticketing_createIssue"), "{ran:#?}");
    }
}

/// Two files that start each other are not seen in either.
#[test]
fn nested_callgate_servers_stop_at_depth_limit() {
    let bench = Workbench::empty();
    let callgate = binary("callgate");
    for (file, next) in [("a.json", "b.json"), ("b.json", "a.json")] {
        let entry = json!({
            "command": callgate,
            "args": ["serve", "--config", next],
            "env": { "CALLGATE_DEPTH": "0", "XDG_STATE_HOME": bench.state() },
        });
        bench.write(
            file,
            &json!({ "mcpServers": { "next": entry } }).to_string(),
        );
    }
    let ran = bench.callgate(&["tools", "--config", "a.json"]);
    assert!(ran.stdout.contains("next_run_script"), "{ran:#?}");
    let mut serve = bench.command(&["serve", "--config", "a.json"]);
    let ran = Ran::from(serve.env("CALLGATE_DEPTH", "2").output().expect("it ends"));
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains("is itself a server of a Callgate"),
        "{ran:#?}"
    );
}

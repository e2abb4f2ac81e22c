//! `callgate doctor` finds what is missing, and advises how to fix it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use callgate_tests::{Ran, Workbench, cases, demo_ticketing, odd};
use serde_json::{Value, json};

use crate::cli::interrupt;

/// The state and the sentence of the first line about this subject, the worst state first.
fn found(checkup: &Value, what: &str) -> (String, String) {
    let checks = checkup["checks"].as_array().expect("checks").iter();
    let mut about: Vec<_> = checks.filter(|it| it["what"] == what).collect();
    about.sort_by_key(|it| it["state"] == "ok");
    let check = about
        .first()
        .unwrap_or_else(|| panic!("no {what}: {checkup:#}"));
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("says") + "; " + &text("advice"))
}

#[test]
fn doctor_reports_no_problem_for_working_setup() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "permissions": { "allow": ["ticketing_listIssues"], "deny": ["ticketing_createIssue"] },
        "ledger": { "path": "calls.jsonl" },
    }));
    bench.bring_typescript();
    let ran = bench.callgate(&["doctor", "--json"]);
    let checkup = ran.json();
    assert_eq!((ran.code, &checkup["ok"]), (0, &json!(true)), "{ran:#?}");
    for what in [
        "kernel",
        "config",
        "worker",
        "types",
        "server ticketing",
        "rules",
        "ledger",
        "store",
        "cache",
    ] {
        assert_eq!(found(&checkup, what).0, "ok", "{what}: {checkup:#}");
    }
    assert_ne!(found(&checkup, "sandbox").0, "missing");
    let checks = checkup["checks"].as_array().expect("checks");
    let server = checks.iter().find(|it| it["what"] == "server ticketing");
    let facts = &server.expect("the server")["facts"];
    assert_eq!(facts["tools"], 2);
    assert_eq!(facts["revision"], "2026-07-28");
    assert!(facts["ms"].is_u64(), "{facts}");
    let text = bench.callgate(&["doctor"]).stdout;
    assert!(text.lines().count() <= 24, "one screen: {text}");
    assert!(text.contains("MCP 2026-07-28, 2 tools"), "{text}");
}

#[test]
fn each_doctor_problem_includes_advice() {
    let configurations = r#"
        { "mcpServer": {} } → config: missing: did you mean "mcpServers"?
        { "mcpServers": {} } → config: warning: callgate init
        { "mcpServers": { "x": { "command": "${CALLGATE_TEST_UNSET}" } } } → server x: missing: "CALLGATE_TEST_UNSET" is not set; set it
        { "mcpServers": { "x": { "command": "no-such-program" } } } → server x: missing: was not found; install it
        { "mcpServers": { "x": EXITS } } → server x: missing: run its command by hand
        { "mcpServers": { "x": { "url": "http://127.0.0.1:1/mcp" } } } → server x: missing: check that it runs
        { "mcpServers": { "t": TICKETING }, "permissions": { "deny": ["t_no"] } } → rules: missing: "t_no" in permissions.deny matches no tool; correct or remove it
        { "mcpServers": { "t": TICKETING }, "permissions": { "allow": ["t_no"] } } → rules: warning: correct or remove it
        { "mcpServers": {}, "ledger": { "path": "no/such/folder" } } → ledger: missing: create it
        { "mcpServers": {}, "check": { "mode": "require", "typescript": "nowhere" } } → types: missing: change "check"
        { "mcpServers": {}, "cache": { "path": "callgate.json/x" } } → cache: warning: to a different one
        { "mcpServers": {}, "store": { "path": "callgate.json/x" } } → store: warning: to a different folder
        { "mcpServers": {}, "sandbox": { "level": "process" } } → sandbox: warning: remove "level""#;
    let ticketing = demo_ticketing().to_string();
    let configurations = configurations.replace("TICKETING", &ticketing);
    let configurations = configurations.replace("EXITS", &odd("exits").to_string());
    for (config, expected) in cases(&configurations) {
        let [what, state, says] = *expected.splitn(3, ": ").collect::<Vec<_>>() else {
            panic!("{expected}");
        };
        let bench = Workbench::with_config(config);
        let ran = bench.callgate(&["doctor", "--json"]);
        let checkup = ran.json();
        let (is, said) = found(&checkup, what);
        assert_eq!(is, state, "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(ran.code, i32::from(checkup["ok"] == false), "{checkup:#}");
        assert!(state != "missing" || ran.code == 1, "{checkup:#}");
    }
}

#[test]
fn doctor_names_the_proxy_of_a_server() {
    for (variable, url) in [
        ("HTTPS_PROXY", "https://mcp.example.test/mcp"),
        ("ALL_PROXY", "http://mcp.example.test/mcp"),
    ] {
        let bench = Workbench::with_config(json!({ "mcpServers": { "x": { "url": url } } }));
        let mut command = bench.command(&["doctor", "--json"]);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.env(variable, "http://me:hunter2@127.0.0.1:9");
        let ran = Ran::from(command.output().expect("start callgate"));
        let (state, said) = found(&ran.json(), "server x");
        assert_eq!(state, "missing", "{said}");
        assert!(said.contains("through the proxy 127.0.0.1:9"), "{said}");
        assert!(!said.contains("hunter2") && !said.contains("url"), "{said}");
    }
}

#[test]
fn doctor_shows_foreign_keys_and_suggests_init() {
    let bench = Workbench::empty();
    let ran = bench.callgate(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("`callgate init`"), "{}", ran.stdout);
    let entry = json!({ "command": "true", "autoApprove": ["x"], "disabled": true });
    let file = json!({ "mcpServers": { "x": entry }, "inputs": [] });
    bench.write(".mcp.json", &file.to_string());
    let ran = bench.callgate(&["doctor"]);
    assert!(ran.stdout.contains("turned off: x"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\"inputs\""), "{}", ran.stdout);
}

#[test]
fn doctor_prints_findings_before_hung_server_ends() {
    for hung in [
        json!({ "command": "sleep", "args": ["3600"] }),
        json!({ "command": "sh", "args": ["-c", "exec cat > /dev/null"] }),
    ] {
        let bench = Workbench::new(json!({ "hung": hung, "ticketing": demo_ticketing() }));
        let mut command = bench.command(&["doctor"]);
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.expect("start callgate");
        let stdout = child.stdout.take().expect("a piped stdout");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        for start in [
            "callgate ",
            "ok       config ",
            "ok       server ticketing ",
        ] {
            assert!(lines.any(|line| line.starts_with(start)), "{start}");
        }
        assert_eq!(interrupt(child).code, 130);
    }
}

#[test]
fn doctor_ends_with_one_line_per_problem() {
    let bench = Workbench::with_config(json!({
        "mcpServers": {
            "lost": { "command": "${CALLGATE_TEST_UNSET}" },
            "away": { "url": "http://127.0.0.1:1/mcp" },
            "gone": { "command": "no-such-program" },
            "ticketing": demo_ticketing(),
        },
        "permissions": { "deny": ["ticketing_no"] },
    }));
    let ran = bench.callgate(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let (lines, to_do) = ran.stdout.split_once("what to do:\n").expect("the end");
    for (what, advice) in [
        ("  server lost: ", "set it"),
        ("  server away: ", "check that it runs"),
        ("  server gone: ", "see its line above"),
        ("  rules: ", "correct or remove it"),
    ] {
        let mut of = to_do.lines().filter(|line| line.starts_with(what));
        let line = of.next().unwrap_or_else(|| panic!("{what}: {ran:#?}"));
        assert!(line.contains(advice) && of.next().is_none(), "{line}");
        assert!(!lines.contains(advice), "{advice}: {lines}");
    }
    assert!(lines.contains("install it"), "{lines}");
}

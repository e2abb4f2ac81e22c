//! Lists of tools: patterns, servers, rules, and servers that are not in use.

use callgate_tests::{Workbench, demo_logging, demo_ticketing, odd};
use serde_json::{Value, json};

use crate::cli::check_output;

/// Issues and logs, of which the first are trusted.
fn bench(permissions: Value) -> Workbench {
    let mut issues = demo_ticketing();
    issues["trusted"] = json!(true);
    Workbench::with_config(json!({
        "mcpServers": { "issues": issues, "shop": demo_logging() },
        "permissions": permissions,
    }))
}

/// The functions at the start of the rows.
fn listed(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.contains('_'));
    rows.filter_map(|row| row.split_whitespace().next())
        .collect()
}

#[test]
fn tools_and_types_take_patterns_and_servers() {
    let bench = bench(json!({}));
    for (patterns, expected) in [
        (
            &[][..],
            &["issues_createIssue", "issues_listIssues", "shop_getLogs"][..],
        ),
        (&["*_list*"], &["issues_listIssues"]),
        (&["shop"], &["shop_getLogs"]),
        (
            &["issues_create*", "shop"],
            &["issues_createIssue", "shop_getLogs"],
        ),
        (&["shop_getLogs"], &["shop_getLogs"]),
    ] {
        let tools = bench.callgate(&[&["tools"][..], patterns].concat());
        assert_eq!(listed(&tools.stdout), expected, "{tools:#?}");
        let names = ["types", "--detail", "name"];
        let types = bench.callgate(&[&names[..], patterns].concat());
        assert_eq!(listed(&types.stdout), expected, "{types:#?}");
    }
    for (command, said) in [
        (
            "tools shopp",
            "no tool is named \"shopp\"; did you mean the server \"shop\"?",
        ),
        (
            "types issues_lst*",
            "no tool matches \"issues_lst*\"; did you mean \"issues_listIssues\"?",
        ),
        (
            "tools issues_listIsues shop",
            "did you mean \"issues_listIssues\"?",
        ),
        ("types zebra*", "no tool matches \"zebra*\""),
    ] {
        check_output(&bench, command, 2, &[said]);
    }
}

#[test]
fn types_of_named_tools_omit_the_sandbox_globals() {
    let bench = bench(json!({}));
    for (patterns, has_globals) in [
        (&["types"][..], true),
        (&["types", "shop_getLogs"], false),
        (&["types", "issues"], false),
    ] {
        let types = bench.callgate(patterns).stdout;
        assert_eq!(
            types.contains("declare namespace mcp"),
            has_globals,
            "{types}"
        );
        assert!(types.contains("declare function "), "{types}");
    }
}

#[test]
fn tools_shows_rules_and_hints() {
    let low = json!({ "at": "/priority", "equals": "low" });
    let low = json!({ "tool": "issues_createIssue", "arguments": [low] });
    for (permissions, expected) in [
        (json!({ "allow": [low] }), ["allow*", "allow", "ask"]),
        (
            json!({ "deny": ["shop_*"], "ask": ["issues_list*"] }),
            ["ask", "ask", "deny"],
        ),
        (
            json!({ "allow": ["*"], "deny": [low] }),
            ["allow*", "allow", "allow"],
        ),
    ] {
        let bench = bench(permissions);
        let tools = bench.callgate(&["tools"]);
        let rows: Vec<&str> = tools.stdout.lines().filter(|it| it.contains('_')).collect();
        let words = |row: &&str| {
            row.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let words: Vec<Vec<String>> = rows.iter().map(words).collect();
        let rules: Vec<&str> = words.iter().map(|words| words[1].as_str()).collect();
        assert_eq!(rules, expected, "{}", tools.stdout);
        // Only what a trusted server says of its tool is shown.
        let marked: Vec<bool> = words.iter().map(|words| words[2] == "read-only").collect();
        assert_eq!(marked, [false, true, false], "{}", tools.stdout);
        let column = "  issues_createIssue  ".len();
        for (row, rule) in rows.iter().zip(expected) {
            assert!(row[column..].starts_with(rule), "{}", tools.stdout);
        }
        let json = bench.callgate(&["tools", "--json"]).json();
        let json = json.as_array().expect("an array");
        let rules: Vec<&Value> = json.iter().map(|tool| &tool["rule"]).collect();
        assert_eq!(rules, expected);
        let marked: Vec<&Value> = json.iter().map(|tool| &tool["readOnly"]).collect();
        assert_eq!(marked, [false, true, false]);
    }
}

#[test]
fn tools_names_servers_that_are_not_in_use() {
    let mut manual = odd("flaky");
    manual["connect"] = json!("manual");
    let bench = Workbench::new(json!({
        "manual": manual,
        "off": { "command": "x", "disabled": true },
        "lost": { "command": "${CALLGATE_TEST_UNSET}" },
        "issues": demo_ticketing(),
    }));
    let all = bench.callgate(&["tools"]);
    for line in [
        "manual: disabled; to use it, add --enable NAME",
        "off: turned off in the configuration",
        "lost: ",
    ] {
        let mut lines = all.stdout.lines();
        assert!(lines.any(|it| it.starts_with(line)), "{line}: {all:#?}");
    }
    let one = bench.callgate(&["tools", "off"]).stdout;
    assert_eq!(one, "off: turned off in the configuration\n");
}

#[test]
fn enable_flag_starts_a_manual_server() {
    let mut manual = odd("flaky");
    manual["connect"] = json!("manual");
    let bench = Workbench::new(json!({ "one": manual, "two": manual }));
    let flags = ["--enable", "two"];
    let ran = bench.run("return await two_text({ text: 'up' })", &flags);
    assert_eq!((ran.code, &*ran.stdout), (0, "up\n"), "{ran:#?}");
    let called = bench.callgate(&["call", "one_text", "{}", "--enable", "two"]);
    assert_eq!(called.code, 2, "{called:#?}");
    check_output(&bench, "tools two --enable two", 0, &["two_text"]);
    let near = "no server that is on is named \"twoo\"; did you mean \"two\"?";
    check_output(&bench, "tools --enable twoo", 2, &[near]);
}

#[test]
fn search_joins_words_and_ranks_denied_last() {
    for (deny, first) in [
        (json!([]), ["issues_createIssue", "ask"]),
        (json!(["issues_create*"]), ["issues_listIssues", "allow"]),
    ] {
        let bench = bench(json!({ "deny": deny }));
        let found = bench.callgate(&["search", "create", "an", "issue", "--limit", "9"]);
        assert_eq!(found.code, 0, "{found:#?}");
        let row = found.stdout.lines().next().expect("a row");
        let words: Vec<&str> = row.split_whitespace().take(2).collect();
        assert_eq!(words, first, "{found:#?}");
    }
}

#[test]
fn auth_status_lists_missing_logins_as_json() {
    let web = json!({ "url": "http://127.0.0.1:1/mcp" });
    let bench = Workbench::new(json!({ "web": web, "mail": web, "issues": demo_ticketing() }));
    for (command, servers) in [
        (&["auth", "status", "--json"][..], &["web", "mail"][..]),
        (&["auth", "status", "mail", "--json"], &["mail"]),
    ] {
        let status = bench.callgate(command);
        assert_eq!(status.code, 1, "{status:#?}");
        let missing = |name: &&str| json!({ "server": name, "loggedIn": false, "login": null });
        let missing: Vec<Value> = servers.iter().map(missing).collect();
        assert_eq!(status.json(), json!(missing), "{status:#?}");
    }
}

#[test]
fn options_in_help_are_in_groups() {
    let bench = Workbench::empty();
    let help = bench.callgate(&["run", "--help"]).stdout;
    for heading in ["Rules:", "Output:", "Limits:", "Global options:"] {
        assert!(
            help.lines().any(|line| line == heading),
            "{heading}: {help}"
        );
    }
    let help = bench.callgate(&["init", "--help"]).stdout;
    assert!(help.contains("callgate.json in this folder"), "{help}");
    assert!(!help.contains("the nearest callgate.json"), "{help}");
}

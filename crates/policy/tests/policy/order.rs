//! Which rule decides.

use std::sync::Arc;

use callgate_policy::{CallFacts, Count, Grant, Hints, Permissions, Rules, Scope};
use serde_json::json;

use crate::support::{facts, granted, line, name, rules, table};

/// A function, and if it is read-only and of a trusted server, in each line.
#[track_caller]
fn check(rules: &Rules, cases: &str) {
    table(cases, |case| {
        let arguments = json!({});
        let read_only = case[1].as_bool();
        line(&rules.decide(&CallFacts {
            name: name(case[0].as_str().expect("a name"), "fs"),
            hints: Hints {
                read_only,
                ..Hints::default()
            },
            trusted: case[2] == true,
            ..facts(Some(&arguments))
        }))
    });
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    let rules = Rules::builder()
        .allow("logging_*")
        .allow("ticketing_createIssue")
        .ask("*_write*")
        .deny("*delete*")
        .deny("ticketing_close")
        .build();
    let rules = granted(rules.expect("patterns"), "git_log");
    check(
        &rules,
        r#"
        ["logging_getLogs", false, false] → Allow: allowed by rule "logging_*" in permissions.allow
        ["logging_writeLog", true, true] → Ask: needs approval by rule "*_write*" in permissions.ask
        ["logging_write_or_delete", true, true] → Deny: denied by rule "*delete*" in permissions.deny
        ["git_log", false, false] → Allow: allowed by rule "git_log" in --allow
        ["git_show", true, true] → Allow: allowed: a read-only tool of a trusted server
        ["git_show", true, false] → Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted
        ["git_show", false, true] → Ask: needs approval: no rule matches"#,
    );
    check(
        &granted(rules, "*"),
        r#"
        ["notes_write", false, false] → Allow: allowed by rule "*" in --allow
        ["notes_delete", false, false] → Deny: denied by rule "*delete*" in permissions.deny"#,
    );
    let none = r#"["git_show", false, false] → Ask: needs approval: no rule matches"#;
    check(&Rules::default(), none);
}

#[test]
fn first_matching_rule_of_a_list_decides() {
    let rules = rules(json!({ "allow": [
        { "tool": "fs_*", "arguments": [{ "at": "/path", "prefix": "/a/" }] },
        "fs_write",
        "*",
    ]}));
    table(
        r#"
        { "path": "/a/x" } → Allow: allowed by rule "fs_*" (/path begins with "/a/") in permissions.allow
        { "path": "/b/x" } → Allow: allowed by rule "fs_write" in permissions.allow"#,
        |arguments| line(&rules.decide(&facts(Some(&arguments)))),
    );
}

/// A call with other arguments than the rules allow is told which ones they allow.
#[test]
fn denial_reason_names_allowed_arguments() {
    let write =
        |path: &str| json!({ "tool": "fs_write", "arguments": [{ "at": "/path", "glob": path }] });
    let small = json!({ "tool": "fs_*", "arguments": [
        { "at": "/path", "prefix": "/tmp/" }, { "at": "/size", "max": 9 },
    ] });
    for (allow, expected) in [
        (
            json!([write("/out/**"), "fs_read"]),
            r#"/path matches "/out/**""#,
        ),
        (
            json!([write("/out/*"), small]),
            r#"/path matches "/out/*", or /path begins with "/tmp/" and /size ≤ 9"#,
        ),
        (
            json!([write("/a"), write("/b"), write("/c"), write("/d")]),
            r#"/path matches "/a", or /path matches "/b", or /path matches "/c", or as other rules permit"#,
        ),
    ] {
        let rules = rules(json!({ "allow": allow }));
        for arguments in [
            json!({ "path": "/etc/x", "size": 1 }),
            json!({ "paht": "/out/x" }),
        ] {
            let said = line(&rules.decide(&facts(Some(&arguments))));
            let expected = format!("Ask: needs approval: it is allowed only where {expected}");
            assert_eq!(said, expected);
        }
    }
}

#[test]
fn grants_come_after_deny_and_before_ask() {
    let arguments = json!({ "path": "/x" });
    let facts = facts(Some(&arguments));
    table(
        r#"
        ["run", { "ask": ["*"], "allow": ["*"] }] → Allow: allowed by the grant for this run
        ["session", {}] → Allow: allowed by the grant for this session
        ["session", { "deny": ["*"] }] → Deny: denied by rule "*" in permissions.deny"#,
        |case| {
            let permissions = Permissions::new(Arc::new(rules(case[1].clone())), Arc::default());
            let is_run = case[0] == "run";
            let scope = if is_run { Scope::Run } else { Scope::Session };
            permissions.grant(Grant::new("fs_write"), scope);
            permissions.grant(Grant::new("other_tool"), scope);
            assert_eq!(
                permissions.decide(&facts, Count::Nothing),
                permissions.decide(&facts, Count::All)
            );
            line(&permissions.decide(&facts, Count::All))
        },
    );
}

/// Nothing is promised, and where more is to be said of a call than one rule says, it is named. A
/// rule that asks for some arguments asks for no more than one that asks for all.
#[test]
fn decision_without_arguments_names_conditional_rules() {
    let cases = r#"
        { "allow": [COND] } → Ask: needs approval: it depends on the arguments, by rule "*" (/n ≤ 5) in permissions.allow
        { "allow": ["*"], "deny": [COND] } → Ask: denied for some arguments, by rule "*" (/n ≤ 5) in permissions.deny
        { "allow": ["*"], "ask": [COND] } → Ask: needs approval: it depends on the arguments, by rule "*" (/n ≤ 5) in permissions.ask
        { "allow": [COND, "*"] } → Allow: allowed by rule "*" in permissions.allow
        { "deny": [COND, "*"] } → Deny: denied by rule "*" in permissions.deny
        { "deny": [COND] } → Ask: needs approval: no rule matches; denied for some arguments, by rule "*" (/n ≤ 5) in permissions.deny
        { "allow": [EXPIRED], "ask": ["fs_*"] } → Ask: needs approval by rule "fs_*" in permissions.ask: rule "fs_write" (until 2026-01-01T00:00:00Z, one definition) in permissions.allow has expired
        { "deny": [COND], "allow": [EXPIRED], "ask": ["fs_*"] } → Ask: needs approval by rule "fs_*" in permissions.ask: rule "fs_write" (until 2026-01-01T00:00:00Z, one definition) in permissions.allow has expired; denied for some arguments, by rule "*" (/n ≤ 5) in permissions.deny
        { "ask": [COND, "fs_*"] } → Ask: needs approval by rule "fs_*" in permissions.ask"#;
    let condition = json!({ "tool": "*", "arguments": [{ "at": "/n", "max": 5 }] });
    let expired = json!({ "tool": "fs_write", "expires": "2026-01-01T00:00:00Z",
        "definition": format!("sha256:{}", "0".repeat(64)) });
    let cases = cases.replace("COND", &condition.to_string());
    let cases = cases.replace("EXPIRED", &expired.to_string());
    table(&cases, |lists| line(&rules(lists).decide(&facts(None))));
}

//! Which rule decides.

use callgate_policy::{CallFacts, Count, Grant, Hints, Permissions, Rules, Scope};
use expect_test::{Expect, expect};
use serde_json::json;
use std::sync::Arc;

use crate::support::{facts, granted, line, rules};

#[track_caller]
fn check(rules: &Rules, function: &str, read_only: bool, trusted: bool, expected: Expect) {
    let arguments = json!({});
    let decision = rules.decide(&CallFacts {
        function,
        hints: Hints {
            read_only: Some(read_only),
            ..Hints::default()
        },
        trusted,
        ..facts(Some(&arguments))
    });
    expected.assert_eq(&line(&decision));
}

fn mixed() -> Rules {
    let rules = Rules::new(
        ["logging_*", "ticketing_createIssue"],
        ["*_write*"],
        ["*delete*", "ticketing_close"],
    );
    granted(rules.expect("patterns"), "git_log")
}

#[test]
fn a_grant_comes_after_deny_and_before_ask() {
    let rules = granted(mixed(), "*");
    let check = |function, expected: Expect| check(&rules, function, false, false, expected);
    check(
        "notes_write",
        expect![[r#"Allow: allowed by rule "*" in --allow"#]],
    );
    check(
        "notes_delete",
        expect![[r#"Deny: denied by rule "*delete*" in permissions.deny"#]],
    );
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    let rules = mixed();
    check(
        &rules,
        "logging_getLogs",
        false,
        false,
        expect![[r#"Allow: allowed by rule "logging_*" in permissions.allow"#]],
    );
    check(
        &rules,
        "logging_writeLog",
        true,
        true,
        expect![[r#"Ask: needs approval by rule "*_write*" in permissions.ask"#]],
    );
    check(
        &rules,
        "logging_write_or_delete",
        true,
        true,
        expect![[r#"Deny: denied by rule "*delete*" in permissions.deny"#]],
    );
    check(
        &rules,
        "git_log",
        false,
        false,
        expect![[r#"Allow: allowed by rule "git_log" in --allow"#]],
    );
}

#[test]
fn without_a_rule_only_a_trusted_read_only_tool_is_allowed() {
    let rules = mixed();
    check(
        &rules,
        "git_show",
        true,
        true,
        expect!["Allow: allowed: a read-only tool of a trusted server"],
    );
    check(
        &rules,
        "git_show",
        true,
        false,
        expect![
            "Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted"
        ],
    );
    check(
        &rules,
        "git_show",
        false,
        true,
        expect!["Ask: needs approval: no rule matches"],
    );
    check(
        &Rules::default(),
        "git_show",
        false,
        false,
        expect!["Ask: needs approval: no rule matches"],
    );
}

#[test]
fn of_one_list_the_first_that_matches_decides() {
    let rules = rules(json!({ "allow": [
        { "tool": "fs_*", "arguments": [{ "at": "/path", "prefix": "/a/" }] },
        "fs_write",
        "*",
    ]}));
    let check = |path: &str, expected: Expect| {
        let arguments = json!({ "path": path });
        expected.assert_eq(&line(&rules.decide(&facts(Some(&arguments)))));
    };
    check(
        "/a/x",
        expect![[
            r#"Allow: allowed by rule "fs_*" (/path begins with "/a/") in permissions.allow"#
        ]],
    );
    check(
        "/b/x",
        expect![[r#"Allow: allowed by rule "fs_write" in permissions.allow"#]],
    );
}

#[test]
fn grants_come_after_deny_and_before_ask() {
    let arguments = json!({ "path": "/x" });
    let facts = facts(Some(&arguments));
    let check = |lists, scope: Scope, expected: Expect| {
        let permissions = Permissions::new(Arc::new(rules(lists)), Arc::default());
        permissions.grant(Grant::new("fs_write"), scope);
        permissions.grant(Grant::new("other_tool"), scope);
        assert_eq!(
            permissions.decide(&facts, Count::Nothing),
            permissions.decide(&facts, Count::All)
        );
        expected.assert_eq(&line(&permissions.decide(&facts, Count::All)));
    };
    check(
        json!({ "ask": ["*"], "allow": ["*"] }),
        Scope::Run,
        expect!["Allow: allowed by the grant for this run"],
    );
    check(
        json!({}),
        Scope::Session,
        expect!["Allow: allowed by the grant for this session"],
    );
    check(
        json!({ "deny": ["*"] }),
        Scope::Session,
        expect![[r#"Deny: denied by rule "*" in permissions.deny"#]],
    );
}

#[test]
fn before_there_are_arguments_nothing_is_promised() {
    let check = |lists, expected: Expect| {
        expected.assert_eq(&line(&rules(lists).decide(&facts(None))));
    };
    let conditional = json!({ "tool": "*", "arguments": [{ "at": "/n", "max": 5 }] });
    check(
        json!({ "allow": [conditional] }),
        expect![[
            r#"Ask: needs approval: it depends on the arguments, by rule "*" (/n ≤ 5) in permissions.allow"#
        ]],
    );
    check(
        json!({ "allow": ["*"], "deny": [conditional] }),
        expect![[r#"Ask: denied for some arguments, by rule "*" (/n ≤ 5) in permissions.deny"#]],
    );
    check(
        json!({ "allow": ["*"], "ask": [conditional] }),
        expect![[
            r#"Ask: needs approval: it depends on the arguments, by rule "*" (/n ≤ 5) in permissions.ask"#
        ]],
    );
    check(
        json!({ "allow": [conditional, "*"] }),
        expect![[r#"Allow: allowed by rule "*" in permissions.allow"#]],
    );
    check(
        json!({ "deny": [conditional, "*"] }),
        expect![[r#"Deny: denied by rule "*" in permissions.deny"#]],
    );
}

/// Where more is to be said of a call than one rule says.
#[test]
fn what_besides_decides_is_named() {
    let secret =
        json!({ "tool": "fs_write", "arguments": [{ "at": "/path", "equals": "secret" }] });
    let expired = json!({ "tool": "fs_write", "expires": "2026-01-01T00:00:00Z",
        "definition": format!("sha256:{}", "0".repeat(64)) });
    let check = |lists, expected: Expect| {
        expected.assert_eq(&line(&rules(lists).decide(&facts(None))));
    };
    check(
        json!({ "deny": [secret] }),
        expect![[
            r#"Ask: needs approval: no rule matches; denied for some arguments, by rule "fs_write" (/path = "secret") in permissions.deny"#
        ]],
    );
    check(
        json!({ "deny": [secret], "allow": ["fs_*"] }),
        expect![[
            r#"Ask: denied for some arguments, by rule "fs_write" (/path = "secret") in permissions.deny"#
        ]],
    );
    check(
        json!({ "allow": [expired], "ask": ["fs_*"] }),
        expect![[
            r#"Ask: needs approval by rule "fs_*" in permissions.ask: rule "fs_write" (until 2026-01-01T00:00:00Z, one definition) in permissions.allow has expired"#
        ]],
    );
    check(
        json!({ "deny": [secret], "allow": [expired], "ask": ["fs_*"] }),
        expect![[
            r#"Ask: needs approval by rule "fs_*" in permissions.ask: rule "fs_write" (until 2026-01-01T00:00:00Z, one definition) in permissions.allow has expired; denied for some arguments, by rule "fs_write" (/path = "secret") in permissions.deny"#
        ]],
    );
    check(
        json!({ "deny": [secret, "fs_*"] }),
        expect![[r#"Deny: denied by rule "fs_*" in permissions.deny"#]],
    );
    // It denies no more than the one that asks.
    let also = json!({ "tool": "fs_write", "arguments": [{ "at": "/path", "equals": "x" }] });
    check(
        json!({ "ask": [also, "fs_*"] }),
        expect![[r#"Ask: needs approval by rule "fs_*" in permissions.ask"#]],
    );
}

//! Tools with aliases, which only restricting rules match.

use std::sync::{Arc, LazyLock};

use callgate_policy::{CallFacts, Count, Grant, Hints, Permissions, SessionGrants, ToolName};
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{facts, granted, known, line, rules, table, unmatched};

const FUNCTION: &str = "github_$issues_drop";
const UNSUFFIXED: &str = "github_issues_drop";

static ALIASES: LazyLock<[String; 1]> = LazyLock::new(|| [UNSUFFIXED.to_owned()]);

fn name() -> ToolName<'static> {
    ToolName {
        function: FUNCTION,
        aliases: &*ALIASES,
        server: "github",
        tool: "issues-drop",
    }
}

fn call(trusted: bool, arguments: Option<&Value>) -> CallFacts<'_> {
    CallFacts {
        name: name(),
        hints: Hints {
            read_only: Some(true),
            ..Hints::default()
        },
        trusted,
        ..facts(arguments)
    }
}

/// Lists of rules in each line; some of the calls are of a trusted server.
#[track_caller]
fn check(trusted: bool, cases: &str) {
    let arguments = json!({ "path": "/data" });
    let decide = |lists| line(&rules(lists).decide(&call(trusted, Some(&arguments))));
    table(cases, decide);
}

#[test]
fn deny_and_ask_rules_match_the_unsuffixed_name() {
    check(
        false,
        r#"
        { "allow": ["github_*"], "deny": ["github_issues_drop"] } → Deny: denied by rule "github_issues_drop" in permissions.deny
        { "allow": ["github_*"], "deny": ["github_issues_*"] } → Deny: denied by rule "github_issues_*" in permissions.deny
        { "allow": ["github_*"], "deny": ["*_issues_drop"] } → Deny: denied by rule "*_issues_drop" in permissions.deny
        { "allow": ["github_*"], "ask": ["github_issues_drop"] } → Ask: needs approval by rule "github_issues_drop" in permissions.ask
        { "allow": ["github_*"], "deny": ["github_$issues_drop"] } → Deny: denied by rule "github_$issues_drop" in permissions.deny"#,
    );
    // The other conditions are about the tool itself.
    let arguments = json!({ "path": "/data" });
    let decide = |mut entry: Value| {
        entry["tool"] = UNSUFFIXED.into();
        let lists = json!({ "allow": ["github_*"], "deny": [entry] });
        let decision = rules(lists).decide(&call(false, Some(&arguments)));
        format!("{:?}", decision.verdict)
    };
    table(
        r#"
        { "arguments": [{ "at": "/path", "prefix": "/data" }] } → Deny
        { "arguments": [{ "at": "/path", "prefix": "/home" }] } → Allow
        { "arguments": [{ "at": "/missing", "equals": 1 }] } → Deny
        { "server": "github" } → Deny
        { "server": "github_issues" } → Allow
        { "expires": "2026-06-01T12:00:01Z" } → Deny
        { "expires": "2026-06-01T12:00:00Z" } → Allow"#,
        decide,
    );
}

#[test]
fn allow_rules_and_grants_match_only_the_function() {
    check(
        false,
        r#"
        { "allow": ["github_issues_drop", "github_issues_*"] } → Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted
        { "allow": ["github_$issues_drop"] } → Allow: allowed by rule "github_$issues_drop" in permissions.allow"#,
    );
    let granted = granted(rules(json!({ "ask": ["*"] })), UNSUFFIXED);
    expect![[r#"Ask: needs approval by rule "*" in permissions.ask"#]]
        .assert_eq(&line(&granted.decide(&call(true, None))));
}

#[test]
fn every_rule_matches_the_pair_of_names() {
    check(
        false,
        r#"
        { "allow": ["github/issues-drop"] } → Allow: allowed by rule "github/issues-drop" in permissions.allow
        { "allow": ["github/*"], "ask": ["*/issues-drop"] } → Ask: needs approval by rule "*/issues-drop" in permissions.ask
        { "allow": ["github_*"], "deny": ["github/issues-drop"] } → Deny: denied by rule "github/issues-drop" in permissions.deny
        { "allow": ["github_*"], "deny": ["github/issues_drop", "github_issues/drop"] } → Allow: allowed by rule "github_*" in permissions.allow"#,
    );
    let session = Arc::new(SessionGrants::new());
    session.add(Grant::new("github/issues-drop"));
    let permissions = Permissions::new(Arc::default(), session);
    let decision = permissions.decide(&call(false, None), Count::All);
    assert!(line(&decision).starts_with("Ask"), "{decision}");
}

/// Calls beyond the limit of a rule are not allowed by the server's hint.
#[test]
fn grant_for_unsuffixed_name_does_not_apply() {
    check(
        true,
        r#"
        { "allow": ["github_issues_drop"] } → Allow: allowed: a read-only tool of a trusted server
        { "allow": [{ "tool": "github_issues_drop", "maxCalls": 3 }] } → Ask: needs approval: rule "github_issues_drop" (3 calls) in permissions.allow is void: it is for a different name of the tool
        { "allow": [{ "tool": "github_issues_drop", "expires": "2026-06-02T12:00:00Z" }], "ask": ["*_drop"] } → Ask: needs approval by rule "*_drop" in permissions.ask
        { "allow": [{ "tool": "github_issues_drop", "maxCalls": 3 }, "github_*"] } → Allow: allowed by rule "github_*" in permissions.allow"#,
    );
    // It counts nothing.
    let once = json!({ "allow": [{ "tool": "github_*", "maxCalls": 1 }] });
    let permissions = Permissions::new(Arc::new(rules(once)), Arc::default());
    let aliases = ["github_drop".to_owned()];
    let renamed = CallFacts {
        name: ToolName {
            function: "hub_drop",
            aliases: &aliases,
            ..name()
        },
        ..call(true, None)
    };
    expect![[r#"Ask: needs approval: rule "github_*" (1 call) in permissions.allow is void: it is for a different name of the tool"#]].assert_eq(&line(&permissions.decide(&renamed, Count::All)));
    expect![[r#"Allow: allowed by rule "github_*" (1 call) in permissions.allow"#]]
        .assert_eq(&line(&permissions.decide(&call(true, None), Count::All)));
}

#[test]
fn unsuffixed_name_in_allow_rule_is_unmatched() {
    let mut tool = known(FUNCTION, "github");
    tool.facts.name = name();
    let lists = json!({
        "allow": [UNSUFFIXED, "github_issues_*", FUNCTION, "github/issues-drop"],
        "ask": [UNSUFFIXED],
        "deny": [UNSUFFIXED, "github_issues_*"],
    });
    let found = unmatched(&rules(lists), &[tool], &[]);
    let found: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
    expect![[r#"
        rule "github_issues_drop" in permissions.allow matches no tool?
        rule "github_issues_*" in permissions.allow matches no tool?
        rule "github_$issues_drop" in permissions.allow never decides: rule "github_issues_drop" in permissions.deny comes first
        rule "github/issues-drop" in permissions.allow never decides: rule "github_issues_drop" in permissions.deny comes first
        rule "github_issues_drop" in permissions.ask never decides: rule "github_issues_drop" in permissions.deny comes first"#]].assert_eq(&found.join("\n"));
}

#[test]
fn deny_rule_in_unknown_spelling_forbids_nothing() {
    let deny = rules(json!({ "deny": ["s_get_user_7e0bb0c2", "mcp__s__get_user"] }));
    let found = unmatched(&deny, &[known("s_get_user", "s")], &[]);
    assert!(
        found.len() == 2 && found.iter().all(|it| it.forbids),
        "{found:?}"
    );
}

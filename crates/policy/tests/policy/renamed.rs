//! Tools that have another name than they would have alone, or beside other tools:
//! what holds calls up goes on doing so, and what lets them through does not.

use std::sync::{Arc, LazyLock};

use callgate_policy::{
    CallFacts, Count, Grant, Hints, KnownTool, OtherNames, Permissions, SessionGrants,
};
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{NOW, facts, granted, known, line, rules, table, time};

const FUNCTION: &str = "github_$issues_drop";
const NATURAL: &str = "github_issues_drop";
const SUFFIXED: &str = "github_$issues_drop_01234567";

static NAMES: LazyLock<Arc<OtherNames>> = LazyLock::new(|| other_names(NATURAL));

fn other_names(natural: &str) -> Arc<OtherNames> {
    Arc::new(OtherNames::new(
        Some(natural),
        "github_$issues_drop_0123456789abcdef",
    ))
}

fn call<'a>(trusted: bool, arguments: Option<&'a Value>) -> CallFacts<'a> {
    CallFacts {
        function: FUNCTION,
        other_names: Some(&NAMES),
        server: "github",
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
    // Whatever else a rule says holds of the tool itself.
    let arguments = json!({ "path": "/data" });
    let decide = |mut entry: Value| {
        entry["tool"] = NATURAL.into();
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
    let granted = granted(rules(json!({ "ask": ["*"] })), NATURAL);
    expect![[r#"Ask: needs approval by rule "*" in permissions.ask"#]]
        .assert_eq(&line(&granted.decide(&call(true, None))));
}

/// Not by another's suffix, nor by stars where the suffix would be, and what widens does not.
#[test]
fn deny_and_ask_rules_match_the_suffixed_name() {
    check(
        false,
        r#"
        { "allow": ["github_*"], "deny": ["github_$issues_drop_01234567"] } → Deny: denied by rule "github_$issues_drop_01234567" in permissions.deny
        { "allow": ["github_*"], "deny": ["github_*_01234567"] } → Deny: denied by rule "github_*_01234567" in permissions.deny
        { "allow": ["github_*"], "deny": ["*_01234567"] } → Deny: denied by rule "*_01234567" in permissions.deny
        { "allow": ["github_*"], "ask": ["github_$issues_drop_01234567"] } → Ask: needs approval by rule "github_$issues_drop_01234567" in permissions.ask
        { "allow": ["github_*"], "ask": ["github_$issues_drop_*", "*_drop_*", "*67"], "deny": ["github_$issues_drop_89abcdef"] } → Allow: allowed by rule "github_*" in permissions.allow
        { "allow": ["github_$issues_drop_01234567"] } → Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted"#,
    );
    check(
        true,
        r#"
        { "allow": [{ "tool": "github_$issues_drop_01234567", "maxCalls": 3 }] } → Ask: needs approval: rule "github_$issues_drop_01234567" (3 calls) in permissions.allow is void, it is for another name of the tool"#,
    );
}

/// A rule for three calls does not leave the rest to the server's word.
#[test]
fn grant_for_unsuffixed_name_does_not_apply() {
    check(
        true,
        r#"
        { "allow": ["github_issues_drop"] } → Allow: allowed: a read-only tool of a trusted server
        { "allow": [{ "tool": "github_issues_drop", "maxCalls": 3 }] } → Ask: needs approval: rule "github_issues_drop" (3 calls) in permissions.allow is void, it is for another name of the tool
        { "allow": [{ "tool": "github_issues_drop", "expires": "2026-06-02T12:00:00Z" }], "ask": ["*_drop"] } → Ask: needs approval by rule "*_drop" in permissions.ask
        { "allow": [{ "tool": "github_issues_drop", "maxCalls": 3 }, "github_*"] } → Allow: allowed by rule "github_*" in permissions.allow"#,
    );
    // It counts nothing.
    let once = json!({ "allow": [{ "tool": "github_*", "maxCalls": 1 }] });
    let permissions = Permissions::new(Arc::new(rules(once)), Arc::default());
    let github_drop = other_names("github_drop");
    let lost = CallFacts {
        function: "hub_drop",
        other_names: Some(&github_drop),
        ..call(true, None)
    };
    expect![[r#"Ask: needs approval: rule "github_*" (1 call) in permissions.allow is void, it is for another name of the tool"#]].assert_eq(&line(&permissions.decide(&lost, Count::All)));
    expect![[r#"Allow: allowed by rule "github_*" (1 call) in permissions.allow"#]]
        .assert_eq(&line(&permissions.decide(&call(true, None), Count::All)));
}

#[test]
fn every_rule_matches_the_long_name() {
    let names = OtherNames::new(None, "git_log_0123456789abcdef").with_long(Some("git_git_log"));
    let names = Arc::new(names);
    let call = CallFacts {
        function: "git_log",
        other_names: Some(&names),
        ..call(false, None)
    };
    for pattern in ["git_git_log", "git_git_*", "git_log", "*_git_l*"] {
        for (list, verdict) in [("allow", "Allow"), ("ask", "Ask"), ("deny", "Deny")] {
            let lists = json!({ list: [pattern], "allow": ["git_*", pattern] });
            let decision = rules(lists).decide(&call);
            assert_eq!(
                format!("{:?}", decision.verdict),
                verdict,
                "{list} {pattern}"
            );
        }
    }
    // Suffixed names hold calls up alone.
    let lists = json!({ "allow": ["*"], "deny": ["git_git_log_01234567"] });
    assert!(line(&rules(lists).decide(&call)).starts_with("Deny"));
    let lists = json!({ "allow": ["git_git_log_01234567"] });
    assert!(line(&rules(lists).decide(&call)).starts_with("Ask"));
    let granted = granted(rules(json!({ "ask": ["*"] })), "git_git_log");
    assert!(line(&granted.decide(&call)).starts_with("Allow"));
    // The name of a session's grant is not a pattern.
    for (function, verdict) in [("git_git_log", "Allow"), ("git_git_*", "Ask")] {
        let session = Arc::new(SessionGrants::new());
        session.add(Grant::new(function));
        let permissions = Permissions::new(Arc::default(), session);
        let decision = permissions.decide(&call, Count::All);
        assert_eq!(format!("{:?}", decision.verdict), verdict, "{function}");
    }
    let tool = KnownTool {
        other_names: Some(&names),
        ..known("git_log", "git")
    };
    let rules = rules(json!({ "allow": ["git_git_log"] }));
    assert_eq!(rules.unmatched([tool], time(NOW)), []);
}

#[test]
fn unmatched_rule_suggests_the_new_name() {
    let tool = KnownTool {
        other_names: Some(&NAMES),
        ..known(FUNCTION, "github")
    };
    let s_get_user = other_names("s_get_user");
    let suffixed = KnownTool {
        other_names: Some(&s_get_user),
        ..known("s_get_user_7e0bb0c2", "s")
    };
    let lists = json!({
        "allow": [NATURAL, "github_issues_*", "s_get_user", SUFFIXED],
        "ask": ["s_get_user", SUFFIXED],
        "deny": [NATURAL, "github_issues_*"],
    });
    let found = rules(lists).unmatched([tool, suffixed], time(NOW));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    expect![[r#"
        rule "github_issues_drop" in permissions.allow matches no tool; did you mean "github_$issues_drop"?
        rule "github_issues_*" in permissions.allow matches no tool; the nearest is "github_$issues_drop"
        rule "s_get_user" in permissions.allow matches no tool; did you mean "s_get_user_7e0bb0c2"?
        rule "github_$issues_drop_01234567" in permissions.allow matches no tool; did you mean "github_$issues_drop"?"#]].assert_eq(&found.join("\n"));
}

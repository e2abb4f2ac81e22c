//! Tools that have another name than they would have alone, or beside other tools:
//! what holds calls up goes on doing so, and what lets them through does not.

use std::sync::{Arc, LazyLock};

use callgate_policy::{
    CallFacts, Count, Grant, Hints, KnownTool, OtherNames, Permissions, SessionGrants,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{NOW, facts, granted, line, rules, time};

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
        tool: "issues_drop",
        hints: Hints {
            read_only: Some(true),
            ..Hints::default()
        },
        trusted,
        ..facts(arguments)
    }
}

#[track_caller]
fn check(lists: Value, trusted: bool, expected: Expect) {
    let arguments = json!({ "path": "/data" });
    let decision = rules(lists).decide(&call(trusted, Some(&arguments)));
    expected.assert_eq(&line(&decision));
}

#[test]
fn deny_and_ask_rules_go_by_the_natural_name_too() {
    for pattern in [NATURAL, "github_issues_*", "*_issues_drop"] {
        let lists = json!({ "allow": ["github_*"], "deny": [pattern] });
        assert_eq!(
            line(&rules(lists).decide(&call(false, None))),
            format!("Deny: denied by rule \"{pattern}\" in permissions.deny")
        );
    }
    check(
        json!({ "allow": ["github_*"], "ask": [NATURAL] }),
        false,
        expect![[r#"Ask: needs approval by rule "github_issues_drop" in permissions.ask"#]],
    );
    check(
        json!({ "allow": ["github_*"], "deny": [FUNCTION] }),
        false,
        expect![[r#"Deny: denied by rule "github_$issues_drop" in permissions.deny"#]],
    );
    // Whatever else it says holds of the tool itself.
    let deny = |more: Value| {
        let mut entry = more;
        entry["tool"] = NATURAL.into();
        json!({ "allow": ["github_*"], "deny": [entry] })
    };
    let arguments = json!({ "path": "/data" });
    for (more, denies) in [
        (
            json!({ "arguments": [{ "at": "/path", "prefix": "/data" }] }),
            true,
        ),
        (
            json!({ "arguments": [{ "at": "/path", "prefix": "/home" }] }),
            false,
        ),
        (
            json!({ "arguments": [{ "at": "/missing", "equals": 1 }] }),
            true,
        ),
        (json!({ "server": "github" }), true),
        (json!({ "server": "github_issues" }), false),
        (json!({ "expires": "2026-06-01T12:00:01Z" }), true),
        (json!({ "expires": "2026-06-01T12:00:00Z" }), false),
    ] {
        let decision = rules(deny(more.clone())).decide(&call(false, Some(&arguments)));
        let verdict = if denies { "Deny" } else { "Allow" };
        assert_eq!(format!("{:?}", decision.verdict), verdict, "{more}");
    }
}

#[test]
fn allow_rules_and_grants_go_by_the_function_alone() {
    check(
        json!({ "allow": [NATURAL, "github_issues_*"] }),
        false,
        expect![
            "Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted"
        ],
    );
    check(
        json!({ "allow": [FUNCTION] }),
        false,
        expect![[r#"Allow: allowed by rule "github_$issues_drop" in permissions.allow"#]],
    );
    let granted = granted(rules(json!({ "ask": ["*"] })), NATURAL);
    expect![[r#"Ask: needs approval by rule "*" in permissions.ask"#]]
        .assert_eq(&line(&granted.decide(&call(true, None))));
}

#[test]
fn deny_and_ask_rules_hold_by_the_suffixed_name_where_nobody_is_beside_the_tool() {
    for pattern in [SUFFIXED, "github_*_01234567", "*_01234567"] {
        let lists = json!({ "allow": ["github_*"], "deny": [pattern] });
        assert_eq!(
            line(&rules(lists).decide(&call(false, None))),
            format!("Deny: denied by rule \"{pattern}\" in permissions.deny")
        );
    }
    check(
        json!({ "allow": ["github_*"], "ask": [SUFFIXED] }),
        false,
        expect![[
            r#"Ask: needs approval by rule "github_$issues_drop_01234567" in permissions.ask"#
        ]],
    );
    // Another's suffix, and stars where the suffix would be.
    check(
        json!({
            "allow": ["github_*"],
            "ask": ["github_$issues_drop_*", "*_drop_*", "*67"],
            "deny": ["github_$issues_drop_89abcdef"],
        }),
        false,
        expect![[r#"Allow: allowed by rule "github_*" in permissions.allow"#]],
    );
    // What widens does not.
    check(
        json!({ "allow": [SUFFIXED] }),
        false,
        expect![
            "Ask: needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted"
        ],
    );
    check(
        json!({ "allow": [{ "tool": SUFFIXED, "maxCalls": 3 }] }),
        true,
        expect![[
            r#"Ask: needs approval: rule "github_$issues_drop_01234567" (3 calls) in permissions.allow is void, it is for another name of the tool"#
        ]],
    );
}

/// A rule for three calls does not leave the rest to the server's word.
#[test]
fn bound_leave_for_the_natural_name_is_void_and_does_not_leave_the_call_to_a_hint() {
    check(
        json!({ "allow": [NATURAL] }),
        true,
        expect!["Allow: allowed: a read-only tool of a trusted server"],
    );
    check(
        json!({ "allow": [{ "tool": NATURAL, "maxCalls": 3 }] }),
        true,
        expect![[
            r#"Ask: needs approval: rule "github_issues_drop" (3 calls) in permissions.allow is void, it is for another name of the tool"#
        ]],
    );
    check(
        json!({ "allow": [{ "tool": NATURAL, "expires": "2026-06-02T12:00:00Z" }], "ask": ["*_drop"] }),
        true,
        expect![[r#"Ask: needs approval by rule "*_drop" in permissions.ask"#]],
    );
    check(
        json!({ "allow": [{ "tool": NATURAL, "maxCalls": 3 }, "github_*"] }),
        true,
        expect![[r#"Allow: allowed by rule "github_*" in permissions.allow"#]],
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
fn every_rule_goes_by_the_long_name_too() {
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
        function: "git_log",
        other_names: Some(&names),
        server: "git",
        hints: Hints::default(),
        trusted: false,
        definition: None,
        input_schema: None,
    };
    let rules = rules(json!({ "allow": ["git_git_log"] }));
    assert_eq!(rules.unmatched([tool], time(NOW)), []);
}

#[test]
fn rules_that_match_no_tool_any_more_say_its_new_name() {
    let tool = KnownTool {
        function: FUNCTION,
        other_names: Some(&NAMES),
        server: "github",
        hints: Hints::default(),
        trusted: false,
        definition: None,
        input_schema: None,
    };
    let s_get_user = other_names("s_get_user");
    let suffixed = KnownTool {
        function: "s_get_user_7e0bb0c2",
        other_names: Some(&s_get_user),
        server: "s",
        ..tool
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

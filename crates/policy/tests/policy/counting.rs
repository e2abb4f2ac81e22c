//! Uses of rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callgate_policy::{Because, Count, Grant, Inapplicable, Permissions, Scope, Verdict};
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{facts, line, rules};

fn permissions(lists: Value) -> Permissions {
    Permissions::new(Arc::new(rules(lists)), Arc::default())
}

/// The decision about a call with the argument `n`.
fn verdict(permissions: &Permissions, n: u64, count: Count) -> Verdict {
    let arguments = json!({ "n": n });
    permissions.decide(&facts(Some(&arguments)), count).verdict
}

fn lines(permissions: &Permissions, calls: usize) -> String {
    let arguments = json!({ "n": 1 });
    let lines = (0..calls).map(|_| line(&permissions.decide(&facts(Some(&arguments)), Count::All)));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn spent_rule_is_skipped() {
    let counted = json!({ "tool": "fs_*", "maxCalls": 2 });
    expect![[r#"
        Allow: allowed by rule "fs_*" (2 calls) in permissions.allow
        Allow: allowed by rule "fs_*" (2 calls) in permissions.allow
        Ask: needs approval: rule "fs_*" (2 calls) in permissions.allow is used up"#]]
    .assert_eq(&lines(&permissions(json!({ "allow": [counted] })), 3));
    expect![[r#"
        Allow: allowed by rule "fs_*" (2 calls) in permissions.allow
        Allow: allowed by rule "fs_*" (2 calls) in permissions.allow
        Allow: allowed by rule "fs_write" (1 call) in permissions.allow
        Allow: allowed by rule "*" (/n = 1) in permissions.allow"#]]
    .assert_eq(&lines(
        &permissions(json!({ "allow": [
            counted,
            { "tool": "fs_write", "maxCalls": 1 },
            { "tool": "*", "arguments": [{ "at": "/n", "equals": 1 }] },
        ] })),
        4,
    ));
}

#[test]
fn calls_without_script_count_over_the_session() {
    let lists = json!({ "allow": [{ "tool": "fs_*", "maxCalls": 2 }, { "tool": "fs_write", "maxCalls": 1 }] });
    let session = Arc::default();
    // Each call may bring rules of its own that read the same.
    let one = || Permissions::of_one_call(Arc::new(rules(lists.clone())), Arc::clone(&session));
    let said: Vec<String> = (0..4).map(|_| lines(&one(), 1)).collect();
    expect![[r#"
        Allow: allowed by rule "fs_*" (2 calls) in permissions.allow
        Allow: allowed by rule "fs_*" (2 calls) in permissions.allow
        Allow: allowed by rule "fs_write" (1 call) in permissions.allow
        Ask: needs approval: rule "fs_*" (2 calls) in permissions.allow is used up"#]]
    .assert_eq(&said.join("\n"));
    // A run counts for itself, and another session does.
    let run = Permissions::new(Arc::new(rules(lists.clone())), Arc::clone(&session));
    let other = Permissions::of_one_call(Arc::new(rules(lists)), Arc::default());
    for permissions in [run, other] {
        assert_eq!(verdict(&permissions, 1, Count::All), Verdict::Allow);
    }
}

#[test]
fn decision_without_counting_spends_no_use() {
    let permissions = permissions(json!({ "allow": [{ "tool": "*", "maxCalls": 1 }] }));
    for count in [Count::Nothing, Count::Nothing, Count::All] {
        assert_eq!(verdict(&permissions, 1, count), Verdict::Allow);
    }
    let arguments = json!({});
    let spent = permissions.decide(&facts(Some(&arguments)), Count::Nothing);
    assert!(matches!(
        spent.because,
        Because::Inapplicable(Inapplicable::Spent, _)
    ));
}

#[test]
fn unsent_call_spends_no_session_use() {
    let rules = Arc::new(rules(json!({ "allow": [{ "tool": "*", "maxCalls": 1 }] })));
    let session = Arc::default();
    let call = || Permissions::of_one_call(Arc::clone(&rules), Arc::clone(&session));
    for (count, expected) in [
        (Count::OfRun, Verdict::Allow),
        (Count::OfRun, Verdict::Allow),
        (Count::All, Verdict::Allow),
        (Count::All, Verdict::Ask),
        (Count::OfRun, Verdict::Ask),
    ] {
        assert_eq!(verdict(&call(), 1, count), expected);
    }
    // Runs count for themselves, also what they do not make.
    for _ in 0..2 {
        let run = Permissions::new(Arc::clone(&rules), Arc::clone(&session));
        let by_rule = [(); 2].map(|()| verdict(&run, 1, Count::OfRun));
        assert_eq!(by_rule, [Verdict::Allow, Verdict::Ask]);
    }
}

#[test]
fn denied_call_spends_no_use() {
    let permissions = permissions(json!({
        "allow": [{ "tool": "*", "maxCalls": 1 }],
        "deny": [{ "tool": "*", "arguments": [{ "at": "/n", "equals": 2 }] }],
    }));
    let decided = [2, 2, 1, 1].map(|n| verdict(&permissions, n, Count::All));
    use Verdict::{Allow, Ask, Deny};
    assert_eq!(decided, [Deny, Deny, Allow, Ask]);
}

#[test]
fn concurrent_calls_do_not_exceed_max_calls() {
    let permissions = permissions(json!({ "allow": [{ "tool": "*", "maxCalls": 10 }] }));
    let allowed = AtomicUsize::new(0);
    let start = std::sync::Barrier::new(20);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..5 {
                    if verdict(&permissions, 1, Count::All) == Verdict::Allow {
                        allowed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(allowed.into_inner(), 10);
}

#[test]
fn grant_applies_only_to_its_function() {
    for (function, expected) in [
        ("fs_write", Verdict::Allow),
        ("fs_read", Verdict::Ask),
        ("fs_*", Verdict::Ask),
    ] {
        let permissions = permissions(json!({}));
        permissions.grant(Grant::new(function), Scope::Run);
        assert_eq!(verdict(&permissions, 1, Count::All), expected, "{function}");
    }
}

//! Time, and tools that become others.

use std::sync::Arc;

use callgate_policy::{
    Because, CallFacts, Count, Definition, Effect, Grant, Inapplicable, Permission, Permissions,
    Rule, Rules, Scope, Verdict,
};
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{facts, granted, line, rules, table};

fn definition(description: &str) -> Arc<Definition> {
    Arc::new(Definition::of(&json!({
        "name": "write", "description": description, "inputSchema": { "type": "object" },
    })))
}

#[track_caller]
fn check(permissions: &Permissions, now: Option<&Definition>, expected: &str) {
    let arguments = json!({});
    let facts = CallFacts {
        definition: now.map(Definition::hash),
        ..facts(Some(&arguments))
    };
    assert_eq!(line(&permissions.decide(&facts, Count::All)), expected);
}

fn always() -> Rule {
    let grant = Grant::new("fs_write").of(definition("writes a file"));
    grant.to_rule().expect("a rule")
}

#[test]
fn grant_is_void_for_a_changed_tool() {
    let before = definition("writes a file");
    let after = definition("writes a file and sends it to us");
    for scope in [Scope::Run, Scope::Session] {
        let permissions = Permissions::new(Arc::default(), Arc::default());
        permissions.grant(Grant::new("fs_write").of(Arc::clone(&before)), scope);
        let arguments = json!({});
        let mut facts = facts(Some(&arguments));
        facts.definition = Some(before.hash());
        assert_eq!(
            permissions.decide(&facts, Count::All).verdict,
            Verdict::Allow
        );
        facts.definition = Some(after.hash());
        // Its server's word for it does not help.
        facts.trusted = true;
        facts.hints.read_only = Some(true);
        let decision = permissions.decide(&facts, Count::All);
        assert_eq!(decision.verdict, Verdict::Ask);
        // So the question can show what has changed.
        let Because::Inapplicable(Inapplicable::OtherDefinition, Permission::Grant(grant, _)) =
            decision.because
        else {
            panic!("{decision}");
        };
        assert_eq!(grant.definition.as_ref(), Some(&before));
    }
}

#[test]
fn always_is_a_rule_for_one_definition() {
    let before = definition("writes a file");
    let after = definition("writes a file and sends it to us");
    let written = always().to_json();
    expect![[r#"
        {
          "tool": "fs_write",
          "definition": "sha256:9bca6d4133596e1237b5de62078e24c1cb3bde6be29fd5fd2cce7ddcdd891cb2"
        }"#]]
    .assert_eq(&format!("{written:#}"));
    let read = Rule::parse(Effect::Allow, &written).expect("as it was written");
    assert_eq!(read, always());
    // It answers what an ask rule had asked.
    let mut asks: Vec<Rule> = rules(json!({ "ask": ["fs_*"] })).iter().cloned().collect();
    asks.push(read);
    let permissions = Permissions::new(
        Arc::new(asks.into_iter().collect::<Rules>()),
        Arc::default(),
    );
    let allowed = r#"Allow: allowed by rule "fs_write" (one definition) in permissions.allow"#;
    let void = r#"Ask: needs approval by rule "fs_*" in permissions.ask: rule "fs_write" (one definition) in permissions.allow is void: the server changed the tool"#;
    check(&permissions, Some(&before), allowed);
    check(&permissions, Some(&after), void);
    check(&permissions, None, void);
}

#[test]
fn ask_rule_of_run_overrides_stored_allow_rules() {
    let known = definition("writes a file");
    let permissions = |asks: Value, allows: Option<&str>| {
        let mut all: Rules = [always()].into_iter().collect();
        for rule in rules(json!({ "ask": [asks] })).iter() {
            all.push_for_run(rule.clone().written_in("--ask"));
        }
        if let Some(pattern) = allows {
            all = granted(all, pattern);
        }
        Permissions::new(Arc::new(all), Arc::default())
    };
    let asked = r#"Ask: needs approval by rule "*" in --ask"#;
    let answered = permissions(json!("*"), None);
    check(&answered, Some(&known), asked);
    // Answers in the run hold, or every call would be asked about.
    answered.grant(Grant::new("fs_write"), Scope::Session);
    let granted = "Allow: allowed by the grant for this session";
    check(&answered, Some(&known), granted);
    let allowed = r#"Allow: allowed by rule "fs_*" in --allow"#;
    check(
        &permissions(json!("*"), Some("fs_*")),
        Some(&known),
        allowed,
    );
    // The question says all the same that the tool has changed.
    let void = format!(
        "{asked}: rule \"fs_write\" (one definition) in permissions.allow is void: the server \
         changed the tool"
    );
    let other = definition("other");
    check(&permissions(json!("*"), None), Some(&other), &void);
    let always = r#"Allow: allowed by rule "fs_write" (one definition) in permissions.allow"#;
    check(&permissions(json!("git_*"), None), Some(&known), always);
    let narrow = json!({ "tool": "*", "arguments": [{ "at": "/path", "exists": true }] });
    let narrow = permissions(narrow, None);
    check(&narrow, Some(&known), always);
    // Before the arguments are known.
    let facts = CallFacts {
        definition: Some(known.hash()),
        ..facts(None)
    };
    expect![[
        r#"Ask: needs approval: it depends on the arguments, by rule "*" (/path exists) in --ask"#
    ]]
    .assert_eq(&line(&narrow.decide(&facts, Count::Nothing)));
}

#[test]
fn rules_expire() {
    let cases = r#"
        { "allow": [VALID] } → Allow: allowed by rule "*" (until 2026-06-01T12:00:00.001Z) in permissions.allow
        { "allow": [EXPIRED] } → Ask: needs approval: rule "*" (until 2026-06-01T12:00:00Z) in permissions.allow has expired
        { "allow": ["fs_*"], "ask": [EXPIRED] } → Allow: allowed by rule "fs_*" in permissions.allow
        { "allow": ["fs_*"], "deny": [EXPIRED] } → Allow: allowed by rule "fs_*" in permissions.allow
        { "allow": ["fs_*"], "deny": [VALID] } → Deny: denied by rule "*" (until 2026-06-01T12:00:00.001Z) in permissions.deny"#;
    let until = |time: &str| json!({ "tool": "*", "expires": time }).to_string();
    let cases = cases.replace("EXPIRED", &until("2026-06-01T14:00:00+02:00"));
    let cases = cases.replace("VALID", &until("2026-06-01T12:00:00.001Z"));
    let arguments = json!({});
    table(&cases, |lists| {
        line(&rules(lists).decide(&facts(Some(&arguments))))
    });
}

/// Before the arguments are known, it is not known either that nothing else lets the call
/// through.
#[test]
fn conditional_allow_rule_precedes_void_rule() {
    let expired = json!({ "tool": "fs_write", "expires": "2026-01-01T00:00:00Z" });
    let only_x = json!({ "tool": "fs_write", "arguments": [{ "at": "/path", "equals": "x" }] });
    let rules = rules(json!({ "allow": [expired, only_x] }));
    table(
        r#"
        null → Ask: needs approval: it depends on the arguments, by rule "fs_write" (/path = "x") in permissions.allow
        { "path": "x" } → Allow: allowed by rule "fs_write" (/path = "x") in permissions.allow
        { "path": "y" } → Ask: needs approval: rule "fs_write" (until 2026-01-01T00:00:00Z) in permissions.allow has expired"#,
        |given| line(&rules.decide(&facts(Some(&given).filter(|given| given.is_object())))),
    );
}

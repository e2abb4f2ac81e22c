//! Servers, their trust, and their hints.

use callgate_policy::{CallFacts, Hints, Verdict};
use serde_json::{Value, json};

use crate::support::{facts, rules};

/// What an allow rule and a deny rule with `clause` say of a tool: `both`,
/// `neither`, `allow` or `deny`.
fn matched(clause: &Value, server: &str, trusted: bool, hints: Hints) -> &'static str {
    let mut entry = json!({ "tool": "*" });
    for (key, value) in clause.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    let arguments = json!({});
    let facts = CallFacts {
        server,
        trusted,
        // A rule about `readOnly` must not be confused with the default.
        hints,
        ..facts(Some(&arguments))
    };
    let allow = rules(json!({ "allow": [entry] })).decide(&facts);
    let allow = matches!(allow.because, callgate_policy::Because::Rule(_));
    let deny = rules(json!({ "deny": [entry] })).decide(&facts).verdict == Verdict::Deny;
    match (allow, deny) {
        (true, true) => "both",
        (true, false) => "allow",
        (false, true) => "deny",
        (false, false) => "neither",
    }
}

#[test]
fn servers_by_name() {
    let check = |pattern: &str, server: &str, expected: &str| {
        let found = matched(
            &json!({ "server": pattern }),
            server,
            false,
            Hints::default(),
        );
        assert_eq!(found, expected, "{pattern} over {server}");
    };
    check("fs", "fs", "both");
    check("fs", "fs2", "neither");
    check("my *", "my server", "both");
    check("日本*", "日本語", "both");
    check("*", "", "both");
}

#[test]
fn trust_is_the_configurations_word() {
    for (wanted, trusted, expected) in [
        (true, true, "both"),
        (true, false, "neither"),
        (false, false, "both"),
        (false, true, "neither"),
    ] {
        let found = matched(
            &json!({ "trusted": wanted }),
            "fs",
            trusted,
            Hints::default(),
        );
        assert_eq!(found, expected, "{wanted} over {trusted}");
    }
}

#[test]
fn hints_of_an_untrusted_server_never_widen() {
    let none = Hints::default();
    let check = |name: &str, wanted: bool, hint: Option<bool>, untrusted: &str, trusted: &str| {
        let mut hints = none;
        match name {
            "readOnly" => hints.read_only = hint,
            "destructive" => hints.destructive = hint,
            "idempotent" => hints.idempotent = hint,
            "openWorld" => hints.open_world = hint,
            other => panic!("{other}"),
        }
        let clause = json!({ "annotations": { name: wanted } });
        let found = |trusted| matched(&clause, "fs", trusted, hints);
        assert_eq!(
            found(false),
            untrusted,
            "{name}: {wanted}, {hint:?}, untrusted"
        );
        assert_eq!(found(true), trusted, "{name}: {wanted}, {hint:?}, trusted");
    };
    // Name, wanted, hint: found without trust, found with it.
    check("destructive", true, None, "deny", "both");
    check("destructive", true, Some(true), "deny", "both");
    check("destructive", true, Some(false), "deny", "neither");
    check("destructive", false, None, "neither", "neither");
    check("destructive", false, Some(false), "deny", "both");
    check("openWorld", true, None, "deny", "both");
    check("openWorld", true, Some(false), "deny", "neither");
    check("openWorld", false, Some(false), "deny", "both");
    check("readOnly", false, None, "deny", "both");
    check("readOnly", false, Some(true), "deny", "neither");
    check("readOnly", true, None, "neither", "neither");
    check("readOnly", true, Some(true), "deny", "both");
    check("idempotent", false, None, "deny", "both");
    check("idempotent", false, Some(true), "deny", "neither");
    check("idempotent", true, Some(true), "deny", "both");
    check("idempotent", true, None, "neither", "neither");
}

#[test]
fn a_read_only_tool_is_not_destructive_if_its_server_is_trusted() {
    let hints = Hints {
        read_only: Some(true),
        ..Hints::default()
    };
    let check = |annotations: Value, trusted: bool, hints: Hints, expected: &str| {
        let found = matched(&json!({ "annotations": annotations }), "fs", trusted, hints);
        assert_eq!(found, expected, "{annotations}, {trusted}");
    };
    check(json!({ "destructive": true }), true, hints, "neither");
    check(json!({ "destructive": true }), false, hints, "deny");
    check(json!({ "idempotent": true }), true, hints, "both");
    check(json!({ "idempotent": false }), false, hints, "deny");
    let odd = Hints {
        destructive: Some(true),
        ..hints
    };
    check(json!({ "destructive": true }), true, odd, "both");
    check(
        json!({ "readOnly": true, "openWorld": false }),
        true,
        hints,
        "neither",
    );
}

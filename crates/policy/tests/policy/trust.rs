//! Servers, their trust, and their hints.

use callgate_policy::{CallFacts, Hints, Verdict};
use serde_json::{Value, json};

use crate::support::{facts, name, rules, table};

/// The rules with `clause` that match a tool, of an allow rule and a deny rule: `both`,
/// `neither`, `allow` or `deny`.
fn matched(clause: &Value, server: &str, trusted: bool, hints: Hints) -> &'static str {
    let mut entry = json!({ "tool": "*" });
    for (key, value) in clause.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    let arguments = json!({});
    let facts = CallFacts {
        name: name("fs_write", server),
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
    table(
        r#"
        ["fs", "fs"] → both
        ["fs", "fs2"] → neither
        ["my *", "my server"] → both
        ["日本*", "日本語"] → both
        ["*", ""] → both"#,
        |case| {
            let server = case[1].as_str().expect("a name");
            matched(
                &json!({ "server": case[0] }),
                server,
                false,
                Hints::default(),
            )
            .to_owned()
        },
    );
}

#[test]
fn trusted_condition_matches_configured_trust() {
    for wanted in [true, false] {
        let found = [wanted, !wanted].map(|trusted| {
            matched(
                &json!({ "trusted": wanted }),
                "fs",
                trusted,
                Hints::default(),
            )
        });
        assert_eq!(found, ["both", "neither"], "{wanted}");
    }
}

/// Annotations of a rule and hints of a tool, and the match without trust and with it.
#[test]
fn hints_of_an_untrusted_server_never_widen() {
    table(
        r#"
        [{ "destructive": true }, {}] → deny both
        [{ "destructive": true }, { "destructive": true }] → deny both
        [{ "destructive": true }, { "destructive": false }] → deny neither
        [{ "destructive": false }, {}] → neither neither
        [{ "destructive": false }, { "destructive": false }] → deny both
        [{ "openWorld": true }, {}] → deny both
        [{ "openWorld": true }, { "openWorld": false }] → deny neither
        [{ "openWorld": false }, { "openWorld": false }] → deny both
        [{ "readOnly": false }, {}] → deny both
        [{ "readOnly": false }, { "readOnly": true }] → deny neither
        [{ "readOnly": true }, {}] → neither neither
        [{ "readOnly": true }, { "readOnly": true }] → deny both
        [{ "idempotent": false }, {}] → deny both
        [{ "idempotent": false }, { "idempotent": true }] → deny neither
        [{ "idempotent": true }, { "idempotent": true }] → deny both
        [{ "idempotent": true }, {}] → neither neither
        [{ "destructive": true }, { "readOnly": true }] → deny neither
        [{ "idempotent": true }, { "readOnly": true }] → neither both
        [{ "destructive": true }, { "readOnly": true, "destructive": true }] → deny both
        [{ "readOnly": true, "openWorld": false }, { "readOnly": true }] → neither neither"#,
        |case| {
            let hints = Hints {
                read_only: case[1]["readOnly"].as_bool(),
                destructive: case[1]["destructive"].as_bool(),
                idempotent: case[1]["idempotent"].as_bool(),
                open_world: case[1]["openWorld"].as_bool(),
            };
            let clause = json!({ "annotations": case[0] });
            [false, true]
                .map(|trusted| matched(&clause, "fs", trusted, hints))
                .join(" ")
        },
    );
}

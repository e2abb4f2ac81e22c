//! Which settings of a found file are shown, and which changes are asked about.

use std::collections::BTreeSet;

use super::super::trust::INERT;
use super::*;

/// Keys that are shown before a found file is used. `*` stands for a name. A new key belongs here or
/// into `INERT`.
const SHOWN: &str = "
asking.self asking.ways asking.webhook
cache.path check.mode check.typescript envFile extract.calls extract.input extract.output
extract.sameSchema flows ledger.bodies ledger.keep ledger.maxSize ledger.path ledger.sync
mcpServers.*.args mcpServers.*.command mcpServers.*.connect mcpServers.*.cwd
mcpServers.*.disabled mcpServers.*.env mcpServers.*.headers mcpServers.*.labels
mcpServers.*.oauth mcpServers.*.protocol mcpServers.*.trusted mcpServers.*.type
mcpServers.*.url models permissions roots sandbox.level sandbox.require search.by store.bodies
store.bytes store.days store.path toolLabels tools.*.visibility";

/// The keys that an object takes at this place of a file: those that the error about an unknown key
/// names.
fn keys_at(place: &[&str]) -> Vec<String> {
    let inner = "{ \"zz\": 1 }".to_owned();
    let text = place
        .iter()
        .rev()
        .fold(inner, |inner, key| format!("{{ \"{key}\": {inner} }}"));
    let Err(error) = read("callgate.json", &text) else {
        return Vec::new();
    };
    let mut problems = error.problems().map(|it| it.message.as_str());
    let known =
        problems.find_map(|it| Some(it.split_once("\"zz\" in ")?.1.split_once("use one of ")?.1));
    let known = known.into_iter().flat_map(|known| known.split(", "));
    known.map(str::to_owned).collect()
}

#[test]
fn each_key_is_shown_or_inert() {
    let mut known = BTreeSet::new();
    for top in keys_at(&[]) {
        let name = match top.as_str() {
            // The keys of `serve` are checked in its crate.
            "servers" | "serve" => continue,
            "mcpServers" | "tools" => Some("x"),
            _ => None,
        };
        let place: Vec<&str> = [top.as_str()].into_iter().chain(name).collect();
        let inner = keys_at(&place);
        let shown = place.join(".").replace(".x", ".*");
        let is_whole = inner.is_empty() || SHOWN.split_whitespace().any(|it| it == shown);
        if is_whole || INERT.contains(&shown.as_str()) {
            known.insert(shown);
        } else {
            known.extend(inner.iter().map(|key| format!("{shown}.{key}")));
        }
    }
    let inert = INERT.iter().copied().filter(|it| !it.starts_with("serve."));
    let listed = SHOWN.split_whitespace().chain(inert);
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    assert_eq!(known, listed);
}

#[track_caller]
fn changes(old: &str, new: &str) -> Option<Review> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TrustStore::at(folder.path().join("trusted"));
    let file = folder.path().join("callgate.json");
    assert_eq!(store.review(&file, &Effects::of(old)), Some(Review::New));
    store.accept(&file, &Effects::of(old)).expect("a record");
    store.review(&file, &Effects::of(new))
}

const OLD: &str = r#"{
  // Our servers.
  "mcpServers": {
    "git": { "command": "uvx", "args": ["mcp-server-git"], "env": { "A": "${TOKEN}" } },
    "old": { "url": "https://old.example/mcp", "disabled": true, "trusted": true }
  },
  "permissions": { "allow": ["git_*", "old_*"], "ask": ["git_push"], "deny": ["git_reset"] },
  "sandbox": { "require": ["landlock", "seccomp"] }
}"#;

#[test]
fn tightening_changes_need_no_acceptance() {
    let changed = |from: &str, to: &str| {
        assert!(OLD.contains(from), "{from}");
        OLD.replace(from, to)
    };
    for new in [
        OLD.to_owned(),
        changed("// Our servers.", "/* ours */"),
        changed(
            "\"sandbox\"",
            "\"limits\": { \"timeout\": \"1h\" }, \"sandbox\"",
        ),
        changed("[\"git_reset\"]", "[\"git_reset\", \"*\"]"),
        changed("[\"git_push\"]", "[{ \"tool\": \"git_*\" }, \"git_push\"]"),
        changed(
            "\"ask\": [\"git_push\"], \"deny\": [",
            "\"deny\": [\"git_push\", ",
        ),
        changed("[\"git_*\", \"old_*\"]", "[\"old_*\"]"),
        changed("\"trusted\": true", "\"trusted\": false"),
        changed(", \"trusted\": true", ""),
        changed(
            "\"args\"",
            "\"disabled\": true, \"callTimeout\": \"1h\", \"args\"",
        ),
        changed(
            "\"url\": \"https://old.example/mcp\", \"disabled\": true, \"trusted\": true",
            "",
        ),
    ] {
        // The last one removes what the server is.
        let new = new.replace(",\n    \"old\": {  }", "");
        assert_eq!(changes(OLD, &new), None, "{new}");
    }
}

#[test]
fn other_changes_are_named() {
    for (from, to, expected) in [
        ("uvx", "sh", "~ mcpServers.git.command: \"sh\""),
        (
            "mcp-server-git",
            "evil",
            "~ mcpServers.git.args: [\"evil\"]",
        ),
        (
            "{ \"A\": \"${TOKEN}\" }",
            "{}",
            "- mcpServers.git.env.A: removed",
        ),
        (
            "${TOKEN}",
            "${AWS_KEY}",
            "~ mcpServers.git.env.A: \"${AWS_KEY}\"",
        ),
        (
            "\"old\":",
            "\"a.b\": { \"command\": \"x\" }, \"old\":",
            "+ mcpServers.\"a.b\".command: \"x\"",
        ),
        (
            "\"disabled\": true, ",
            "",
            "- mcpServers.old.disabled: removed",
        ),
        ("\"git_*\"", "\"*\"", "+ permissions.allow: \"*\""),
        (
            "[\"git_push\"]",
            "[]",
            "- permissions.ask: a rule is removed",
        ),
        (
            "\"git_reset\"",
            "\"git_res\"",
            "- permissions.deny: a rule is removed",
        ),
        ("[\"landlock\", \"seccomp\"]", "[]", "~ sandbox.require: []"),
        (
            "{ \"require\": [\"landlock\", \"seccomp\"] }",
            "{}",
            "+ sandbox: {}",
        ),
        ("\"sandbox\"", "\"newKey\": 1, \"sandbox\"", "+ newKey: 1"),
    ] {
        assert!(OLD.contains(from), "{from}");
        let Some(Review::Changed(lines)) = changes(OLD, &OLD.replace(from, to)) else {
            panic!("{from} → {to} is not asked about");
        };
        assert!(lines.iter().any(|line| line == expected), "{lines:#?}");
    }
}

#[test]
fn records_hold_no_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = TrustStore::at(folder.path());
    let text = r#"{ "mcpServers": { "a": { "command": "x", "env": { "K": "hunter2" } } } }"#;
    let file = folder.path().join(".mcp.json");
    store.accept(&file, &Effects::of(text)).expect("a record");
    let records = std::fs::read_dir(folder.path()).expect("a folder");
    for record in records {
        let path = record.expect("an entry").path();
        assert!(
            !std::fs::read_to_string(path)
                .expect("a record")
                .contains(SECRET)
        );
    }
    assert!(!format!("{:?}", Effects::of(text)).contains(SECRET));
}

#[test]
fn variables_of_all_forms_are_named() {
    let text = r#"{ "mcpServers": { "a": { "command": "${A}", "args": ["x${env:B}y${C:-${no}}"],
        "cwd": "${workspaceFolder}/${userHome}", "headers": { "X": { "command": ["${D}"] } } } } }"#;
    let variables: Vec<String> = Effects::of(text).variables().into_iter().collect();
    assert_eq!(variables, ["A", "B", "C", "D", "no", "userHome"]);
}

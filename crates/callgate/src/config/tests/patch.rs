//! Other clients' files as `callgate init` reads and changes them.

use serde_json::json;

use super::Path;
use crate::config::foreign::{patch, read};

fn patched(file: &str, text: &str) -> String {
    let entry = json!({ "command": "x", "args": ["serve"] });
    let entry = entry.as_object().expect("an object");
    match patch(Path::new(file), text, "servers", "callgate", entry) {
        Ok(text) => text,
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn toml_comments_are_kept() {
    let table = "[servers.callgate]\ncommand = \"x\"\nargs = [\"serve\"]\n";
    for (before, expected) in [
        ("# mine", format!("# mine\n{table}")),
        ("a = 1 # one\n", format!("a = 1 # one\n\n{table}")),
        (
            "# one\n[servers.callgate]\ncommand = \"old\"\n\n# two\n[other]\nb = 2\n",
            format!("# one\n{table}\n# two\n[other]\nb = 2\n"),
        ),
    ] {
        assert_eq!(patched("a.toml", before), expected, "{before}");
    }
}

#[test]
fn ambiguous_or_misshapen_files_are_refused() {
    for (text, file, reason) in [
        (
            r#"{ "servers": {}, "servers": {} }"#,
            "a.json",
            "\"servers\" is there twice",
        ),
        (
            r#"{ "servers": { "callgate": {}, "callgate": {} } }"#,
            "a.json",
            "\"callgate\" is there twice",
        ),
        (r#"{ "servers": null }"#, "a.json", "is not an object"),
        ("[]", "a.json", "is not an object"),
        ("servers = 1\n", "a.toml", "is not a table"),
        ("[[servers]]\n", "a.toml", "is not a table"),
        ("token = \"s3cret\n", "a.toml", "on line 1"),
    ] {
        let refused = patched(file, text);
        assert!(
            refused.starts_with("error: ") && refused.contains(reason),
            "{refused}"
        );
        assert!(!refused.contains("s3cret"), "{refused}");
    }
}

#[test]
fn switches_of_every_spelling_turn_servers_off() {
    let servers = r#"{ "servers": {
        "on": { "cmd": "x", "environment": { "A": "1" }, "disabled": "false", "active": true },
        "a": { "disabled": "yes" }, "b": { "Disable": 1 }, "c": { "enabled": "no" },
        "d": { "isEnabled": false }, "e": { "disabled": "true" }, "f": { "enable": 0 },
        "g": { "enabled": false, "enabled": true }, "listed": {}
    }, "ExcludeMcpServers": ["listed"] }"#;
    let sections = read(Path::new("a.json"), servers, "servers", Path::new("/")).expect("a file");
    let section = sections.first().expect("a section");
    let is_off = |name: &str| section.is_off(name);
    let on = section
        .servers
        .iter()
        .filter(|it| !it.is_off && !is_off(&it.name));
    let on: Vec<_> = on.map(|it| (it.name.as_str(), json!(it.entry))).collect();
    let entry = json!({ "command": "x", "env": { "A": "1" }, "disabled": "false" });
    assert_eq!(on, [("on", entry)]);
}

#[test]
fn settings_of_other_projects_come_last() {
    let text = r#"{ "servers": { "a": {} }, "projects": {
        "/else": { "servers": { "b": {} } }, "/here": { "servers": { "c": {} } } } }"#;
    let sections = read(
        Path::new("a.json"),
        text,
        "servers",
        Path::new("/here/below"),
    );
    let sections = sections.expect("a file");
    let names = sections.iter().map(|it| {
        let names: Vec<&str> = it.servers.iter().map(|it| it.name.as_str()).collect();
        (it.project.as_deref(), names.concat())
    });
    let expected = [(None, "c"), (None, "a"), (Some("/else"), "b")];
    assert!(names.eq(expected.map(|(project, name)| (project, name.to_owned()))));
}

//! Other clients' files as `callgate init` reads and changes them.

use serde_json::json;

use super::Path;
use crate::config::foreign::{OffSwitch, patch, read, turn_off, value};

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
fn misunderstood_servers_are_named_and_others_stay() {
    for (members, said) in [
        (
            r#""servers": [{ "command": "x" }]"#,
            "\"servers\" must be an object with servers, and is an array",
        ),
        (
            r#""servers": "x""#,
            "\"servers\" must be an object with servers, and is a string",
        ),
        (
            r#""servers": { "a": "npx x", "b": {} }"#,
            "server \"a\" must be an object, and is a string",
        ),
        (
            r#""servers": { "a": null, "b": {} }"#,
            "server \"a\" must be an object, and is null",
        ),
        (
            r#""servers": { " ": {}, "b": {} }"#,
            "a server with an empty name is left out",
        ),
        (
            r#""servers": {}, "servers": { "b": {} }"#,
            "\"servers\" is there twice",
        ),
        (
            r#""servers": { "b": { "command": "x" }, "b": {} }"#,
            "server \"b\" is there twice",
        ),
        (
            r#""servers": { "b": { "args": [], "args": [] } }"#,
            "\"args\" of server \"b\" is there twice",
        ),
        (
            r#""servers": { "b": { "env": { "K": "1", "K": "2" } } }"#,
            "\"K\" of server \"b\" is there twice",
        ),
        (
            r#""mcp": { "servers": { "b": {}, "c": 1 } }"#,
            "server \"c\" must be an object, and is a number",
        ),
    ] {
        let text = format!("{{ {members} }}");
        let sections = read(Path::new("a.json"), &text, "servers", Path::new("/"));
        let section = sections.expect("a file").remove(0);
        let [warning] = &section.warnings[..] else {
            panic!("{members}: {:?}", section.warnings);
        };
        assert!(warning.starts_with(said), "{warning}");
        let names: Vec<&str> = section.servers.iter().map(|it| it.name.as_str()).collect();
        let expected: &[&str] = if members.contains("\"b\"") {
            &["b"]
        } else {
            &[]
        };
        assert_eq!(names, expected, "{members}");
    }
    for text in ["[]", "null", "\"x\""] {
        let refused = read(Path::new("a.json"), text, "servers", Path::new("/")).err();
        let refused = refused.expect("an error").to_string();
        assert!(
            refused.starts_with("its settings must be an object"),
            "{refused}"
        );
    }
}

#[test]
fn default_of_open_input_joins_its_reference() {
    let text = r#"{ "inputs": [
            { "id": "region", "type": "pickString", "default": "eu" },
            { "id": "key", "type": "promptString", "password": true, "default": "s3cret" },
            { "id": "odd", "default": "{}" } ],
        "servers": { "a": { "args": ["--in=${input:region}", "${input:key}", "${input:odd}"] } } }"#;
    let sections = read(Path::new("a.json"), text, "servers", Path::new("/"));
    let server = sections.expect("a file").remove(0).servers.remove(0);
    let expected = json!(["--in=${input:region:-eu}", "${input:key}", "${input:odd}"]);
    assert_eq!(server.entry["args"], expected);
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

#[test]
fn servers_are_turned_off_and_comments_stay() {
    let names = ["a".to_owned(), "b".to_owned()];
    let off = |file: &str, text: &str, switch| {
        let changed = turn_off(Path::new(file), text, "servers", switch, &names);
        changed.unwrap_or_else(|error| format!("error: {error}"))
    };
    let disabled = OffSwitch::Member("disabled", true);
    let enabled = OffSwitch::Member("enabled", false);
    let list = OffSwitch::List(&["mcp", "excluded"]);
    for (file, before, switch, parts) in [
        (
            "a.json",
            "{ // mine\n  \"servers\": { \"a\": { \"x\": 1 }, \"b\": { \"disabled\": false } } }\n",
            disabled,
            ["// mine", "\"x\": 1", "\"disabled\": true"],
        ),
        (
            "a.toml",
            "[servers.a]\nx = 1 # mine\n\n[servers.a.env]\nE = \"1\"\n\n[servers.b]\nenabled = true\n",
            enabled,
            [
                "x = 1 # mine",
                "enabled = false\n\n[servers.a.env]",
                "E = \"1\"",
            ],
        ),
        (
            "b.toml",
            "[[mcp_servers]]\nname = \"x\"\n[servers]\na = { x = 1 } # mine\nb = {}\n",
            enabled,
            ["# mine", "name = \"x\"", "enabled = false"],
        ),
        (
            "a.json",
            "{ \"mcp\": { \"excluded\": [\"a\" /* mine */] } }",
            list,
            ["/* mine */", "\"a\"", "\"b\""],
        ),
        ("a.json", "", list, ["\"excluded\"", "\"a\"", "\"b\""]),
    ] {
        let after = off(file, before, switch);
        for part in parts {
            assert!(after.contains(part), "{part}: {after}");
        }
        assert_eq!(off(file, &after, switch), after);
    }
    for (file, text, switch) in [
        ("a.json", r#"{ "servers": { "a": {} } }"#, disabled),
        ("a.toml", "[servers.b]\n", enabled),
        ("a.json", r#"{ "mcp": { "excluded": "a" } }"#, list),
        ("a.json", r#"{ "mcp": 1 }"#, list),
    ] {
        let refused = off(file, text, switch);
        assert!(refused.starts_with("error: "), "{refused}");
    }
}

#[test]
fn listed_servers_are_read_by_name() {
    let yaml =
        "mcpServers:\n  - name: a\n    command: x\n  - uses: org/b\n  - name: a\n    url: u\n";
    let toml = "mcp_servers = [{ name = \"a\", command = \"x\" }, { uses = \"org/b\" }, \
                { name = \"a\", url = \"u\" }]\n";
    let servers =
        json!({ "a": { "command": "x" }, "2": { "uses": "org/b" }, "a-2": { "url": "u" } });
    for (file, text, key) in [
        ("config.yaml", yaml, "mcpServers"),
        ("config.toml", toml, "mcp_servers"),
    ] {
        let settings = value(Path::new(file), text).expect("settings");
        assert_eq!(settings[key], servers, "{file}");
    }
    for text in ["a: [1", "a: b: s3cret"] {
        let error = value(Path::new("config.yml"), text).expect_err("a mistake");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

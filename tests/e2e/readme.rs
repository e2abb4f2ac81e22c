//! The configurations in the README, read as their clients read them: each starts
//! or finds this very program, with flags that it knows.

use std::fs;

use callgate_tests::{Workbench, repository};
use serde_json::Value;

#[test]
fn configurations_of_clients() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("a README");
    let section = readme.split("### As a client's one server").nth(1);
    let section = section.and_then(|rest| rest.split("\n### ").next());
    let blocks = section.expect("the section").split("```json\n").skip(1);
    let mut kinds = Vec::new();
    for block in blocks {
        let text = block.split("```").next().expect("an end");
        let config: Value = serde_json::from_str(text).expect("strict JSON");
        let (key, servers) = config
            .as_object()
            .and_then(|all| all.iter().next())
            .expect("a key");
        let server = &servers["callgate"];
        match server["url"].as_str() {
            Some(url) => {
                assert_eq!(server["type"], "http");
                assert!(
                    url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"),
                    "{url}"
                );
                kinds.push(format!("{key} http"));
            }
            None => {
                assert_eq!(server["command"], "callgate");
                check_arguments(server);
                kinds.push(format!("{key} stdio"));
            }
        }
    }
    assert_eq!(
        kinds,
        ["mcpServers stdio", "servers stdio", "mcpServers http"]
    );
}

/// The program takes the arguments, and serves a client that goes away at once.
fn check_arguments(server: &Value) {
    let bench = Workbench::empty();
    bench.write("callgate.json", r#"{ "mcpServers": {} }"#);
    let folder = bench.path().display().to_string();
    let arguments = server["args"].as_array().expect("arguments").iter();
    let arguments: Vec<String> = arguments
        .map(|argument| {
            argument
                .as_str()
                .expect("texts")
                .replace("${workspaceFolder}", &folder)
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = bench.callgate(&arguments);
    let mut told = ran.stderr.lines();
    assert!(
        ran.code == 0 && told.all(|line| line.starts_with("sandbox: ")),
        "{arguments:?}: {ran:#?}"
    );
}

//! `callgate serve --http` as the server under test, passing tools through
//! (`--mode native`): every server scenario of both requirement sets that is
//! about what Callgate serves.
//!
//! The suite calls tools by fixed names, so the server behind Callgate is called
//! `test` and its tools the rest of those names (`fixtures/conformance/tools.cjs`);
//! those that answer with tasks have servers of their own (`tasks.cjs`). They speak the
//! revision that is tested.

use std::fs;

use callgate_tests::{Workbench, repository};
use serde_json::json;

use callgate_tests::served::Served;

#[test]
fn applicable_scenarios_of_2025_11_25_pass() {
    check("2025-11-25", 24);
}

#[test]
fn applicable_scenarios_of_2026_07_28_pass() {
    check("2026-07-28", 37);
}

fn check(revision: &str, passes: usize) {
    let tools = repository().join("fixtures/conformance/tools.cjs");
    let server = |arguments: &[&str]| {
        let arguments: Vec<_> = [&[tools.to_str().expect("UTF-8")], arguments].concat();
        json!({ "command": "node", "args": arguments, "protocol": revision })
    };
    let mut servers = json!({ "test": server(&[]), "json": server(&["json"]) });
    if revision == "2026-07-28" {
        // All tools with names that begin with `test_` belong to one server.
        servers["test"] = server(&["tasks"]);
        let tasks = repository().join("fixtures/conformance/tasks.cjs");
        for (name, tool) in [
            ("slow", "compute"),
            ("confirm", "delete"),
            ("multi", "input"),
        ] {
            let arguments = [tasks.to_str().expect("UTF-8"), tool];
            servers[name] = json!({ "command": "node", "args": arguments, "protocol": revision });
        }
    }
    let bench = Workbench::with_config(json!({
        "mcpServers": servers,
        "permissions": { "allow": ["*"] },
    }));
    fs::create_dir(bench.path().join("skill")).expect("a folder");
    let skill = "---\nname: test\ndescription: A prompt for the suite to list.\n---\nTest.\n";
    bench.write("skill/SKILL.md", skill);
    let served = Served::start(&bench, &["--mode", "native", "--skill", "skill"]);
    let options = ["--url", &served.url];
    super::check("server", revision, &options, bench.path(), passes);
}

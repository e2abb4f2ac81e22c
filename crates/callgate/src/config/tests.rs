//! Configuration files, and what is read from them or said about them.

use std::fmt::Write as _;
use std::path::Path;

use callgate_broker::{Http, Stdio, Transport};
use callgate_sandbox::Layer;
use expect_test::{Expect, expect};

use super::*;

mod amend;
mod credentials;
mod files;
mod flows;
mod folder;
mod keys;
mod models;
mod permissions;
mod roots;
mod serve;
mod servers;
mod tools;
mod units;

const SECRET: &str = "hunter2";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(SECRET.to_owned()),
        "LONG_TOKEN" => Some(format!("{SECRET}-0123456789")),
        "PROGRAM" => Some("node".to_owned()),
        "EMPTY" => Some(String::new()),
        "REFERENCE" => Some("${TOKEN}".to_owned()),
        "BROKEN" => Some(format!("{SECRET}\r\nX: y")),
        "HOST" => Some("example.com".to_owned()),
        "ROOT" => Some("/".to_owned()),
        _ => None,
    }
}

fn read(name: &str, text: &str) -> Result<Config, ConfigError> {
    read_in("/project", name, text)
}

/// Reads a text as a file of a folder that need not be there.
fn read_in(folder: &str, name: &str, text: &str) -> Result<Config, ConfigError> {
    let folder = Path::new(folder);
    let place = Place {
        path: folder.join(name),
        folder: folder.to_owned(),
        alias: None,
        shown: Path::new(name).to_owned(),
    };
    sections::read(text, &place, &environment)
}

/// Reads `text` as a file with that name and renders what came out, all of it
/// as a person could get to see it.
#[track_caller]
fn check_as(name: &str, text: &str, expected: Expect) {
    let mut out = String::new();
    match read(name, text) {
        Ok(config) => {
            for server in &config.servers {
                writeln!(out, "{server:#?}").unwrap();
            }
            if !config.disabled.is_empty() {
                writeln!(out, "disabled: {:?}", config.disabled).unwrap();
            }
            for rule in config.permissions.iter() {
                writeln!(out, "{:?} {rule}", rule.effect).unwrap();
            }
            if config.flows != FlowRules::default() {
                writeln!(out, "{:#?}", config.flows).unwrap();
            }
            if config.limits != LimitsConfig::default() {
                writeln!(out, "{:#?}", config.limits).unwrap();
            }
            if config.check != CheckConfig::default() {
                writeln!(out, "{:#?}", config.check).unwrap();
            }
            if config.ledger != LedgerConfig::default() {
                writeln!(out, "{:#?}", config.ledger).unwrap();
            }
            if config.serve != ServeConfig::default() {
                writeln!(out, "{:#?}", config.serve).unwrap();
            }
            if config.tools != ToolSettings::default() {
                writeln!(out, "{:#?}", config.tools).unwrap();
            }
            for warning in &config.warnings {
                writeln!(out, "warning: {warning}").unwrap();
            }
        }
        Err(error) => writeln!(out, "{error}").unwrap(),
    }
    assert!(!out.contains(SECRET), "a secret is shown: {out}");
    expected.assert_eq(&out);
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    check_as("callgate.json", text, expected);
}

/// What a single server with these keys gives.
#[track_caller]
fn check_server(keys: &str, expected: Expect) {
    check(
        &format!("{{\"mcpServers\": {{\n\"git\": {{{keys}}}}}}}"),
        expected,
    );
}

#[test]
fn a_whole_file() {
    check(
        r#"// Servers of this project.
{
  "$schema": "https://example.com/callgate.schema.json",
  "mcpServers": {
    "zeta": {
      "command": "npx", "args": ["-y", "server", "--key=${TOKEN}"],
      "env": { "TOKEN": "${TOKEN}", "MODE": "plain" },
      "cwd": "sub", "trusted": true, "startTimeout": "1m", "callTimeout": "90s", "maxCallTime": "5m",
    },
    "alpha": {
      "type": "streamable-http", "url": "https://${HOST}/mcp?key=${TOKEN}",
      "headers": { "Authorization": "Bearer ${env:TOKEN}" }, "protocol": "2025-11-25",
    },
    "off": { "command": "${NOT_SET}", "disabled": true },
  },
  "permissions": { "allow": ["git_*"], "ask": ["*_write*"], "deny": ["*delete*"] },
  "limits": {
    "timeout": "2s", "runTimeout": "10m", "memory": "128MiB", "output": "16KiB",
    "outputLines": 500, "result": "10MB", "callsInFlight": 100,
  },
}
"#,
        expect![[r#"
            ServerSpec {
                name: "zeta",
                transport: Stdio {
                    command: "npx",
                    args: [3 not shown],
                    env: [
                        "MODE",
                        "TOKEN",
                    ],
                    cwd: Some(
                        "/project/sub",
                    ),
                },
                era: Auto,
                trusted: true,
                start_timeout: 60s,
                call_timeout: 90s,
                max_call_time: 300s,
                max_message_bytes: 67108864,
                caller: Caller(
                    Offers {
                        form: false,
                        url: false,
                        sampling: false,
                        sampling_tools: false,
                        roots: false,
                    },
                ),
                description: None,
                connect: Always,
                idle: Some(
                    300s,
                ),
                remembered: None,
                lists_hold: 3600s,
            }
            ServerSpec {
                name: "alpha",
                transport: Http {
                    url: "https://example.com/mcp",
                    headers: [
                        "Authorization",
                    ],
                    oauth: Some(
                        OAuth,
                    ),
                },
                era: Fixed(
                    Revision(
                        ProtocolVersion(
                            "2025-11-25",
                        ),
                    ),
                ),
                trusted: false,
                start_timeout: 30s,
                call_timeout: 60s,
                max_call_time: 600s,
                max_message_bytes: 67108864,
                caller: Caller(
                    Offers {
                        form: false,
                        url: false,
                        sampling: false,
                        sampling_tools: false,
                        roots: false,
                    },
                ),
                description: None,
                connect: Always,
                idle: Some(
                    300s,
                ),
                remembered: None,
                lists_hold: 3600s,
            }
            disabled: ["off"]
            Allow rule "git_*" in permissions.allow
            Ask rule "*_write*" in permissions.ask
            Deny rule "*delete*" in permissions.deny
            LimitsConfig {
                timeout: Some(
                    2s,
                ),
                run_timeout: Some(
                    600s,
                ),
                memory: Some(
                    134217728,
                ),
                output: Some(
                    16384,
                ),
                output_lines: Some(
                    500,
                ),
                result: Some(
                    10000000,
                ),
                calls_in_flight: Some(
                    100,
                ),
            }
        "#]],
    );
}

#[test]
fn texts_that_are_no_configuration() {
    check(
        "",
        expect![[r#"
        callgate.json:1:1: the file is empty; write an object, such as { "mcpServers": {} }
    "#]],
    );
    check(
        "// nothing",
        expect![[r#"
        callgate.json:1:1: the file is empty; write an object, such as { "mcpServers": {} }
    "#]],
    );
    check(
        "[]",
        expect![[r#"
        callgate.json:1:1: the file must hold one object, such as { "mcpServers": {} }
    "#]],
    );
    check(
        "{\n  \"mcpServers\": {\n",
        expect![[r#"
        callgate.json:2:17: not valid JSON: unterminated object
    "#]],
    );
    check(
        "{ 'mcpServers': {} }",
        expect![[r#"
        callgate.json:1:3: not valid JSON: single-quoted strings are not allowed
    "#]],
    );
    check(
        "{ \"limits\": {} \"permissions\": {} }",
        expect![[r#"
        callgate.json:1:15: not valid JSON: expected comma
    "#]],
    );
    check(
        &"[".repeat(100_000),
        expect![[r#"
        callgate.json:1:513: not valid JSON: maximum nesting depth exceeded
    "#]],
    );
    check(
        "\u{feff}{ \"é😀\": 1, \"b\": }",
        expect![[r#"
            callgate.json:1:18: not valid JSON: unexpected close brace
        "#]],
    );
}

#[test]
fn permissions_and_limits() {
    check(
        r#"{ "permissions": {
  "allow": ["git-*", 1],
  "ask": "git_*",
  "deny": [""], "denied": []
} }"#,
        expect![[r#"
            callgate.json:2:13: pattern "git-*" can never match: generated names have "_" in place of "-"; did you mean "git_*"?
            callgate.json:2:22: a rule must be a pattern or an object, and this is a number
            callgate.json:3:10: "ask" in "permissions" must be an array of rules, and this is a string
            callgate.json:4:12: empty pattern; write a tool's generated name, or "*" for every tool
            callgate.json:4:17: unknown key "denied" in "permissions"; remove it, or use one of allow, ask, deny
        "#]],
    );
    check(
        r#"{ "limits": {
  "timeout": "2 seconds", "memory": "128", "output": 16, "outputLines": -1,
  "result": "0B", "callsInFlight": 1.5, "memry": "1MB"
} }"#,
        expect![[r#"
            callgate.json:2:14: "timeout" in "limits": "2 seconds" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
            callgate.json:2:37: "memory" in "limits": "128" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB"
            callgate.json:2:54: "output" in "limits" must be a string such as "1MiB", and this is a number
            callgate.json:2:73: "outputLines" in "limits" must be a whole number above zero
            callgate.json:3:13: "result" in "limits": "0B" is an empty size; write one that is more than nothing
            callgate.json:3:36: "callsInFlight" in "limits" must be a whole number above zero
            callgate.json:3:41: unknown key "memry" in "limits"; did you mean "memory"?
        "#]],
    );
}

#[test]
fn the_type_check() {
    check_as(
        "callgate.json",
        r#"{ "check": { "mode": "require", "typescript": "tools/${PROGRAM}/typescript" } }"#,
        expect![[r#"
            CheckConfig {
                mode: Some(
                    Require,
                ),
                typescript: Some(
                    "/project/tools/node/typescript",
                ),
            }
        "#]],
    );
    check_as(
        "callgate.json",
        r#"{ "check": { "mode": "always", "typescript": 7, "typescrypt": "x" } }"#,
        expect![[r#"
            callgate.json:1:22: "mode" in "check": "always" is no mode of the type check; write "off", "warn", "on" or "require"
            callgate.json:1:46: "typescript" in "check" must be a string, and this is a number
            callgate.json:1:49: unknown key "typescrypt" in "check"; did you mean "typescript"?
        "#]],
    );
    check_as(
        "callgate.json",
        r#"{ "check": "off" }"#,
        expect![[r#"
        callgate.json:1:12: "check" in the file must be an object, and this is a string
    "#]],
    );
}

#[test]
fn the_sandbox_is_weakened_by_name_alone() {
    let layers = |text: &str| {
        let config = read("callgate.json", text).map(|config| config.jail);
        config.map_err(|error| error.to_string())
    };
    let default = JailOptions::default();
    assert_eq!(layers("{}"), Ok(default.clone()));
    let kernel = r#"{ "sandbox": { "level": "kernel", "require": ["namespaces"] } }"#;
    let mut expected = default;
    expected.required = vec![Layer::Namespaces];
    assert_eq!(layers(kernel), Ok(expected));
    let process = r#"{ "sandbox": { "level": "process", "require": [] } }"#;
    assert_eq!(layers(process), Ok(JailOptions::process_only()));
    for wrong in [
        r#"{ "sandbox": { "level": "none" } }"#,
        r#"{ "sandbox": { "require": ["selinux"] } }"#,
        r#"{ "sandbox": { "require": ["seccomp"], "level": "process" } }"#,
        r#"{ "sandbox": { "levels": "process" } }"#,
    ] {
        let error = layers(wrong).expect_err(wrong);
        assert!(error.contains("sandbox"), "{error}");
    }
}

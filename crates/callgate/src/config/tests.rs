//! Configuration files, and what is read from them or said about them.

use std::fmt::Write as _;
use std::path::Path;

use callgate_broker::{Http, Stdio, Transport};
use expect_test::{Expect, expect};

use super::*;

const SECRET: &str = "hunter2";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(SECRET.to_owned()),
        "PROGRAM" => Some("node".to_owned()),
        "EMPTY" => Some(String::new()),
        "REFERENCE" => Some("${TOKEN}".to_owned()),
        "BROKEN" => Some(format!("{SECRET}\r\nX: y")),
        "HOST" => Some("example.com".to_owned()),
        _ => None,
    }
}

fn read(name: &str, text: &str) -> Result<Config, ConfigError> {
    let folder = Path::new("/project");
    sections::read(
        text,
        &folder.join(name),
        folder,
        Path::new(name),
        &environment,
    )
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
            if config.limits != LimitsConfig::default() {
                writeln!(out, "{:#?}", config.limits).unwrap();
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
      "cwd": "sub", "trusted": true, "startTimeout": "1m", "callTimeout": "90s",
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
                max_message_bytes: 67108864,
            }
            ServerSpec {
                name: "alpha",
                transport: Http {
                    url: "https://example.com/mcp",
                    headers: [
                        "Authorization",
                    ],
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
                max_message_bytes: 67108864,
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
fn values_reach_the_server() {
    let check = |keys: &str, expected: Expect| {
        let text = format!("{{\"servers\": {{\"git\": {{{keys}}}}}}}");
        let config = read(".mcp.json", &text).expect("config");
        let [server] = config.servers.as_slice() else {
            panic!("one server")
        };
        let shown = match &server.transport {
            Transport::Stdio(Stdio {
                command,
                args,
                env,
                cwd,
            }) => {
                format!("{command} {args:?} {env:?} {cwd:?}")
            }
            Transport::Http(Http { url, headers }) => format!("{url} {headers:?}"),
        };
        expected.assert_eq(&shown);
    };
    check(
        r#""command": "${PROGRAM}", "args": ["${workspaceFolder}/x", "$PROGRAM", "${NO:-a}${EMPTY:-b}${EMPTY}"]"#,
        expect![[r#"node ["/project/x", "$PROGRAM", "ab"] {} None"#]],
    );
    check(
        r#""command": "./bin/${PROGRAM}", "cwd": "${workspaceFolder}/x", "env": {"A": "${REFERENCE}"}"#,
        expect![[r#"/project/./bin/node [] {"A": "${TOKEN}"} Some("/project/x")"#]],
    );
    check(
        r#""command": "/bin/x", "cwd": "/tmp""#,
        expect![[r#"/bin/x [] {} Some("/tmp")"#]],
    );
    check(
        r#""url": "http://${HOST}:${PORT:-80}/mcp", "headers": {"X-Key": "${TOKEN}"}"#,
        expect![[r#"http://example.com:80/mcp {"X-Key": "hunter2"}"#]],
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
fn keys_that_mean_nothing() {
    check(
        "{ \"mcpservers\": {}, \"limit\": {}, \"zzz\": 1 }",
        expect![[r#"
            callgate.json:1:3: unknown key "mcpservers" in the file; did you mean "mcpServers"?
            callgate.json:1:21: unknown key "limit" in the file; did you mean "limits"?
            callgate.json:1:34: unknown key "zzz" in the file; remove it, or use one of $schema, mcpServers, servers, permissions, limits
        "#]],
    );
    check(
        "{ \"mcpServers\": {}, \"servers\": {} }",
        expect![[r#"
        callgate.json:1:21: the file has both "mcpServers" and "servers"; put all servers under one of them
    "#]],
    );
    check(
        "{ \"mcpServers\": { \"a\": {\"command\": \"x\"}, \"a\": {} } }",
        expect![[r#"
            callgate.json:1:42: key "a" stands twice in "mcpServers"; remove one
            callgate.json:1:42: server "a" has neither "command" nor "url"; write "command" for a program to start, or "url" for a server to connect to
        "#]],
    );
    check(
        "{ \"mcpServers\": { \"\": {\"command\": \"x\"} } }",
        expect![[r#"
            callgate.json:1:19: a server's name is empty; give it one
        "#]],
    );
    check(
        "{ \"mcpServers\": [], \"permissions\": 1, \"limits\": null }",
        expect![[r#"
            callgate.json:1:17: "mcpServers" in the file must be an object, and this is an array
            callgate.json:1:36: "permissions" in the file must be an object, and this is a number
            callgate.json:1:49: "limits" in the file must be an object, and this is null
        "#]],
    );
    check_server(
        r#""commnad": "git", "colour": "red""#,
        expect![[r#"
            callgate.json:2:9: unknown key "commnad" in server "git"; did you mean "command"?
            callgate.json:2:27: unknown key "colour" in server "git"; remove it, or use one of type, command, args, env, cwd, url, headers, disabled, trusted, protocol, startTimeout, callTimeout
        "#]],
    );
    check_server(
        r#""command": "git", "start_timeout": "1s""#,
        expect![[r#"
        callgate.json:2:27: unknown key "start_timeout" in server "git"; did you mean "startTimeout"?
    "#]],
    );
    check_server(
        r#""httpUrl": "https://example.com""#,
        expect![[r#"
            callgate.json:2:9: unknown key "httpUrl" in server "git"; did you mean "url"?
        "#]],
    );
    check_server(
        r#""command": "git", "command": "hg""#,
        expect![[r#"
        callgate.json:2:27: key "command" stands twice in server "git"; remove one
    "#]],
    );
}

#[test]
fn keys_of_other_clients_are_errors_in_our_file_and_warnings_in_a_shared_one() {
    let text = r#"{
  "inputs": [],
  "servers": {
    "git": {
      "type": "stdio", "command": "git", "timeout": 60, "autoApprove": [],
      "alwaysAllow": [], "envFile": ".env", "gallery": true, "dev": {}, "trust": true
    }
  }
}"#;
    check(
        text,
        expect![[r#"
        callgate.json:2:3: key "inputs" in the file means nothing here; put the values into environment variables and write "${NAME}"
        callgate.json:5:42: key "timeout" in server "git" means nothing here; write "callTimeout", such as "60s"
        callgate.json:5:57: key "autoApprove" in server "git" means nothing here; write the tools under "permissions", "allow"
        callgate.json:6:7: key "alwaysAllow" in server "git" means nothing here; write the tools under "permissions", "allow"
        callgate.json:6:26: key "envFile" in server "git" means nothing here; write the variables under "env"
        callgate.json:6:45: key "gallery" in server "git" means nothing here; it is a note of VS Code
        callgate.json:6:62: key "dev" in server "git" means nothing here; Callgate does not restart servers
        callgate.json:6:73: key "trust" in server "git" means nothing here; write "trusted"
    "#]],
    );
    check_as(
        ".mcp.json",
        text,
        expect![[r#"
            ServerSpec {
                name: "git",
                transport: Stdio {
                    command: "git",
                    args: [0 not shown],
                    env: [],
                    cwd: None,
                },
                era: Auto,
                trusted: false,
                start_timeout: 30s,
                call_timeout: 60s,
                max_message_bytes: 67108864,
            }
            warning: .mcp.json:2:3: key "inputs" in the file means nothing here; put the values into environment variables and write "${NAME}"
            warning: .mcp.json:5:42: key "timeout" in server "git" means nothing here; write "callTimeout", such as "60s"
            warning: .mcp.json:5:57: key "autoApprove" in server "git" means nothing here; write the tools under "permissions", "allow"
            warning: .mcp.json:6:7: key "alwaysAllow" in server "git" means nothing here; write the tools under "permissions", "allow"
            warning: .mcp.json:6:26: key "envFile" in server "git" means nothing here; write the variables under "env"
            warning: .mcp.json:6:45: key "gallery" in server "git" means nothing here; it is a note of VS Code
            warning: .mcp.json:6:62: key "dev" in server "git" means nothing here; Callgate does not restart servers
            warning: .mcp.json:6:73: key "trust" in server "git" means nothing here; write "trusted"
        "#]],
    );
    check_as(
        "mcp.json",
        r#"{ "servers": { "a": { "comand": "x" } } }"#,
        expect![[r#"
            mcp.json:1:23: unknown key "comand" in server "a"; did you mean "command"?
        "#]],
    );
}

#[test]
fn transports() {
    check_server(
        "",
        expect![[r#"
        callgate.json:2:1: server "git" has neither "command" nor "url"; write "command" for a program to start, or "url" for a server to connect to
    "#]],
    );
    check_server(
        r#""type": "stdio""#,
        expect![[r#"
        callgate.json:2:1: server "git" has no "command"; write the program to start
    "#]],
    );
    check_server(
        r#""type": "http""#,
        expect![[r#"
        callgate.json:2:1: server "git" has no "url"; write the server's streamable HTTP URL
    "#]],
    );
    check_server(
        r#""type": "sse", "url": "https://example.com/sse""#,
        expect![[r#"
            callgate.json:2:17: server "git" has "type": "sse", a transport that MCP deprecated in its version 2025-03-26; write "type": "http" and the server's streamable HTTP URL
        "#]],
    );
    check_server(
        r#""type": "streamablehttp", "url": "https://example.com""#,
        expect![[r#"
            callgate.json:2:17: server "git" has the unknown type "streamablehttp"; did you mean "streamable-http"?
        "#]],
    );
    check_server(
        r#""type": "ws", "url": "wss://example.com""#,
        expect![[r#"
        callgate.json:2:17: server "git" has the unknown type "ws"; write "stdio" or "http"
    "#]],
    );
    check_server(
        r#""type": 1, "command": "x""#,
        expect![[r#"
        callgate.json:2:17: "type" in server "git" must be a string, and this is a number
    "#]],
    );
    check_server(
        r#""type": "http", "command": "x""#,
        expect![[r#"
        callgate.json:2:1: server "git" has "type": "http" and "command"; remove one of them
    "#]],
    );
    check_server(
        r#""type": "stdio", "url": "https://example.com""#,
        expect![[r#"
            callgate.json:2:1: server "git" has "type": "stdio" and "url"; remove one of them
        "#]],
    );
    check_server(
        r#""command": "x", "url": "https://example.com""#,
        expect![[r#"
            callgate.json:2:25: server "git" has both "command" and "url"; keep "command" for a program to start, or "url" for a server to connect to
        "#]],
    );
    check_server(
        r#""command": "x", "headers": {}"#,
        expect![[r#"
        callgate.json:2:25: key "headers" in server "git" does not go with "command"; remove it
    "#]],
    );
    check_server(
        r#""url": "https://example.com", "args": [], "env": {}"#,
        expect![[r#"
            callgate.json:2:39: key "args" in server "git" does not go with "url"; remove it
            callgate.json:2:51: key "env" in server "git" does not go with "url"; remove it
        "#]],
    );
    check(
        "{ \"mcpServers\": { \"git\": \"npx git\" } }",
        expect![[r#"
            callgate.json:1:26: server "git" must be an object, such as { "command": "…" }
        "#]],
    );
}

#[test]
fn values_of_servers() {
    check_server(
        r#""command": " ""#,
        expect![[r#"
        callgate.json:2:20: "command" in server "git" is empty; write the program to start
    "#]],
    );
    check_server(
        r#""command": "${EMPTY}""#,
        expect![[r#"
        callgate.json:2:20: "command" in server "git" is empty; write the program to start
    "#]],
    );
    check_server(
        r#""command": ["git"]"#,
        expect![[r#"
        callgate.json:2:20: "command" in server "git" must be a string, and this is an array
    "#]],
    );
    check_server(
        r#""command": "git", "args": "log""#,
        expect![[r#"
        callgate.json:2:35: "args" in server "git" must be an array of strings, and this is a string
    "#]],
    );
    check_server(
        r#""command": "git", "args": ["a", 1]"#,
        expect![[r#"
        callgate.json:2:41: "args" in server "git" must be an array of strings, and this is a number
    "#]],
    );
    check_server(
        r#""command": "a\u0000b""#,
        expect![[r#"
        callgate.json:2:20: "command" in server "git" has a NUL character; remove it
    "#]],
    );
    check_server(
        r#""command": "git", "env": {"A=B": "hunter2", "": "", "P": 8080}"#,
        expect![[r#"
            callgate.json:2:35: "A=B" of "env" in server "git" is no name for an environment variable; use letters, digits and _
            callgate.json:2:53: "" of "env" in server "git" is no name for an environment variable; use letters, digits and _
            callgate.json:2:66: "P" in "env" in server "git" must be a string, and this is a number
        "#]],
    );
    check_server(
        r#""url": "example.com/hunter2""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" is not a valid URL: relative URL without a base
    "#]],
    );
    check_server(
        r#""url": "ftp://example.com/hunter2""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" must start with http:// or https://
    "#]],
    );
    check_server(
        r#""url": "https://me:hunter2@example.com""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" holds a user name or password; write an "Authorization" header instead
    "#]],
    );
    check_server(
        r#""url": "https://a.b", "headers": {"X Key": "hunter2", "X": "${BROKEN}"}"#,
        expect![[r#"
            callgate.json:2:43: "X Key" of "headers" in server "git" is no name for an HTTP header; use letters, digits and -
            callgate.json:2:63: "X" of "headers" in server "git" has a control character in its value, such as a line break; remove it
        "#]],
    );
    check_server(
        r#""command": "git", "trusted": "yes""#,
        expect![[r#"
        callgate.json:2:38: "trusted" in server "git" must be true or false, and this is a string
    "#]],
    );
    check_server(
        r#""command": "git", "disabled": "yes""#,
        expect![[r#"
        callgate.json:2:39: "disabled" in server "git" must be true or false, and this is a string
    "#]],
    );
    check_server(
        r#""command": "git", "protocol": "2025-11-24""#,
        expect![[r#"
            callgate.json:2:39: "protocol" in server "git": unknown protocol revision "2025-11-24"; write "auto" or one of "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
        "#]],
    );
    check_server(
        r#""command": "git", "startTimeout": 10, "callTimeout": "10""#,
        expect![[r#"
            callgate.json:2:43: "startTimeout" in server "git" must be a string, and this is a number
            callgate.json:2:62: "callTimeout" in server "git": "10" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "#]],
    );
}

#[test]
fn references() {
    check_server(
        "\"command\": \"git\",\n \"args\": [\"a\",\n  \"${TOKN}\"], \"env\": {\"A\": \"${ALSO_NOT}\"}",
        expect![[r#"
            callgate.json:4:3: "args" in server "git": environment variable "TOKN" is not set; set it, or write "${TOKN:-default}"
            callgate.json:4:28: "A" of "env" in server "git": environment variable "ALSO_NOT" is not set; set it, or write "${ALSO_NOT:-default}"
        "#]],
    );
    check_server(
        r#""command": "git", "cwd": "${env:HOME}""#,
        expect![[r#"
        callgate.json:2:34: "cwd" in server "git": environment variable "HOME" is not set; set it, or write "${HOME:-default}"
    "#]],
    );
    check_server(
        r#""command": "git", "args": ["${input:key}"]"#,
        expect![[r#"
            callgate.json:2:36: "args" in server "git": "${input:key}" asks a person in VS Code, and Callgate asks nobody; put the value into an environment variable and write "${NAME}"
        "#]],
    );
    check_server(
        r#""command": "git", "args": ["${file}"]"#,
        expect![[r#"
        callgate.json:2:36: "args" in server "git": environment variable "file" is not set; set it, or write "${file:-default}"
    "#]],
    );
    check_server(
        r#""command": "git", "args": ["${config:a.b}", "${}", "${A:-${B}}"]"#,
        expect![[r#"
            callgate.json:2:36: "args" in server "git": "${config:a.b}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
            callgate.json:2:53: "args" in server "git": "${}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
            callgate.json:2:60: "args" in server "git": "${A:-${B}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
        "#]],
    );
    check_server(
        r#""command": "git", "args": ["a${TOKEN"]"#,
        expect![[r#"
        callgate.json:2:36: "args" in server "git": "${" has no closing "}"; close it, as in "${NAME}"
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
            callgate.json:2:22: "allow" in "permissions" must be an array of strings, and this is a number
            callgate.json:3:10: "ask" in "permissions" must be an array of strings, and this is a string
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
            callgate.json:2:54: "output" in "limits" must be a string, and this is a number
            callgate.json:2:73: "outputLines" in "limits" must be a whole number above zero
            callgate.json:3:13: "result" in "limits": "0B" is an empty size; write one that is more than nothing
            callgate.json:3:36: "callsInFlight" in "limits" must be a whole number above zero
            callgate.json:3:41: unknown key "memry" in "limits"; did you mean "memory"?
        "#]],
    );
}

#[test]
fn durations_and_sizes() {
    let check = |text: &str, expected: Expect| {
        let duration = match parse_duration(text) {
            Ok(duration) => format!("{duration:?}"),
            Err(error) => error.to_string(),
        };
        let bytes = match parse_bytes(text) {
            Ok(bytes) => bytes.to_string(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&format!("{duration}\n{bytes}"));
    };
    check(
        "500ms",
        expect![[r#"
        500ms
        "500ms" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "2s",
        expect![[r#"
        2s
        "2s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        " 1.5 m ",
        expect![[r#"
        90s
        " 1.5 m " is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "1H",
        expect![[r#"
        3600s
        "1H" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "16KiB",
        expect![[r#"
        "16KiB" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        16384"#]],
    );
    check(
        "1.5gb",
        expect![[r#"
        "1.5gb" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        1500000000"#]],
    );
    check(
        "512B",
        expect![[r#"
        "512B" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        512"#]],
    );
    check(
        "0.4B",
        expect![[r#"
        "0.4B" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "0.4B" is an empty size; write one that is more than nothing"#]],
    );
    check(
        "0s",
        expect![[r#"
        "0s" is an empty duration; write one that is more than nothing
        "0s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "",
        expect![[r#"
        "" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "2",
        expect![[r#"
        "2" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "2" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "s",
        expect![[r#"
        "s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "-2s",
        expect![[r#"
        "-2s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "-2s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "1.2.3s",
        expect![[r#"
        "1.2.3s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "1.2.3s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        ".5s",
        expect![[r#"
        ".5s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        ".5s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "1e9s",
        expect![[r#"
        "1e9s" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "1e9s" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "99999999999999999999h",
        expect![[r#"
        "99999999999999999999h" is too large a duration; the longest is a hundred years
        "99999999999999999999h" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "999999999999h",
        expect![[r#"
        "999999999999h" is too large a duration; the longest is a hundred years
        "999999999999h" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB""#]],
    );
    check(
        "9007199254740992B",
        expect![[r#"
        "9007199254740992B" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
        "9007199254740992B" is too large a size; the largest is below 2^53 bytes"#]],
    );
}

#[test]
fn the_nearest_folder_wins_and_our_own_file_in_it() {
    let root = tempfile::tempdir().expect("folder");
    let inner = root.path().join("a/b");
    std::fs::create_dir_all(&inner).expect("folders");
    let check = |add: &str, found: &str| {
        std::fs::write(root.path().join(add), "{}").expect("file");
        assert_eq!(
            find(&inner).expect("found"),
            Some(root.path().join(found)),
            "with {add}"
        );
    };
    check(".mcp.json", ".mcp.json");
    check("callgate.json", "callgate.json");
    check("a/.mcp.json", "a/.mcp.json");
    check("a/b/.mcp.json", "a/b/.mcp.json");
    check("a/b/callgate.json", "a/b/callgate.json");
}

#[test]
fn files_that_cannot_be_read() {
    let root = tempfile::tempdir().expect("folder");
    let check = |name: &str, expected: Expect| {
        let error = Config::load_with(&root.path().join(name), environment).expect_err(name);
        let root = format!("{}/", root.path().display());
        expected.assert_eq(&format!("{:?}: {error}", error.kind()).replace(&root, ""));
    };
    check(
        "missing.json",
        expect!["Read: missing.json: cannot be read: No such file or directory (os error 2)"],
    );
    std::fs::create_dir(root.path().join("folder.json")).expect("folder");
    check(
        "folder.json",
        expect!["Read: folder.json: cannot be read: Is a directory (os error 21)"],
    );
    std::fs::write(root.path().join("bytes.json"), [0xff]).expect("file");
    check("bytes.json", expect!["Syntax: bytes.json: not UTF-8 text"]);
}

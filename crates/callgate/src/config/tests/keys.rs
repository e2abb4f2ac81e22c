//! Keys that mean nothing here, or mean something to other clients.

use super::*;

#[test]
fn keys_that_mean_nothing() {
    check(
        "{ \"mcpservers\": {}, \"limit\": {}, \"zzz\": 1 }",
        expect![[r#"
            callgate.json:1:3: unknown key "mcpservers" in the file; did you mean "mcpServers"?
            callgate.json:1:21: unknown key "limit" in the file; did you mean "limits"?
            callgate.json:1:34: unknown key "zzz" in the file; remove it, or use one of $schema, mcpServers, servers, permissions, limits, sandbox, check, ledger, cache, models, search, extract, roots, serve, flows, toolLabels, tools
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
            callgate.json:2:27: unknown key "colour" in server "git"; remove it, or use one of type, command, args, env, cwd, url, headers, oauth, description, connect, idle, disabled, trusted, labels, protocol, startTimeout, callTimeout, maxCallTime
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
        callgate.json:6:62: key "dev" in server "git" means nothing here; Callgate restarts servers that end, not those whose files change
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
            warning: .mcp.json:2:3: key "inputs" in the file means nothing here; put the values into environment variables and write "${NAME}"
            warning: .mcp.json:5:42: key "timeout" in server "git" means nothing here; write "callTimeout", such as "60s"
            warning: .mcp.json:5:57: key "autoApprove" in server "git" means nothing here; write the tools under "permissions", "allow"
            warning: .mcp.json:6:7: key "alwaysAllow" in server "git" means nothing here; write the tools under "permissions", "allow"
            warning: .mcp.json:6:26: key "envFile" in server "git" means nothing here; write the variables under "env"
            warning: .mcp.json:6:45: key "gallery" in server "git" means nothing here; it is a note of VS Code
            warning: .mcp.json:6:62: key "dev" in server "git" means nothing here; Callgate restarts servers that end, not those whose files change
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

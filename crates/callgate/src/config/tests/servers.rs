//! What a file says of its servers.

use super::*;

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
                ..
            }) => {
                format!("{command} {args:?} {env:?} {cwd:?}")
            }
            Transport::Http(Http { url, headers, .. }) => format!("{url} {headers:?}"),
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

/// What the environment put into what a server is given is not to appear.
#[test]
fn what_was_put_in_is_secret() {
    let check = |keys: &str, expected: &[(&str, &str)]| {
        let text = format!("{{\"servers\": {{\"git\": {{{keys}}}}}}}");
        let config = read(".mcp.json", &text).expect("config");
        let secrets = match config.servers.first().map(|server| &server.transport) {
            Some(Transport::Stdio(stdio)) => &stdio.secrets,
            Some(Transport::Http(http)) => &http.secrets,
            None => panic!("one server"),
        };
        let secrets = secrets.iter();
        let secrets: Vec<_> = secrets.map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(secrets, expected, "{keys}");
    };
    check(
        r#""command": "${PROGRAM}", "cwd": "${HOST}", "args": ["--key=${TOKEN}", "${NO:-default}"]"#,
        &[("TOKEN", "hunter2")],
    );
    // A place that is there is none.
    check(
        r#""command": "x", "args": ["${ROOT}"], "env": {"A": "a ${env:HOST}"}"#,
        &[("HOST", "example.com")],
    );
    check(
        r#""url": "http://${HOST}/${TOKEN}/mcp?p=${PROGRAM}", "headers": {"X-Key": "a ${REFERENCE}"}"#,
        &[
            ("PROGRAM", "node"),
            ("REFERENCE", "${TOKEN}"),
            ("TOKEN", "hunter2"),
        ],
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
            callgate.json:2:66: "P" in "env" in server "git" must be a string, or an object with "command" or "keyring", and this is a number
        "#]],
    );
    check_server(
        r#""url": "example.com/hunter2""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" must begin with https:// or http://
    "#]],
    );
    check_server(
        r#""url": "localhost:3000/hunter2""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" must begin with https:// or http://
    "#]],
    );
    check_server(
        r#""url": "https://:3000/hunter2""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" is not a valid URL: empty host
    "#]],
    );
    check_server(
        r#""url": "ftp://example.com/hunter2""#,
        expect![[r#"
        callgate.json:2:16: "url" in server "git" must begin with https:// or http://
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
            callgate.json:2:43: "startTimeout" in server "git" must be a string such as "30s", and this is a number
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
            callgate.json:2:36: "args" in server "git": "${input:…}" asks a person in VS Code, and Callgate asks nobody; put the value into an environment variable and write "${NAME}"
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
            callgate.json:2:36: "args" in server "git": "${…}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
            callgate.json:2:53: "args" in server "git": "${}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
            callgate.json:2:60: "args" in server "git": "${A:-…}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
        "#]],
    );
    check_server(
        r#""command": "git", "args": ["${MY-TOKEN:-hunter2}"]"#,
        expect![[r#"
            callgate.json:2:36: "args" in server "git": "${MY-TOKEN:-…}" is not a reference; write "${NAME}", "${NAME:-default}", "${env:NAME}" or "${workspaceFolder}"
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
fn when_a_server_is_connected_to() {
    let said_of = |members: &str| {
        let text =
            format!("{{ \"mcpServers\": {{ \"git\": {{ \"command\": \"git\", {members} }} }} }}");
        match read("callgate.json", &text) {
            Ok(config) => {
                let server = &config.servers[0];
                format!(
                    "{:?} {:?} {:?}",
                    server.description, server.connect, server.idle
                )
            }
            Err(error) => error.to_string(),
        }
    };
    for (members, expected) in [
        (
            r#""description": " Commits. ""#,
            expect![[r#"Some("Commits.") Always Some(300s)"#]],
        ),
        (
            r#""connect": "lazy", "idle": "90s""#,
            expect!["None Lazy Some(90s)"],
        ),
        (
            r#""idle": "never", "connect": "manual""#,
            expect!["None Manual None"],
        ),
        (
            r#""connect": "lazy", "idle": "0""#,
            expect!["None Lazy None"],
        ),
    ] {
        expected.assert_eq(&said_of(members));
    }
    for (members, expected) in [
        (
            r#""connect": "soon""#,
            "write \"always\", \"lazy\" or \"manual\"",
        ),
        (
            r#""idle": "5m""#,
            "goes with \"connect\": \"lazy\" or \"manual\" only",
        ),
        (r#""connect": "lazy", "idle": "0s""#, "or write \"never\""),
        (
            r#""description": "a\nb""#,
            "must be one line of at most 200 characters",
        ),
        (
            r#""description": """#,
            "must be one line of at most 200 characters",
        ),
    ] {
        let said = said_of(members);
        assert!(said.contains(expected), "{members}: {said}");
    }
}

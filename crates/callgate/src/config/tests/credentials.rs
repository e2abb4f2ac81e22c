//! What a file says of secrets and logins.

use super::*;

/// What becomes of a server's value, its prefix first.
fn values(text: &str) -> String {
    let config = read("callgate.json", text).expect("config");
    let mut out = String::new();
    for server in &config.servers {
        let (from, oauth) = match &server.transport {
            Transport::Stdio(stdio) => (&stdio.env_from, None),
            Transport::Http(http) => (&http.headers_from, Some(&http.oauth)),
        };
        for (name, source) in from {
            writeln!(out, "{name}: {:?} {source:?}", source.prefix).unwrap();
        }
        if let Some(oauth) = oauth {
            writeln!(out, "{oauth:?}").unwrap();
        }
    }
    out
}

#[test]
fn sources() {
    expect![[r#"
        PIN: "" the keyring's entry for service "bank" and account "me"
        TOKEN: "" command "op"
    "#]]
    .assert_eq(&values(
        r#"{ "mcpServers": { "a": { "command": "x", "env": {
            "PLAIN": "${TOKEN}",
            "TOKEN": { "command": ["op", "read", "op://v/${PROGRAM}"], "timeout": "5s" },
            "PIN": { "keyring": { "service": "bank", "account": "me" } },
        } } } }"#,
    ));
    expect![[r#"
        Authorization: "Bearer " command "/project/./token.sh"
        Some(OAuth)
    "#]]
    .assert_eq(&values(
        r#"{ "mcpServers": { "a": { "url": "https://a.example/mcp", "headers": {
            "Authorization": { "command": ["./token.sh"], "prefix": "Bearer " },
        } } } }"#,
    ));
}

#[test]
fn logins() {
    let check = |oauth: &str, expected: Expect| {
        let server = format!(r#""url": "https://a.example/mcp", "oauth": {oauth}"#);
        let text = format!(r#"{{ "mcpServers": {{ "a": {{ {server} }} }} }}"#);
        expected.assert_eq(&values(&text));
    };
    check(
        "true",
        expect![[r#"
        Some(OAuth)
    "#]],
    );
    check(
        "false",
        expect![[r#"
        None
    "#]],
    );
    check(
        r#"{ "clientId": "c", "issuer": "https://as.example", "clientSecret": "${TOKEN}",
             "scopes": ["a", "b"],
             "grant": "client_credentials", "tokens": "file", "redirectPort": 8123 }"#,
        expect![[r#"
            Some(OAuth { client_id: "c", issuer: "https://as.example", client_secret: the configuration, scopes: ["a", "b"], grant: ClientCredentials, redirect_port: 8123, place: File })
        "#]],
    );
    check(
        r#"{ "clientMetadataUrl": "https://c.example/client.json" }"#,
        expect![[r#"
            Some(OAuth { client_metadata_url: "https://c.example/client.json" })
        "#]],
    );
}

#[test]
fn mistakes() {
    check_server(
        r#""command": "x", "env": { "A": { "keyring": { "service": "s", "user": "u" } } }"#,
        expect![[r#"
            callgate.json:2:52: "keyring" in "A" of "env" in server "git" has no "account"; write that of the keyring's entry
            callgate.json:2:70: unknown key "user" in "keyring" in "A" of "env" in server "git"; did you mean "account"?
        "#]],
    );
    check_server(
        r#""command": "x", "env": { "A": { "command": [] }, "B": { "command": "op read" }, "C": {} }"#,
        expect![[r#"
            callgate.json:2:52: "command" in "A" of "env" in server "git" is empty; write the program and its arguments
            callgate.json:2:76: "command" in "B" of "env" in server "git" must be an array of strings, and this is a string
            callgate.json:2:94: "C" of "env" in server "git" has neither "command" nor "keyring"; write where its value comes from
        "#]],
    );
    check_server(
        r#""command": "x", "env": { "A": { "command": ["hunter2"], "keyring": {}, "prefix": 1 } }"#,
        expect![[r#"
            callgate.json:2:39: "A" of "env" in server "git" has both "command" and "keyring"; keep one
        "#]],
    );
    check_server(
        r#""command": "x", "env": { "A": 5 }, "oauth": {}"#,
        expect![[r#"
            callgate.json:2:39: "A" in "env" in server "git" must be a string, or an object with "command" or "keyring", and this is a number
            callgate.json:2:44: key "oauth" in server "git" does not go with "command"; remove it
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "headers": { "A": { "command": ["x"], "prefix": "a\r\nb" } }"#,
        expect![[r#"
            callgate.json:2:50: "A" of "headers" in server "git" has a control character in its value, such as a line break; remove it
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "headers": { "authorization": "x" }, "oauth": {}"#,
        expect![[r#"
            callgate.json:2:74: server "git" has "oauth" and an "Authorization" header; keep one
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "oauth": { "clientSecret": "hunter2", "callbackPort": 1, "redirectPort": 70000 }"#,
        expect![[r#"
            callgate.json:2:75: key "callbackPort" in "oauth" in server "git" means nothing here; write "redirectPort"
            callgate.json:2:110: "redirectPort" in "oauth" in server "git" is over 65535, the last port there is
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "oauth": { "grant": "client_credentials", "clientId": "c" }"#,
        expect![[r#"
            callgate.json:2:46: "oauth" in server "git" has the grant of client credentials; write "clientId" and "clientSecret"
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "oauth": { "clientId": "c", "clientSecret": "hunter2" }"#,
        expect![[r#"
            callgate.json:2:46: "oauth" in server "git" has a "clientSecret" and no "issuer"; write the issuer of the authorization server that the secret is for
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "oauth": { "grant": "password", "tokens": "cloud", "clientMetadataUrl": "http://a/b" }"#,
        expect![[r#"
            callgate.json:2:57: "grant" in "oauth" in server "git": unknown grant "password"; write "authorization_code" or "client_credentials"
            callgate.json:2:79: "tokens" in "oauth" in server "git": tokens are not kept in "cloud"; write "auto", "keyring" or "file"
            callgate.json:2:109: "clientMetadataUrl" in "oauth" in server "git" must be an https URL with a path
        "#]],
    );
    check_server(
        r#""url": "https://a.example", "oauth": "yes""#,
        expect![[r#"
            callgate.json:2:46: "oauth" in server "git" must be true, false or an object, and this is a string
        "#]],
    );
}

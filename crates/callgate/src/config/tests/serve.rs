//! What a file says of serving over HTTP, and to whom.

use super::*;

/// What `serve` gives, or what is wrong with it.
#[track_caller]
fn check_serve(serve: &str, expected: Expect) {
    let servers = r#""mcpServers": { "crm": { "command": "x" }, "wiki": { "command": "y" } }"#;
    let text = format!("{{ {servers},\n\"serve\": {serve} }}");
    let out = match read("callgate.json", &text) {
        Ok(config) => {
            let mut out = String::new();
            if config.http != HttpConfig::default() {
                writeln!(out, "{:#?}", config.http).unwrap();
            }
            if config.users != UsersConfig::default() {
                writeln!(out, "{:#?}", config.users).unwrap();
            }
            out
        }
        Err(error) => format!("{error}\n"),
    };
    assert!(!out.contains(SECRET), "a secret is shown: {out}");
    expected.assert_eq(&out);
}

#[test]
fn all_of_http() {
    check_serve(
        r#"{ "http": {
            "address": "localhost:8080",
            "allowedHosts": ["Callgate.Example.com", "callgate.example.com:8443", "10.0.0.1"],
            "allowedOrigins": ["https://app.example.com", "http://localhost:3000"],
            "bearer": { "alice": "${LONG_TOKEN}", "bob@ci": { "command": ["op", "read"] } },
            "maxBody": "1MiB",
            "rate": { "perSecond": 5, "burst": 10 },
            "connections": 7, "requests": 8, "sessions": 9, "sessionsPerUser": 3,
            "sessionIdle": "5m", "shutdownTime": "2s",
            "oauth": {
                "issuer": "https://login.example.com/", "resource": "https://callgate.example.com/mcp",
                "scopes": ["callgate"], "algorithms": ["ES256"]
            }
        } }"#,
        expect![[r#"
            HttpConfig {
                address: Some(
                    127.0.0.1:8080,
                ),
                allowed_hosts: [
                    "callgate.example.com",
                    "callgate.example.com:8443",
                    "10.0.0.1",
                ],
                allowed_origins: [
                    "https://app.example.com",
                    "http://localhost:3000",
                ],
                bearer: [
                    (
                        "alice",
                        the configuration,
                    ),
                    (
                        "bob@ci",
                        command "op",
                    ),
                ],
                oauth: Some(
                    ResourceConfig {
                        issuer: "https://login.example.com/",
                        resource: Some(
                            "https://callgate.example.com/mcp",
                        ),
                        audience: None,
                        scopes: [
                            "callgate",
                        ],
                        algorithms: [
                            "ES256",
                        ],
                    },
                ),
                max_body: 1048576,
                request_time: 30s,
                rate: RateConfig {
                    per_second: 5,
                    burst: 10,
                },
                connections: 7,
                requests: 8,
                sessions: 9,
                sessions_per_user: 3,
                session_idle: 300s,
                shutdown_time: 2s,
            }
        "#]],
    );
    check_serve(
        r#"{ "http": { "bearer": "${LONG_TOKEN}" } }"#,
        expect![[r#"
            HttpConfig {
                address: None,
                allowed_hosts: [],
                allowed_origins: [],
                bearer: [
                    (
                        "default",
                        the configuration,
                    ),
                ],
                oauth: None,
                max_body: 4194304,
                request_time: 30s,
                rate: RateConfig {
                    per_second: 500,
                    burst: 1000,
                },
                connections: 1024,
                requests: 256,
                sessions: 1024,
                sessions_per_user: 128,
                session_idle: 1800s,
                shutdown_time: 10s,
            }
        "#]],
    );
    check_serve(
        r#"{ "http": { "bearer": { "keyring": { "service": "s", "account": "a" } } } }"#,
        expect![[r#"
            HttpConfig {
                address: None,
                allowed_hosts: [],
                allowed_origins: [],
                bearer: [
                    (
                        "default",
                        the keyring's entry for service "s" and account "a",
                    ),
                ],
                oauth: None,
                max_body: 4194304,
                request_time: 30s,
                rate: RateConfig {
                    per_second: 500,
                    burst: 1000,
                },
                connections: 1024,
                requests: 256,
                sessions: 1024,
                sessions_per_user: 128,
                session_idle: 1800s,
                shutdown_time: 10s,
            }
        "#]],
    );
}

#[test]
fn what_is_wrong_with_http() {
    check_serve(
        r#"{ "http": {
            "address": "example.com:80",
            "allowedHosts": ["https://a.example", "a/b", "*", "a@b"],
            "allowedOrigins": ["a.example", "https://a.example/path", "null"],
            "bearer": { "": "x", "a b": "y", "ci": "a-token-of-15-c" },
            "rate": { "perSecond": 0 },
            "port": 80
        } }"#,
        expect![[r#"
            callgate.json:3:24: "address" in "http" in "serve": "example.com:80" is no address to listen on; write an IP address and a port, such as "127.0.0.1:8080"
            callgate.json:4:30: "allowedHosts" in "http" in "serve": "https://a.example" is no host; write a name, such as "callgate.example.com", or one with a port
            callgate.json:4:51: "allowedHosts" in "http" in "serve": "a/b" is no host; write a name, such as "callgate.example.com", or one with a port
            callgate.json:4:58: "allowedHosts" in "http" in "serve": "*" is no host; write a name, such as "callgate.example.com", or one with a port
            callgate.json:4:63: "allowedHosts" in "http" in "serve": "a@b" is no host; write a name, such as "callgate.example.com", or one with a port
            callgate.json:5:32: "allowedOrigins" in "http" in "serve": "a.example" is no origin; write scheme and host, such as "https://app.example.com"
            callgate.json:5:45: "allowedOrigins" in "http" in "serve": "https://a.example/path" is no origin; write scheme and host, such as "https://app.example.com"
            callgate.json:5:71: "allowedOrigins" in "http" in "serve": "null" is no origin; write scheme and host, such as "https://app.example.com"
            callgate.json:6:25: "bearer" in "http" in "serve": "" is no name for whoever has a token; use up to 64 letters, digits and . _ - @
            callgate.json:6:34: "bearer" in "http" in "serve": "a b" is no name for whoever has a token; use up to 64 letters, digits and . _ - @
            callgate.json:6:52: "ci" in "bearer" in "http" in "serve" is a token of fewer than 16 characters and could be guessed; take one such as `openssl rand -hex 32` gives
            callgate.json:7:36: "perSecond" in "rate" in "http" in "serve" must be a whole number above zero
            callgate.json:8:13: key "port" in "http" in "serve" means nothing here; write "address", such as "127.0.0.1:8080"
        "#]],
    );
    check_serve(
        r#"{ "http": { "oauth": { "issuer": "http://login.example.com" } } }"#,
        expect![[r#"
            callgate.json:2:43: "issuer" in "oauth" in "http" in "serve" must be an https URL without query or fragment (http on loopback only)
        "#]],
    );
    check_serve(
        r#"{ "http": { "oauth": {
            "issuer": "http://127.0.0.1:9", "algorithms": ["HS256", "none", "ES265", "x"],
            "scopes": ["a\"b", ""], "resource": "https://a.example/mcp?x=1"
        } } }"#,
        expect![[r#"
            callgate.json:3:60: "algorithms" in "oauth" in "http" in "serve": "HS256" is not taken: whoever can check such a token can make one
            callgate.json:3:69: "algorithms" in "oauth" in "http" in "serve": "none" is not taken: whoever can check such a token can make one
            callgate.json:3:77: "algorithms" in "oauth" in "http" in "serve": unknown algorithm "ES265"; did you mean "ES256"?
            callgate.json:3:86: "algorithms" in "oauth" in "http" in "serve": unknown algorithm "x"; write one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA
            callgate.json:4:24: "scopes" in "oauth" in "http" in "serve": "a\"b" is no scope; it must be one word of plain letters
            callgate.json:4:32: "scopes" in "oauth" in "http" in "serve": "" is no scope; it must be one word of plain letters
            callgate.json:4:49: "resource" in "oauth" in "http" in "serve" must be an https URL without query or fragment (http on loopback only)
        "#]],
    );
    check_serve(
        r#"{ "http": { "oauth": {} } }"#,
        expect![[r#"
        callgate.json:2:31: "oauth" in "http" in "serve" has no "issuer"; name whose tokens are taken
    "#]],
    );
}

#[test]
fn roles() {
    check_serve(
        r#"{ "users": {
            "claim": "/realm/roles",
            "roles": {
                "analyst": { "servers": ["crm"], "permissions": { "allow": ["crm_get*"] } },
                "all": { "servers": ["*"] }
            },
            "default": ["analyst"], "named": { "alice": ["all"] }, "subjects": { "u-1": ["all"] },
            "most": 3, "idle": "1m"
        }, "http": { "bearer": { "alice": { "command": ["op", "read"] } } } }"#,
        expect![[r#"
            HttpConfig {
                address: None,
                allowed_hosts: [],
                allowed_origins: [],
                bearer: [
                    (
                        "alice",
                        command "op",
                    ),
                ],
                oauth: None,
                max_body: 4194304,
                request_time: 30s,
                rate: RateConfig {
                    per_second: 500,
                    burst: 1000,
                },
                connections: 1024,
                requests: 256,
                sessions: 1024,
                sessions_per_user: 128,
                session_idle: 1800s,
                shutdown_time: 10s,
            }
            UsersConfig {
                claim: "/realm/roles",
                roles: Some(
                    {
                        "all": Role {
                            servers: [
                                "*",
                            ],
                            permissions: [],
                            tools: ToolSettings {
                                entries: [],
                            },
                        },
                        "analyst": Role {
                            servers: [
                                "crm",
                            ],
                            permissions: [
                                Rule {
                                    effect: Allow,
                                    pattern: Pattern {
                                        text: "crm_get*",
                                    },
                                    server: None,
                                    trusted: None,
                                    arguments: [],
                                    annotations: Annotations {
                                        read_only: None,
                                        destructive: None,
                                        idempotent: None,
                                        open_world: None,
                                    },
                                    max_calls: None,
                                    expires: None,
                                    definition: None,
                                    written_in: "permissions.allow",
                                },
                            ],
                            tools: ToolSettings {
                                entries: [],
                            },
                        },
                    },
                ),
                default: [
                    "analyst",
                ],
                named: {
                    "alice": [
                        "all",
                    ],
                },
                subjects: {
                    "u-1": [
                        "all",
                    ],
                },
                most: 3,
                idle: 60s,
            }
        "#]],
    );
    check_serve(
        r#"{ "users": {
            "roles": { "a": { "servers": ["cmr"], "permissions": { "allow": ["["] } }, "b": 1 },
            "default": ["c"], "named": { "alice": "all", "alcie": [], "default": [] }
        }, "http": { "bearer": { "alice": { "command": ["op", "read"] } } } }"#,
        expect![[r#"
            callgate.json:3:43: role "a" has the server "cmr", which the file does not have; add it, or write "*" for all
            callgate.json:3:78: pattern "[" can never match: generated names have "_" in place of "["; did you mean "_"?
            callgate.json:3:93: "b" in "roles" in "users" in "serve" must be an object, such as { "servers": ["*"] }, and this is a number
            callgate.json:4:25: "default" in "users" in "serve" has the role "c", which "roles" does not have; add it there
            callgate.json:4:51: "alice" in "named" in "users" in "serve" must be an array of strings, and this is a string
            callgate.json:4:58: "named" has "alcie", and no token of "bearer" has this name; did you mean "alice"?
        "#]],
    );
}

/// What a user with these roles has.
#[track_caller]
fn check_user(roles: &[&str], expected: Expect) {
    let config = read(
        "callgate.json",
        r#"{
            "mcpServers": {
                "crm": { "command": "x" }, "wiki": { "url": "https://wiki.example/mcp" },
                "old": { "command": "x", "disabled": true },
                "payroll": { "command": "x", "disabled": true }
            },
            "permissions": { "deny": ["*_delete"] },
            "ledger": { "path": "calls.jsonl" },
            "serve": { "users": { "roles": {
                "analyst": { "servers": ["crm", "old"], "permissions": { "allow": ["crm_*"] } },
                "writer": { "servers": ["wiki"], "permissions": { "ask": ["wiki_*"] },
                    "tools": { "wiki_purge": { "visibility": "hidden" } } },
                "nothing": {}
            } } }
        }"#,
    );
    let config = config.expect("a configuration");
    let mut out = String::new();
    match config.for_user(Some("token alice"), roles.iter().copied()) {
        None => out.push_str("nothing\n"),
        Some(config) => {
            for server in &config.servers {
                let login = match &server.transport {
                    Transport::Http(http) => http.oauth.as_ref(),
                    Transport::Stdio(_) => None,
                };
                let login = login.map(|oauth| (&oauth.user, &oauth.login_flags));
                writeln!(out, "{} {login:?}", server.name).unwrap();
            }
            writeln!(out, "disabled: {:?}", config.disabled).unwrap();
            for rule in config.permissions.iter() {
                writeln!(out, "{:?} {rule}", rule.effect).unwrap();
            }
            for function in ["wiki_purge", "wiki_read"] {
                let visibility = config.tools.visibility(function);
                writeln!(out, "{function} {visibility:?}").unwrap();
            }
            writeln!(out, "ledger of {:?}", config.ledger.user).unwrap();
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn a_users_configuration() {
    check_user(
        &["analyst"],
        expect![[r#"
            crm None
            disabled: ["old"]
            Deny rule "*_delete" in permissions.deny
            Allow rule "crm_*" in permissions.allow
            wiki_purge Native
            wiki_read Native
            ledger of Some("token alice")
        "#]],
    );
    check_user(
        &["analyst", "writer"],
        expect![[r#"
            crm None
            wiki Some((Some("token alice"), ["--user", "alice"]))
            disabled: ["old"]
            Deny rule "*_delete" in permissions.deny
            Allow rule "crm_*" in permissions.allow
            Ask rule "wiki_*" in permissions.ask
            wiki_purge Hidden
            wiki_read Native
            ledger of Some("token alice")
        "#]],
    );
    check_user(
        &["unknown", "nothing"],
        expect![[r#"
        nothing
    "#]],
    );
    check_user(
        &[],
        expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn the_logins_of_users_are_made_with_their_flags() {
    let text = r#"{ "mcpServers": { "wiki": { "url": "https://wiki.example/mcp" } } }"#;
    let config = read("callgate.json", text).expect("a configuration");
    for (user, flags) in [
        (token_user("a@b"), ["--user", "a@b"]),
        (
            subject_user("https://login.example/", "auth0|7 8"),
            ["--subject", "auth0|7 8"],
        ),
    ] {
        let mut own = config.for_user(Some(&user), []).expect("the server");
        let logins: Vec<_> = own.logins_mut().map(|it| it.login_flags.clone()).collect();
        assert_eq!(logins, [flags], "{user}");
    }
}

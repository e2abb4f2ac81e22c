//! Every key of `serve`, its mistakes, and the configuration of one user.

use callgate::config::{Config, ConfigError, Effects, Loaded, Problem, schema};
use callgate::faces::Origin;
use callgate::faces::Source;
use callgate::faces::ToolName;

use super::*;

fn tool(function: &str) -> ToolName<'_> {
    ToolName {
        function,
        aliases: &[],
        server: "",
        tool: "",
    }
}

const SECRET: &str = "hunter2";

fn environment(name: &str) -> Option<String> {
    match name {
        "LONG_TOKEN" => Some(format!("{SECRET}-0123456789")),
        "PROGRAM" => Some("node".to_owned()),
        "HOST" => Some("example.com".to_owned()),
        _ => None,
    }
}

fn load(name: &str, text: &str) -> Result<Loaded<ServeConfig>, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file");
    Loaded::load(&path, environment)
}

/// Members of `serve`, and what they load.
type Row = (&'static str, fn(&ServeConfig) -> String, &'static str);

/// A row that shows one value of the loaded settings.
macro_rules! row {
    ($text:literal, $config:ident => $value:expr, $expected:literal) => {
        ($text, |$config| format!("{:?}", $value), $expected)
    };
}

#[rustfmt::skip]
#[test]
fn keys_of_serve() {
    let rows: &[Row] = &[
        row!(r#""mode": "native""#, c => c.mode, "Native"),
        row!(r#""context": { "window": 128000, "share": 0.05 }"#, c => (c.context.window, c.context.share), "(128000, 0.05)"),
        row!(r#""context": { "share": 1 }"#, c => c.context.share, "1.0"),
        row!(r#""toolsTtl": "1m""#, c => c.tools_ttl, "60s"),
        row!(r#""wait": "20s""#, c => c.wait, "20s"),
        row!(r#""answerTime": "1h""#, c => c.answer_time, "3600s"),
        row!(r#""structuredReport": true"#, c => c.structured_report, "true"),
        row!(r#""memory": "1GiB""#, c => c.memory, "Some(1073741824)"),
        row!(r#""modes": ["native"]"#, c => c.modes, "Some([Native])"),
        row!(r#""roots": "configured""#, c => c.roots, "Configured"),
        row!("", c => c.roots, "Client"),
        row!("", c => (c.http == HttpConfig::default(), c.users == UsersConfig::default()), "(true, true)"),
        row!(r#""http": { "address": "localhost:8080" }"#, c => c.http.address, "Some(127.0.0.1:8080)"),
        row!(r#""http": { "address": "[::1]:0" }"#, c => c.http.address, "Some([::1]:0)"),
        row!(r#""http": { "allowedHosts": ["A.${HOST}", "a.example:8443", "10.0.0.1"] }"#, c => c.http.allowed_hosts, r#"["a.example.com", "a.example:8443", "10.0.0.1"]"#),
        row!(r#""http": { "allowedOrigins": ["https://app.example.com", "http://localhost:3000"] }"#, c => c.http.allowed_origins, r#"["https://app.example.com", "http://localhost:3000"]"#),
        row!(r#""http": { "bearer": "${LONG_TOKEN}" }"#, c => tokens(c), r#"["default: hunter2-0123456789"]"#),
        row!(r#""http": { "bearer": { "keyring": { "service": "s", "account": "a" } } }"#, c => tokens(c), r#"["default: s/a"]"#),
        row!(r#""http": { "bearer": { "command": ["op"] } }"#, c => tokens(c).len(), "1"),
        row!(r#""http": { "bearer": { "bob@ci": "${LONG_TOKEN}", "al-ice": { "keyring": { "service": "s", "account": "a" } } } }"#, c => tokens(c), r#"["bob@ci: hunter2-0123456789", "al-ice: s/a"]"#),
        row!(r#""http": { "oauth": { "issuer": "https://${HOST}/" } }"#,
            c => c.http.oauth.as_ref().map(|it| (&it.issuer, &it.resource, &it.audience, &it.scopes, it.algorithms.len())), r#"Some(("https://example.com/", None, None, [], 9))"#),
        row!(r#""http": { "oauth": { "issuer": "http://127.0.0.1:9", "resource": "https://${HOST}/mcp", "audience": "${PROGRAM}", "scopes": ["callgate"], "algorithms": ["ES256"] } }"#,
            c => c.http.oauth.as_ref().map(|it| (&it.resource, &it.audience, &it.scopes, &it.algorithms)), r#"Some((Some("https://example.com/mcp"), Some("node"), ["callgate"], ["ES256"]))"#),
        row!(r#""http": { "maxBody": "1MiB" }"#, c => c.http.max_body, "1048576"),
        row!(r#""http": { "requestTime": "5s" }"#, c => c.http.request_time, "5s"),
        row!(r#""http": { "rate": { "perSecond": 5, "burst": 10 } }"#, c => c.http.rate, "RateConfig { per_second: 5, burst: 10 }"),
        row!(r#""http": { "rate": { "burst": 10 } }"#, c => c.http.rate, "RateConfig { per_second: 500, burst: 10 }"),
        row!(r#""http": { "connections": 7, "requests": 8, "sessions": 9, "sessionsPerUser": 3 }"#,
            c => (c.http.connections, c.http.requests, c.http.sessions, c.http.sessions_per_user), "(7, 8, 9, 3)"),
        row!(r#""http": { "sessionIdle": "5m", "shutdownTime": "2s" }"#, c => (c.http.session_idle, c.http.shutdown_time), "(300s, 2s)"),
        row!(r#""users": { "claim": "/realm/roles" }"#, c => c.users.claim, r#""/realm/roles""#),
        row!(r#""users": { "most": 3, "idle": "1m" }"#, c => (c.users.max, c.users.idle), "(3, 60s)"),
        row!(r#""users": { "default": ["r"], "roles": { "r": {} } }"#, c => c.users.default, r#"["r"]"#),
        row!(r#""users": { "named": { "alice": ["r"], "default": [] }, "roles": { "r": {} } }, "http": { "bearer": { "alice": "${LONG_TOKEN}" } }"#,
            c => c.users.named, r#"{"alice": ["r"], "default": []}"#),
        row!(r#""users": { "subjects": { "u-1": ["r"] }, "roles": { "r": {} } }"#, c => c.users.subjects, r#"{"u-1": ["r"]}"#),
        row!(r#""operators": { "olga": { "token": "${LONG_TOKEN}" } }"#, c => operators(c), r#"["olga: hunter2-0123456789 None"]"#),
        row!(r#""operators": { "lead": { "token": { "keyring": { "service": "s", "account": "a" } }, "approve": ["default", "al"] } }, "http": { "bearer": { "al": "${LONG_TOKEN}" } }"#,
            c => operators(c), r#"["lead: s/a Some([\"token default\", \"token al\"])"]"#),
        row!(r#""operators": { "lead": { "token": "${LONG_TOKEN}", "approve": ["u-1", "al"] } }, "http": { "bearer": { "al": "al-0123456789abcdef" }, "oauth": { "issuer": "https://a.b" } }"#,
            c => c.operators["lead"].users(&c.http), r#"Some(["subject https://a.b u-1", "token al"])"#),
        row!(r#""operators": { "lead": { "token": "${LONG_TOKEN}", "approve": [] } }"#, c => c.operators["lead"].users(&c.http), "Some([])"),
        row!(r#""users": { "roles": { "r": { "servers": ["crm", "off", "*"] } } }"#, c => role(c).servers, r#"["crm", "off", "*"]"#),
        row!(r#""users": { "roles": { "r": { "permissions": { "deny": ["crm_*"] } } } }"#, c => rules(&role(c).permissions.rules), r#"["\"crm_*\""]"#),
        row!(r#""users": { "roles": { "r": { "tools": { "crm_*": { "visibility": "hidden" } } } } }"#, c => role(c).tools.visibility(tool("crm_x")), "Hidden"),
    ];
    let mut wrong = String::new();
    for (members, effect, expected) in rows {
        let text = format!(r#"{{ "mcpServers": {{ "crm": {{ "command": "x" }}, "off": {{ "disabled": true }} }}, "serve": {{ {members} }} }}"#);
        match load("callgate.json", &text).map(|loaded| effect(&loaded.serve)) {
            Ok(effect) if effect == *expected => {}
            Ok(effect) => wrong += &format!("{members}\n    gives {effect}\n"),
            Err(error) => wrong += &format!("{members}\n    {error}\n"),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn tokens(config: &ServeConfig) -> Vec<String> {
    let tokens = config.http.bearer.iter();
    tokens
        .map(|(name, token)| format!("{name}: {}", source(token)))
        .collect()
}

fn operators(config: &ServeConfig) -> Vec<String> {
    let operators = config.operators.iter();
    let shown = operators.map(|(name, operator)| {
        let token = source(&operator.token);
        format!("{name}: {token} {:?}", operator.users(&config.http))
    });
    shown.collect()
}

fn role(config: &ServeConfig) -> &Role {
    &config.users.roles.as_ref().expect("roles")["r"]
}

/// Where a token comes from, and its text.
fn source(source: &Source) -> String {
    match &source.origin {
        Origin::Text(text) => text.clone(),
        Origin::Keyring { service, account } => format!("{service}/{account}"),
        other => format!("{other:?}"),
    }
}

/// The JSON of each rule.
fn rules(rules: &callgate::Rules) -> Vec<String> {
    rules
        .iter()
        .map(|rule| rule.to_json().to_string())
        .collect()
}

#[test]
fn token_program_starts_in_folder_of_file() {
    let text =
        r#"{ "serve": { "http": { "bearer": { "prefix": "x", "command": ["./token"] } } } }"#;
    let loaded = load("callgate.json", text).expect("a configuration");
    let [(name, token)] = &loaded.serve.http.bearer[..] else {
        panic!("one token");
    };
    assert_eq!((name.as_str(), token.prefix.as_str()), ("default", "x"));
    let Origin::Command { cwd, .. } = &token.origin else {
        panic!("a program");
    };
    assert_eq!(cwd.as_ref(), Some(&loaded.config.folder));
}

#[test]
fn debug_output_holds_no_token() {
    let text = r#"{ "serve": { "http": { "bearer": "${LONG_TOKEN}" } } }"#;
    let loaded = load("callgate.json", text).expect("a configuration");
    let shown = format!("{loaded:#?}");
    assert!(!shown.contains(SECRET), "{shown}");
}

/// Keys that are shown before a found file is used; all others can start, read, send or loosen
/// nothing.
const SHOWN: [&str; 7] = [
    "http",
    "memory",
    "mode",
    "modes",
    "operators",
    "roots",
    "users",
];

#[test]
fn each_key_is_shown_or_inert() {
    let schema = schema::<ServeConfig>();
    let keys = schema["definitions"]["Serve"]["properties"].as_object();
    for key in keys.expect("keys").keys() {
        let effects = Effects::of(&format!(r#"{{ "serve": {{ "{key}": 1 }} }}"#));
        let is_shown = !effects.lines().is_empty();
        assert_eq!(is_shown, SHOWN.contains(&key.as_str()), "{key}");
    }
}

/// Members of `serve`, and of each problem in them the line and parts of its message. `…` stands
/// between two parts.
type Mistakes = (&'static str, &'static [&'static str]);

#[rustfmt::skip]
#[test]
fn mistakes_in_serve_are_reported() {
    let rows: &[Mistakes] = &[
        (r#""mode": "Native", "context": { "window": 0, "share": 2, "shares": 1 }, "toolsTtl": 5, "wait": "soon", "modec": []"#, &[
            "2 \"mode\" in \"serve\" must be \"code\" or \"discovery\" or \"native\", and this is \"Native\"",
            "2 \"window\" in \"context\"… must be a whole number above zero",
            "2 \"share\" in \"context\"… a share is a number above 0 and at most 1, such as 0.02",
            "2 unknown key \"shares\" in \"context\"…; did you mean \"share\"?",
            "2 \"toolsTtl\" in \"serve\" must be a string such as \"",
            "2 \"wait\" in \"serve\": \"soon\" is not a duration; write",
            "2 unknown key \"modec\" in \"serve\"; did you mean \"mode\"?",
        ]),
        (r#""http": { "address": "example.com:80", "rate": { "perSecond": 0 }, "port": 80 }"#, &[
            "2 \"address\" in \"http\" in \"serve\": \"example.com:80\" is not an address to listen on; write an IP address and a port",
            "2 \"perSecond\" in \"rate\" in \"http\" in \"serve\" must be a whole number above zero",
            "2 key \"port\" in \"http\" in \"serve\" means nothing here; write \"address\"",
        ]),
        (r#""http": { "allowedHosts": ["https://a.example"] }"#, &["2 \"allowedHosts\" in \"http\" in \"serve\": \"https://a.example\" is not a host; write a name"]),
        (r#""http": { "allowedHosts": ["a/b"] }"#, &["2 \"a/b\" is not a host; write a name"]),
        (r#""http": { "allowedHosts": ["*"] }"#, &["2 \"*\" is not a host; write a name"]),
        (r#""http": { "allowedHosts": ["a@b"] }"#, &["2 \"a@b\" is not a host; write a name"]),
        (r#""http": { "allowedOrigins": ["a.example"] }"#, &["2 \"allowedOrigins\" in \"http\" in \"serve\": \"a.example\" is not an origin; write scheme and host"]),
        (r#""http": { "allowedOrigins": ["https://a.example/path"] }"#, &["2 \"https://a.example/path\" is not an origin; write scheme and host"]),
        (r#""http": { "allowedOrigins": ["null"] }"#, &["2 \"null\" is not an origin; write scheme and host"]),
        (r#""http": { "bearer": { "": "x", "a b": "y", "ci": "a-token-of-15-c" } }"#, &[
            "2 \"bearer\" in \"http\" in \"serve\": \"\" is not a name for a user; use up to 64 letters, digits and . _ - @",
            "2 \"bearer\" in \"http\" in \"serve\": \"a b\" is not a name for a user; use up to 64",
            "2 \"ci\" in \"bearer\" in \"http\" in \"serve\"…fewer than 16 characters and could be guessed; use one such as",
        ]),
        (r#""http": { "oauth": { "issuer": "http://login.example.com" } }"#, &["2 \"issuer\" in \"oauth\" in \"http\" in \"serve\" must be an https URL without query or fragment (http on loopback only)"]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "resource": "https://a.b/mcp?x=1" } }"#, &["2 \"resource\" in \"oauth\" in \"http\" in \"serve\" must be an https URL without query"]),
        (r#""http": { "oauth": {} }"#, &["2 \"oauth\" in \"http\" in \"serve\" has no \"issuer\"; "]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "algorithms": [] } }"#, &["2 \"algorithms\" out"]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "algorithms": ["HS256"] } }"#, &["2 \"algorithms\" in \"oauth\" in \"http\" in \"serve\": \"HS256\" is not accepted"]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "algorithms": ["none"] } }"#, &["2 \"none\" is not accepted"]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "algorithms": ["ES265"] } }"#, &["2 \"ES265\" is not accepted; write one of RS256"]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "algorithms": ["x"] } }"#, &["2 \"x\" is not accepted; write one of RS256"]),
        (r#""http": { "oauth": { "issuer": "https://a.b", "scopes": ["a\"b"] } }"#, &["2 is not a scope; it must be one word"]),
        ("\"users\": {\n\"roles\": { \"a\": { \"servers\": [\"cmr\"] }, \"b\": 1 },\n\"default\": [\"c\"],\n\"named\": { \"alice\": \"all\", \"alcie\": [], \"default\": [] } }, \"http\": { \"bearer\": { \"alice\": { \"command\": [\"op\"] } } }", &[
            "3 \"servers\" in role \"a\" has the server \"cmr\", which the file does not have; add it, or write \"*\" for all",
            "3 \"b\"… must be an object…and this is a number",
            "4 \"default\" in \"users\" in \"serve\" has the role \"c\", which \"roles\" does not have; add it there",
            "5 \"alice\" in \"named\" in \"users\" in \"serve\" must be an array…and this is a string",
            "5 \"alcie\" in \"named\" in \"users\" in \"serve\" is the name of no token of \"bearer\"; did you mean \"alice\"?",
        ]),
        (r#""operators": { "a b": { "token": "${LONG_TOKEN}" }, "bo": { "token": "a-token-of-15-c" }, "li": {} }"#, &[
            "2 \"a b\" in \"operators\" in \"serve\" is not a name for an operator; use up to 64 letters",
            "2 \"token\" in \"bo\"…fewer than 16 characters and could be guessed",
            "2 \"li\" in \"operators\" in \"serve\" has no \"token\"",
        ]),
        (r#""operators": { "li": { "token": "${LONG_TOKEN}", "approve": ["bob", "eve"] } }, "http": { "bearer": { "bob": "bob-0123456789abcdef" } }"#, &[
            "2 \"approve\"… has the user \"eve\", which is the name of no token of \"bearer\"; add it there",
        ]),
        (r#""users": { "roles": { "a": { "permissions": { "allowUnmatched": true } } } }"#, &["2 \"allowUnmatched\", which stands in the file's \"permissions\""]),
        (r#""users": { "roles": { "a": { "permissions": { "allow": ["["] } } } }"#, &["2 pattern \"[\" can never match"]),
    ];
    let mut wrong = String::new();
    for (members, expected) in rows {
        let text = format!("{{ \"mcpServers\": {{ \"crm\": {{ \"command\": \"x\" }} }},\n\"serve\": {{ {members} }} }}");
        let error = load("callgate.json", &text).expect_err(members);
        let problems: Vec<&Problem> = error.problems().collect();
        let fits = |(problem, expected): (&&Problem, &&str)| {
            let (line, parts) = expected.split_once(' ').expect("a line and a message");
            problem.place.is_some_and(|(at, _)| at.to_string() == line)
                && parts.split('…').all(|part| problem.message.contains(part))
        };
        let all = problems.iter().zip(*expected).all(fits);
        if problems.len() != expected.len() || !all {
            wrong += &format!("{members}\n    {error}\n");
        }
        assert!(!error.to_string().contains(SECRET), "a secret is shown: {error}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn mistakes_of_all_sections_are_reported_at_once() {
    let text = r#"{ "limits": { "timeout": 1 }, "serve": { "wait": 1, "http": { "oauth": {} } } }"#;
    for file in ["callgate.json", ".mcp.json"] {
        let error = load(file, text).expect_err("mistakes");
        assert_eq!(error.problems().count(), 3, "{error}");
    }
}

const TEXT: &str = r#"{
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
}"#;

#[test]
fn user_config_has_only_role_servers_and_rules() {
    let Loaded {
        config: whole,
        serve,
        ..
    } = load("callgate.json", TEXT).expect("a configuration");
    let of_roles = |roles: &[&str]| {
        let config = serve
            .users
            .config_of(Some("token alice"), roles.iter().copied(), &whole)?;
        assert_eq!(user_of_ledger(&config), Some("token alice"));
        let servers: Vec<_> = config.servers.iter().map(|it| it.name.as_str()).collect();
        let rules: Vec<_> = config
            .permissions
            .iter()
            .map(|rule| rule.to_json())
            .collect();
        let purge = config.tools.visibility(tool("wiki_purge"));
        let (disabled, withheld) = (config.disabled, config.withheld);
        Some(format!(
            "{servers:?} {disabled:?} {withheld:?} {rules:?} {purge:?}"
        ))
    };
    for (roles, expected) in [
        (
            &["analyst"][..],
            Some(
                r#"["crm"] ["old"] ["wiki", "payroll"] [String("*_delete"), String("crm_*")] Native"#,
            ),
        ),
        (
            &["analyst", "writer"],
            Some(
                r#"["crm", "wiki"] ["old"] ["payroll"] [String("*_delete"), String("crm_*"), String("wiki_*")] Hidden"#,
            ),
        ),
        (&["unknown", "nothing"], None),
        (&[], None),
    ] {
        assert_eq!(of_roles(roles).as_deref(), expected, "{roles:?}");
    }
}

#[test]
fn user_config_logs_in_as_the_user() {
    let text = r#"{ "mcpServers": { "wiki": { "url": "https://wiki.example/mcp" } } }"#;
    let Loaded { config, serve, .. } = load("callgate.json", text).expect("a configuration");
    for (user, flags) in [
        (token_user("a@b"), ["--user", "a@b"]),
        (
            subject_user("https://login.example/", "auth0|7 8"),
            ["--subject", "auth0|7 8"],
        ),
    ] {
        let own = serve.users.config_of(Some(&user), [], &config);
        let mut own = own.expect("the server");
        let login = own.logins_mut().next().expect("a login");
        assert_eq!(login.login_flags, flags);
        assert_eq!(login.user, Some(user));
    }
}

fn user_of_ledger(config: &Config) -> Option<&str> {
    config.ledger.as_ref()?.1.user.as_deref()
}

//! Every key of the library, and its effect on the loaded [`Config`].

use callgate_policy::flow::{FlowEnd, FlowRule};
use callgate_policy::{Pattern, Rules, Verdict};
use callgate_sandbox::JailOptions;

use super::*;

/// Members of a file's object, and what the file loads.
type Row = (&'static str, fn(&Config) -> String, &'static str);

/// A row that shows one value of the loaded configuration.
macro_rules! row {
    ($text:literal, $config:ident => $value:expr, $expected:literal) => {
        ($text, |$config| format!("{:?}", $value), $expected)
    };
}

#[track_caller]
fn check(rows: &[Row], wrap: impl Fn(&str) -> String) {
    let mut wrong = String::new();
    for (members, effect, expected) in rows {
        match read("callgate.json", &wrap(members)).map(|config| effect(&config)) {
            Ok(effect) if effect == *expected => {}
            Ok(effect) => wrong += &format!("{members}\n    gives {effect}\n"),
            Err(error) => wrong += &format!("{members}\n    {error}\n"),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[rustfmt::skip]
#[test]
fn keys_of_a_server() {
    let rows: &[Row] = &[
        row!(r#""command": "${PROGRAM}""#, c => stdio(c).command, r#""node""#),
        row!(r#""command": "./bin/${PROGRAM}""#, c => stdio(c).command, r#""/project/./bin/node""#),
        row!(r#""command": "/bin/x""#, c => stdio(c).command, r#""/bin/x""#),
        row!(r#""command": "x", "type": "stdio""#, c => stdio(c).command, r#""x""#),
        row!(r#""command": "x", "args": ["${workspaceFolder}/x", "$PROGRAM", "${NO:-a}${EMPTY:-b}${EMPTY}"]"#,
            c => stdio(c).args, r#"["/project/x", "$PROGRAM", "ab"]"#),
        row!(r#""command": "x", "env": { "A": "${REFERENCE}", "B": "${env:HOST}" }"#,
            c => (source(&stdio(c).env["A"]), source(&stdio(c).env["B"])), r#"("${TOKEN}", "example.com")"#),
        row!(r#""command": "x", "cwd": "${workspaceFolder}/x""#, c => stdio(c).cwd, r#"Some("/project/x")"#),
        row!(r#""command": "x", "cwd": "sub""#, c => stdio(c).cwd, r#"Some("/project/sub")"#),
        row!(r#""url": "http://${HOST}:${PORT:-80}/mcp""#, c => http(c).url, r#""http://example.com:80/mcp""#),
        row!(r#""url": "http://a.b", "type": "http""#, c => http(c).url, r#""http://a.b""#),
        row!(r#""url": "http://a.b", "type": "streamable-http""#, c => http(c).url, r#""http://a.b""#),
        row!(r#""url": "http://a.b", "headers": { "X-Key": "a ${TOKEN}" }"#,
            c => source(&http(c).headers["X-Key"]), r#""a hunter2""#),
        row!(r#""command": "x""#, c => server(c).trusted, "false"),
        row!(r#""command": "x", "trusted": true"#, c => server(c).trusted, "true"),
        row!(r#""command": "x", "protocol": "auto""#, c => server(c).era.to_string(), r#""auto""#),
        row!(r#""command": "x", "protocol": "2025-11-25""#, c => server(c).era.to_string(), r#""2025-11-25""#),
        row!(r#""command": "x""#, c => server(c).start_timeout, "30s"),
        row!(r#""command": "x", "startTimeout": "1m""#, c => server(c).start_timeout, "60s"),
        row!(r#""command": "x""#, c => server(c).call_timeout, "60s"),
        row!(r#""command": "x", "callTimeout": "90s""#, c => server(c).call_timeout, "90s"),
        row!(r#""command": "x""#, c => server(c).max_call_time, "600s"),
        row!(r#""command": "x", "maxCallTime": "5m""#, c => server(c).max_call_time, "300s"),
        row!(r#""command": "x", "description": " Commits. ""#, c => server(c).description, r#"Some("Commits.")"#),
        row!(r#""command": "x""#, c => server(c).connect, "Always"),
        row!(r#""command": "x", "connect": "always""#, c => server(c).connect, "Always"),
        row!(r#""command": "x", "connect": "lazy""#, c => (server(c).connect, server(c).idle), "(Lazy, Some(300s))"),
        row!(r#""command": "x", "connect": "manual", "idle": "90s""#, c => (server(c).connect, server(c).idle), "(Manual, Some(90s))"),
        row!(r#""command": "x", "idle": "never", "connect": "lazy""#, c => server(c).idle, "None"),
        row!(r#""command": "x", "connect": "lazy", "idle": "0""#, c => server(c).idle, "None"),
        row!(r#""command": "x", "disabled": false"#, c => (c.servers.len(), &c.disabled), "(1, [])"),
        row!(r#""command": "${NOT_SET}", "disabled": true"#, c => (c.servers.len(), &c.disabled), r#"(0, ["s"])"#),
        // Secrets: what the environment put into the values that a server gets.
        row!(r#""command": "${PROGRAM}", "cwd": "${HOST}", "args": ["--key=${TOKEN}", "${NO:-default}"]"#,
            c => stdio(c).secrets, r#"{"TOKEN": "hunter2"}"#),
        row!(r#""command": "x", "args": ["${ROOT}"], "env": { "A": "a ${env:HOST}" }"#,
            c => stdio(c).secrets, r#"{"HOST": "example.com"}"#),
        row!(r#""url": "http://${HOST}/${TOKEN}/mcp?p=${PROGRAM}", "headers": { "X-Key": "a ${REFERENCE}" }"#,
            c => http(c).secrets, r#"{"PROGRAM": "node", "REFERENCE": "${TOKEN}", "TOKEN": "hunter2"}"#),
        // Values that are looked up when the server starts.
        row!(r#""command": "x", "env": { "A": { "command": ["op", "read", "${PROGRAM}"] } }"#,
            c => source(&stdio(c).env["A"]), r#""[\"op\", \"read\", \"node\"] in Some(\"/project\") for 30s""#),
        row!(r#""command": "x", "env": { "A": { "command": ["./token.sh"], "timeout": "5s", "prefix": "${HOST} " } }"#,
            c => source(&stdio(c).env["A"]), r#""example.com [\"/project/./token.sh\"] in Some(\"/project\") for 5s""#),
        row!(r#""url": "http://a.b", "headers": { "A": { "keyring": { "service": "bank", "account": "${PROGRAM}" } } }"#,
            c => source(&http(c).headers["A"]), r#""bank/node""#),
        // Logins.
        row!(r#""url": "http://a.b""#, c => http(c).oauth.is_some(), "true"),
        row!(r#""url": "http://a.b", "oauth": true"#, c => http(c).oauth.is_some(), "true"),
        row!(r#""url": "http://a.b", "oauth": false"#, c => http(c).oauth.is_some(), "false"),
        row!(r#""url": "http://a.b", "oauth": { "clientId": "${PROGRAM}" }"#, c => login(c).client_id, r#"Some("node")"#),
        row!(r#""url": "http://a.b", "oauth": { "issuer": "https://${HOST}" }"#, c => login(c).issuer, r#"Some("https://example.com")"#),
        row!(r#""url": "http://a.b", "oauth": { "clientId": "c", "issuer": "https://i", "clientSecret": "${TOKEN}" }"#,
            c => login(c).client_secret.as_ref().map(source), r#"Some("hunter2")"#),
        row!(r#""url": "http://a.b", "oauth": { "clientMetadataUrl": "https://${HOST}/c.json" }"#,
            c => login(c).client_metadata_url, r#"Some("https://example.com/c.json")"#),
        row!(r#""url": "http://a.b", "oauth": { "scopes": ["a", "b"] }"#, c => login(c).scopes, r#"["a", "b"]"#),
        row!(r#""url": "http://a.b", "oauth": { "grant": "authorization_code" }"#, c => login(c).grant, "AuthorizationCode"),
        row!(r#""url": "http://a.b", "oauth": { "grant": "client_credentials", "clientId": "c", "issuer": "https://i", "clientSecret": "s" }"#,
            c => login(c).grant, "ClientCredentials"),
        row!(r#""url": "http://a.b", "oauth": { "redirectPort": 8123 }"#, c => login(c).redirect_port, "Some(8123)"),
        row!(r#""url": "http://a.b", "oauth": { "tokens": "auto" }"#, c => login(c).place, "KeyringOrFile"),
        row!(r#""url": "http://a.b", "oauth": { "tokens": "keyring" }"#, c => login(c).place, "Keyring"),
        row!(r#""url": "http://a.b", "oauth": { "tokens": "file" }"#, c => login(c).place, "File"),
    ];
    check(rows, |members| format!(r#"{{ "mcpServers": {{ "s": {{ {members} }} }} }}"#));
    // As VS Code writes it.
    check(&rows[..1], |members| format!(r#"{{ "servers": {{ "s": {{ {members} }} }} }}"#));
}

#[rustfmt::skip]
#[test]
fn keys_of_the_file() {
    let rows: &[Row] = &[
        row!(r#""$schema": "https://example.com/schema.json", "mcpServers": {},"#, c => c.servers.len(), "0"),
        row!(r#""mcpServers": { "z": { "command": "x" }, "a": { "command": "y" } }"#,
            c => c.servers.iter().map(|server| &server.name).collect::<Vec<_>>(), r#"["z", "a"]"#),
        row!(r#""limits": { "timeout": "2s" }"#, c => c.limits.script_time, "2s"),
        row!(r#""limits": { "waitTimeout": "10m" }"#, c => c.limits.wait_time, "600s"),
        row!(r#""limits": { "runTimeout": "10m" }"#, c => c.limits.run_time, "600s"),
        row!(r#""limits": { "memory": "128MiB" }"#, c => (c.limits.heap_bytes, c.limits.buffer_bytes), "(134217728, 134217728)"),
        row!(r#""limits": { "output": "16KiB" }"#, c => c.limits.output_bytes, "16384"),
        row!(r#""limits": { "outputLines": 500 }"#, c => c.limits.output_lines, "500"),
        row!(r#""limits": { "result": "10MB" }"#, c => c.limits.reply_bytes, "10000000"),
        row!(r#""limits": { "callsInFlight": 100 }"#, c => c.limits.calls_in_flight, "100"),
        row!(r#""limits": {}"#, c => c.limits.reply_bytes, "67108864"),
        row!(r#""mcpServers": { "s": { "command": "x" } }, "limits": { "result": "10MB" }"#, c => server(c).max_message_bytes, "10000000"),
        row!(r#""sandbox": {}"#, c => c.jail == JailOptions::default(), "true"),
        row!(r#""sandbox": { "level": "kernel", "require": ["namespaces"] }"#, c => (c.jail.layers.len(), &c.jail.required), "(3, [Namespaces])"),
        row!(r#""sandbox": { "require": [] }"#, c => (c.jail.layers.len(), &c.jail.required), "(3, [])"),
        row!(r#""sandbox": { "level": "process", "require": [] }"#, c => c.jail == JailOptions::process_only(), "true"),
        row!(r#""sandbox": { "level": "process" }"#, c => c.jail == JailOptions::process_only(), "true"),
        row!(r#""check": { "mode": "require" }"#, c => c.check.mode, "Some(Require)"),
        row!(r#""check": { "typescript": "tools/${PROGRAM}" }"#, c => c.check.typescript, r#"Some("/project/tools/node")"#),
        row!(r#""ledger": { "path": "logs/${PROGRAM}.jsonl" }"#, c => (&ledger(c).0, ledger(c).1.bodies), r#"("/project/logs/node.jsonl", false)"#),
        row!(r#""ledger": { "path": "/var/log/calls.jsonl" }"#, c => ledger(c).0, r#""/var/log/calls.jsonl""#),
        row!(r#""ledger": { "path": "x", "bodies": true }"#, c => ledger(c).1.bodies, "true"),
        row!(r#""ledger": { "path": "x", "sync": true }"#, c => ledger(c).1.sync, "true"),
        row!(r#""ledger": { "path": "x", "maxSize": "10MiB" }"#, c => ledger(c).1.max_bytes, "10485760"),
        row!(r#""ledger": { "path": "x", "keep": 3 }"#, c => ledger(c).1.keep, "3"),
        row!(r#""store": true"#, c => c.store == Some(StoreConfig::default()), "true"),
        row!(r#""store": false"#, c => c.store, "None"),
        row!(r#""store": { "path": "state/${PROGRAM}" }"#, c => c.store.as_ref().map(|it| (&it.path, it.days)), r#"Some((Some("/project/state/node"), 14))"#),
        row!(r#""store": { "days": 90, "bytes": "64MiB", "bodies": "errors" }"#, c => c.store.as_ref().map(|it| (it.days, it.bytes, it.bodies)), "Some((90, 67108864, Errors))"),
        row!(r#""cache": { "path": "${PROGRAM}/c" }"#, c => (&c.cache.path, c.cache.enabled), r#"(Some("/project/node/c"), true)"#),
        row!(r#""cache": { "ttl": "2h" }"#, c => c.cache.ttl, "Some(7200s)"),
        row!(r#""cache": { "enabled": false }"#, c => c.cache.enabled, "false"),
        row!(r#""roots": [".", "a b/../ü", "/srv/${HOST}", "..", "${workspaceFolder}/x"]"#,
            c => c.roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>(),
            r#"["file:///project", "file:///project/%C3%BC", "file:///srv/example.com", "file:///", "file:///project/x"]"#),
        row!(r#""roots": [".", "a b/../ü", ".."]"#, c => c.roots.iter().map(|root| &root.name).collect::<Vec<_>>(), r#"[Some("project"), Some("ü"), None]"#),
        row!(r#""models": { "embeddings": { "url": "http://127.0.0.1:8080/v1?key=${TOKEN}", "model": "${PROGRAM}" } }"#,
            c => c.models.embeddings.as_ref().map(|it| (&it.url.0, &it.model, &it.key, it.dimensions, it.timeout)),
            r#"Some(("http://127.0.0.1:8080/v1?key=hunter2", "node", None, None, 30s))"#),
        row!(r#""models": { "embeddings": { "url": "https://a.b", "model": "m", "key": "${TOKEN}", "dimensions": 384, "timeout": "5s" } }"#,
            c => c.models.embeddings.as_ref().map(|it| (it.key.as_ref().map(source), it.dimensions, it.timeout)), r#"Some((Some("hunter2"), Some(384), 5s))"#),
        row!(r#""models": { "small": { "url": "https://${HOST}/v1", "model": "m" } }"#,
            c => c.models.small.as_ref().map(|it| (it.api, &it.url.0, &it.model, &it.key, it.timeout, it.max_tokens)),
            r#"Some((OpenAi, "https://example.com/v1", "m", None, 60s, 4096))"#),
        row!(r#""models": { "small": { "api": "anthropic", "url": "https://a.b", "model": "m", "key": { "keyring": { "service": "s", "account": "a" } }, "timeout": "5s", "maxTokens": 100 } }"#,
            c => c.models.small.as_ref().map(|it| (it.api, it.key.as_ref().map(source), it.timeout, it.max_tokens)), r#"Some((Anthropic, Some("s/a"), 5s, 100))"#),
        row!(r#""models": { "small": { "api": "openai", "url": "https://a.b", "model": "m" } }"#, c => c.models.small.as_ref().map(|it| it.api), "Some(OpenAi)"),
        row!(r#""asking": { "webhook": { "url": "https://${HOST}/ask?key=${TOKEN}", "secret": "${TOKEN}" } }"#,
            c => c.asking.webhook.as_ref().map(|it| (it.url.0.as_str(), source(&it.secret), it.arguments, it.poll)),
            r#"Some(("https://example.com/ask?key=hunter2", "hunter2", true, 10s))"#),
        row!(r#""asking": { "ways": ["webhook"], "webhook": { "url": "http://[::1]:8181", "secret": { "command": ["./secret"] }, "arguments": false, "poll": "2m" } }"#,
            c => c.asking.webhook.as_ref().map(|it| (it.url.0.as_str(), source(&it.secret), it.arguments, it.poll)),
            r#"Some(("http://[::1]:8181/", "[\"/project/./secret\"] in Some(\"/project\") for 30s", false, 120s))"#),
        row!(r#""permissions": { "deny": ["x"] }"#, c => c.allow_unmatched, "false"),
        row!(r#""permissions": { "allowUnmatched": true }"#, c => c.allow_unmatched, "true"),
        row!(r#""search": { "by": "auto" }"#, c => c.search, "Auto"),
        row!(r#""search": { "by": "words" }"#, c => c.search, "Words"),
        row!(r#""search": { "by": "model" }"#, c => (c.search, c.warnings.len()), "(Model, 0)"),
        row!(r#""search": { "by": "hybrid" }, "models": { "embeddings": { "url": "https://a.b", "model": "m" } }"#, c => (c.search, c.warnings.len()), "(Hybrid, 0)"),
        row!(r#""extract": {}"#, c => c.extract, "ExtractLimits { calls: 20, same_schema: 5, input_bytes: 1048576, output_bytes: 1048576 }"),
        row!(r#""extract": { "calls": 3, "sameSchema": 2, "input": "1KiB", "output": "2KiB" }"#,
            c => c.extract, "ExtractLimits { calls: 3, same_schema: 2, input_bytes: 1024, output_bytes: 2048 }"),
        row!(r#""tools": { "*": { "visibility": "on-demand" }, "git_log": { "keywords": ["history", "blame"], "alwaysOn": true } }"#,
            c => (c.tools.visibility(tool("x")), c.tools.keywords(tool("git_log")), c.tools.always_on(tool("git_log")), c.tools.always_on(tool("x"))), r#"(OnDemand, ["blame", "history"], true, false)"#),
    ];
    check(rows, |members| format!("// All of it.\n{{ {members} }}"));
}

/// The effect of each rule, and its JSON.
fn rules(rules: &Rules) -> Vec<String> {
    let rules = rules.iter();
    rules
        .map(|rule| format!("{:?} {}", rule.effect, rule.to_json()))
        .collect()
}

/// The folder is put into the beginning of a prefix or glob, and nothing else is replaced.
#[test]
fn rules_are_loaded_as_they_are_written() {
    let full = r#"{"tool":"fs_write","server":"fs*","trusted":true,"arguments":[{"at":"/path","prefix":"/project/out/","glob":"/project/**.md"},{"at":"/mode","in":["w",1,null]},{"at":"/size","exists":true,"min":0,"max":1500.5},{"at":"/text","equals":{"path":"${HOME}","n":[1.0,18446744073709551615]}},{"at":"","regex":"x"}],"annotations":{"readOnly":false,"destructive":false,"idempotent":true,"openWorld":false},"maxCalls":10,"expires":"2026-12-31T17:00:00Z","definition":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}"#;
    let written = full.replace("\"/project/", "\"${workspaceFolder}/");
    let text = format!(
        r#"{{ "permissions": {{ "allow": ["time_*", {written}], "ask": ["*_write*"],
            "deny": [{{ "tool": "*", "annotations": {{ "destructive": true }} }}] }} }}"#
    );
    let config = read("callgate.json", &text).expect("a configuration");
    let expected = [
        "Allow \"time_*\"",
        &format!("Allow {full}"),
        "Ask \"*_write*\"",
        "Deny {\"tool\":\"*\",\"annotations\":{\"destructive\":true}}",
    ];
    assert_eq!(rules(&config.permissions), expected);
}

#[test]
fn labels_and_rules_of_flows() {
    let text = r#"{
        "mcpServers": { "crm-eu": { "disabled": true, "labels": ["private", "eu"] } },
        "toolLabels": { "fs_read_*": ["private"] },
        "flows": [
            { "from": "crm-eu", "to": "label:outside", "action": "deny" },
            { "from": "label:private", "to": "*", "minBytes": 100, "action": "ask" },
            { "from": "*", "to": "*", "action": "allow" },
        ],
    }"#;
    let mut expected = FlowRules::default();
    for (from, to, min_bytes, action) in [
        ("crm-eu", "label:outside", None, Verdict::Deny),
        ("label:private", "*", Some(100), Verdict::Ask),
        ("*", "*", None, Verdict::Allow),
    ] {
        expected.push(FlowRule {
            from: FlowEnd::parse(from).expect("an end"),
            to: FlowEnd::parse(to).expect("an end"),
            min_bytes,
            action,
        });
    }
    expected.label_server("crm-eu", "private");
    expected.label_server("crm-eu", "eu");
    expected.label_tools(Pattern::new("fs_read_*").expect("a pattern"), "private");
    let config = read("callgate.json", text).expect("a configuration");
    assert_eq!(config.flows, expected);
}

/// `Debug` output shows where secrets come from, and none of them.
#[test]
fn debug_output_holds_no_secret() {
    let text = r#"{
        "mcpServers": {
            "a": { "command": "x", "args": ["--key=${TOKEN}"], "env": { "A": "${TOKEN}", "B": { "command": ["x", "${TOKEN}"] } } },
            "b": { "url": "https://a.b/?key=${TOKEN}", "headers": { "A": "${TOKEN}" },
                "oauth": { "clientId": "c", "issuer": "https://i", "clientSecret": "${TOKEN}" } },
        },
        "models": { "small": { "url": "https://a.b/?key=${TOKEN}", "model": "m", "key": "${TOKEN}" } },
        "asking": { "webhook": { "url": "https://a.b/${TOKEN}", "secret": "${TOKEN}" } },
    }"#;
    let config = read("callgate.json", text).expect("a configuration");
    let shown = format!("{config:#?}");
    assert!(!shown.contains(SECRET), "{shown}");
}

#[rustfmt::skip]
#[test]
fn durations_and_sizes() {
    let duration = |text| parse_duration(text).map(|it| it.as_millis()).map_err(|error| error.to_string());
    for (text, millis) in [("500ms", 500), ("2s", 2_000), (" 1.5 m ", 90_000), ("1H", 3_600_000)] {
        assert_eq!(duration(text), Ok(millis), "{text}");
    }
    for text in ["", "2", "s", "-2s", "1.2.3s", ".5s", "1e9s", "16KiB"] {
        let expected = format!("{text:?} is not a duration; write a number and ms, s, m or h, such as \"500ms\" or \"2s\"");
        assert_eq!(duration(text), Err(expected));
    }
    assert_eq!(duration("0s"), Err("\"0s\" is zero; the duration must be greater than zero".to_owned()));
    for text in ["99999999999999999999h", "999999999999h"] {
        assert_eq!(duration(text), Err(format!("{text:?} is too large; the maximum duration is a hundred years")));
    }
    let size = |text| parse_bytes(text).map_err(|error| error.to_string());
    for (text, bytes) in [("512B", 512), ("16KiB", 16_384), ("1.5gb", 1_500_000_000)] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "2", "2s", "-2B", "1.5"] {
        let expected = format!("{text:?} is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as \"16KiB\"");
        assert_eq!(size(text), Err(expected));
    }
    assert_eq!(size("0.4B"), Err("\"0.4B\" is zero; the size must be greater than zero".to_owned()));
    assert_eq!(size("9007199254740992B"), Err("\"9007199254740992B\" is too large; the maximum size is below 2^53 bytes".to_owned()));
    let memory = parse_memory("8MiB").map_err(|error| error.to_string());
    assert_eq!(memory, Err("\"8MiB\" is too little memory; a script needs \"16MiB\" at least".to_owned()));
}

/// The key, the form of another program in its value, and the form to write.
#[test]
fn other_forms_of_variables_are_warned_about() {
    for (entry, key, theirs, ours) in [
        (r#""command": "~/bin/mcp""#, "command", "~/", "${userHome}/"),
        (
            r#""command": "x", "args": ["--root=~/notes"]"#,
            "args",
            "~/",
            "${userHome}/",
        ),
        (
            r#""command": "x", "args": ["--key", "$MAIL_KEY"]"#,
            "args",
            "$NAME",
            "${NAME}",
        ),
        (
            r#""command": "x", "env": { "DB": "pg://%DB_HOST%/a" }"#,
            "DB",
            "%NAME%",
            "${NAME}",
        ),
        (
            r#""url": "https://a.b", "headers": { "X-Key": "Token {{ mailKey }}" }"#,
            "X-Key",
            "{{ NAME }}",
            "${NAME}",
        ),
        (
            r#""url": "https://a.b/{env:TENANT}/mcp""#,
            "url",
            "{env:NAME}",
            "${NAME}",
        ),
    ] {
        let text = format!(r#"{{ "mcpServers": {{ "s": {{ {entry} }} }} }}"#);
        let config = read("callgate.json", &text).expect("it is valid");
        let warnings: Vec<_> = config.warnings.iter().map(|it| &it.message).collect();
        let [warning] = warnings.as_slice() else {
            panic!("{text}: {warnings:?}");
        };
        let says = format!("has the form \"{theirs}\", which is not replaced; write \"{ours}\"");
        assert!(
            warning.starts_with(&format!("\"{key}\" in ")) && warning.ends_with(&says),
            "{warning}"
        );
    }
}

#[test]
fn secrets_and_shell_scripts_are_no_forms_of_variables() {
    for entry in [
        r#""command": "x", "env": { "A": "pa$SWORD", "B": "$2y$10$ABC", "C": "5%OFF%X" }"#,
        r#""command": "sh", "args": ["-c", "exec server --key $MAIL_KEY"]"#,
        r#""url": "https://a.b/%E2%82%AC", "headers": { "A": "Bearer ${TOKEN}" }"#,
        r#""url": "https://a.b", "headers": { "A": "Bearer ${env:TOKEN}" }"#,
    ] {
        let text = format!(r#"{{ "mcpServers": {{ "s": {{ {entry} }} }} }}"#);
        let config = read("callgate.json", &text).expect("it is valid");
        assert_eq!(config.warnings, [], "{text}");
    }
}

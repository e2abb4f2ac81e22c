//! Mistakes in a file: each names the file, the line, the key, and what to do.

use super::*;

/// A text with mistakes, and of each problem in it the line and parts of its message.
/// `…` stands between two parts.
type Row = (&'static str, &'static [&'static str]);

#[track_caller]
fn check(file: &str, rows: &[Row], wrap: impl Fn(&str) -> String) {
    let mut wrong = String::new();
    for (text, expected) in rows {
        let problems: Vec<Problem> = match read(file, &wrap(text)) {
            Ok(config) => {
                let left_out = config.left_out.into_iter().map(|it| it.problem);
                config.warnings.into_iter().chain(left_out).collect()
            }
            Err(error) => error.problems().cloned().collect(),
        };
        let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
        let fits = |(said, expected): (&String, &&str)| {
            let (line, parts) = expected.split_once(' ').expect("a line and a message");
            said.starts_with(&format!("{file}:{line}:"))
                && parts.split('…').all(|part| said.contains(part))
        };
        let all = said.iter().zip(*expected).all(fits);
        if said.len() != expected.len() || !all {
            wrong += &format!("{text}\n    {}\n", said.join("\n    "));
        }
        assert!(
            !said.concat().contains(SECRET),
            "a secret is shown: {said:?}"
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[rustfmt::skip]
#[test]
fn mistakes_in_the_file_are_reported() {
    check("callgate.json", &[
        ("", &["1 the file must hold one object, such as"]),
        ("// nothing", &["1 the file must hold one object, such as"]),
        ("[]", &["1 the file must hold one object, such as"]),
        ("{\n  \"mcpServers\": {\n", &["2 not valid JSON: Unterminated object"]),
        ("{ 'mcpServers': {} }", &["1 not valid JSON: Single-quoted strings are not allowed"]),
        ("{ \"limits\": {} \"permissions\": {} }", &["1 not valid JSON: Expected comma"]),
        ("\u{feff}{ \"b\": }", &["1 not valid JSON: Unexpected close brace"]),
        (r#"{ "mcpservers": {}, "limit": {}, "zzz": 1 }"#, &[
            "1 unknown key \"mcpservers\" in the file; did you mean \"mcpServers\"?",
            "1 unknown key \"limit\" in the file; did you mean \"limits\"?",
            "1 unknown key \"zzz\" in the file; remove it, or use one of … mcpServers…tools",
        ]),
        (r#"{ "mcpServers": {}, "servers": {} }"#, &["1 both \"mcpServers\" and \"servers\"; put all servers under one of them"]),
        (r#"{ "mcpServers": { "a": {"command": "x"}, "a": {"command": "y"} } }"#, &["1 key \"a\" stands twice in \"mcpServers\"; remove one"]),
        (r#"{ "mcpServers": { "": {"command": "x"} } }"#, &["1 a server's name is empty; give it one"]),
        (r#"{ "mcpServers": [], "permissions": 1, "limits": null, "check": "off", "ledger": "x", "store": "on", "cache": 1, "models": [], "search": "words", "extract": true, "roots": "." }"#, &[
            "1 \"mcpServers\" in the file must be an object, and this is an array",
            "1 \"permissions\" in the file must be an object, and this is a number",
            "1 \"limits\" in the file must be an object, and this is null",
            "1 \"check\" in the file must be an object, and this is a string",
            "1 \"ledger\" in the file must be an object, and this is a string",
            "1 \"store\" in the file must be true, false or an object, and this is a string",
            "1 \"cache\" in the file must be an object, and this is a number",
            "1 \"models\" in the file must be an object, and this is an array",
            "1 \"search\" in the file must be an object, and this is a string",
            "1 \"extract\" in the file must be an object, and this is a boolean",
            "1 \"roots\" in the file must be an array…and this is a string",
        ]),
        ("{ \"limits\": {\n\"timeout\": \"2 seconds\", \"memory\": \"128\", \"output\": 16, \"outputLines\": -1,\n\"result\": \"0B\", \"callsInFlight\": 1.5, \"runTimeout\": 10, \"memry\": \"1MB\" } }", &[
            "2 \"timeout\" in \"limits\": \"2 seconds\" is not a duration; write a number and ms, s, m or h",
            "2 \"memory\" in \"limits\": \"128\" is not a size; write a number and B",
            "2 \"output\" in \"limits\" must be a string such as \"",
            "2 \"outputLines\" in \"limits\" must be a whole number above zero",
            "3 \"result\" in \"limits\": \"0B\" is zero; the size must be greater than zero",
            "3 \"callsInFlight\" in \"limits\" must be a whole number above zero",
            "3 \"runTimeout\" in \"limits\" must be a string such as \"",
            "3 unknown key \"memry\" in \"limits\"; did you mean \"memory\"?",
        ]),
        (r#"{ "limits": { "memory": 128 } }"#, &["1 \"memory\" in \"limits\" must be a string such as \"128MiB\""]),
        (r#"{ "check": { "mode": "always", "typescript": 7, "typescrypt": "x" } }"#, &[
            "1 \"mode\" in \"check\" must be \"off\" or \"warn\" or \"on\" or \"require\", and this is \"always\"",
            "1 \"typescript\" in \"check\" must be a string, and this is a number",
            "1 unknown key \"typescrypt\" in \"check\"; did you mean \"typescript\"?",
        ]),
        (r#"{ "sandbox": { "level": "none" } }"#, &["1 \"level\" in \"sandbox\"…\"kernel\" or \"process\""]),
        (r#"{ "sandbox": { "require": ["selinux"] } }"#, &["1 \"require\" in \"sandbox\"…\"landlock\" or \"seccomp\" or \"namespaces\""]),
        (r#"{ "sandbox": { "require": ["seccomp"], "level": "process" } }"#, &["1 \"sandbox\" in the file has \"level\": \"process\", which uses no kernel layer, so \"require\" must be empty"]),
        (r#"{ "sandbox": { "levels": "process" } }"#, &["1 unknown key \"levels\" in \"sandbox\"; did you mean \"level\"?"]),
        (r#"{ "ledger": { "path": "", "bodies": "yes", "maxSize": 1, "keep": 1001, "file": "x" } }"#, &[
            "1 \"path\" in \"ledger\" is empty; write a path",
            "1 \"bodies\" in \"ledger\" must be true or false, and this is a string",
            "1 \"maxSize\" in \"ledger\" must be a string such as \"",
            "1 \"keep\" in \"ledger\" must be at most 1000",
            "1 unknown key \"file\" in \"ledger\"; remove it, or use one of path, bodies, maxSize, keep, sync",
        ]),
        (r#"{ "envFile": 7 }"#, &["1 \"envFile\" in the file must be a string, and this is a number"]),
        (r#"{ "envFile": "", "envfile": "x" }"#, &[
            "1 \"envFile\" in the file is empty; write a path",
            "1 unknown key \"envfile\" in the file; did you mean \"envFile\"?",
        ]),
        ("{\n\"envFile\": \"no/such.env\" }", &["2 \"envFile\" in the file: /project/no/such.env: cannot be read: "]),
        (r#"{ "envFile": "${NOT_SET}/x.env" }"#, &["1 \"envFile\"…environment variable \"NOT_SET\" is not set; set it, or write \"${NOT_SET:-default}\""]),
        (r#"{ "ledger": {} }"#, &["1 \"ledger\"… has no \"path\"; write it"]),
        (r#"{ "store": { "path": "", "days": 0, "bytes": 5, "bodies": "some", "size": 1 } }"#, &[
            "1 \"path\" in \"store\" is empty; write a path",
            "1 \"days\" in \"store\" must be a whole number above zero",
            "1 \"bytes\" in \"store\" must be a string such as \"",
            "1 \"bodies\" in \"store\" must be \"none\" or \"errors\" or \"all\", and this is \"some\"",
            "1 unknown key \"size\" in \"store\"; remove it, or use one of path, days, bytes, bodies",
        ]),
        (r#"{ "cache": { "path": "", "ttl": "soon", "enabled": 1 } }"#, &[
            "1 \"path\" in \"cache\" is empty; write a path",
            "1 \"ttl\" in \"cache\": \"soon\" is not a duration; write",
            "1 \"enabled\" in \"cache\" must be true or false, and this is a number",
        ]),
        (r#"{ "roots": ["", 1, "${NOT_SET}"] }"#, &[
            "1 \"roots\" in the file is empty; write a path",
            "1 \"roots\"…string…and this is a number",
            "1 \"roots\"…environment variable \"NOT_SET\" is not set; set it, or write \"${NOT_SET:-default}\"",
        ]),
        ("{ \"models\": {\n\"embeddings\": { \"url\": \"http://example.com/v1\", \"model\": 5 },\n\"smal\": {},\n\"small\": { \"api\": \"gemini\", \"url\": \"not a url ${TOKEN}\", \"model\": \"m\", \"timeout\": 5, \"temperature\": 1 } } }", &[
            "2 \"url\" in \"embeddings\"…must be https, or http on loopback",
            "2 \"model\" in \"embeddings\"… must be a string, and this is a number",
            "3 unknown key \"smal\" in \"models\"; did you mean \"small\"?",
            "4 \"api\" in \"small\"…must be \"openai\" or \"anthropic\", and this is \"gemini\"",
            "4 \"url\" in \"small\"…write one such as https://api.example.com/v1",
            "4 \"timeout\" in \"small\"… must be a string such as \"",
            "4 unknown key \"temperature\" in \"small\"…; remove it, or use one of api, url, model, key, timeout, maxTokens",
        ]),
        ("{ \"asking\": { \"ways\": [\"webhook\"],\n\"webhook\": { \"url\": \"http://policy.example/ask\", \"secret\": 7,\n\"pool\": \"1s\", \"arguments\": \"no\", \"poll\": 10 } } }", &[
            "2 \"url\" in \"webhook\" in \"asking\" must be https, or http on loopback",
            "2 \"secret\" in \"webhook\" in \"asking\" must be a string, or an object with \"command\" or \"keyring\"",
            "3 unknown key \"pool\" in \"webhook\" in \"asking\"; did you mean \"poll\"?",
            "3 \"arguments\" in \"webhook\" in \"asking\" must be true or false",
            "3 \"poll\" in \"webhook\" in \"asking\" must be a string such as \"",
        ]),
        (r#"{ "asking": { "webhook": { "url": "policy.example ${TOKEN}", "secret": "s" } } }"#, &["1 \"url\" in \"webhook\"…is not a URL; write one such as https://policy.example.com/callgate"]),
        (r#"{ "asking": { "webhook": { "url": "https://a.b" } } }"#, &["1 \"webhook\"…has no \"secret\"; write it"]),
        (r#"{ "asking": { "webhook": { "url": "http://localhost/", "secret": "whsec_${TOKEN}!" } } }"#, &["1 \"secret\" in \"webhook\" in \"asking\" has no key; write a text that is not empty, with Base64 after \"whsec_\""]),
        (r#"{ "asking": { "webhook": { "url": "https://a.b", "secret": "${EMPTY}" } } }"#, &["1 \"secret\" in \"webhook\" in \"asking\" has no key"]),
        (r#"{ "asking": { "ways": ["client", "webhook"] } }"#, &["1 \"ways\" in \"asking\" names \"webhook\", but \"asking\" has no \"webhook\"; add it with \"url\" and \"secret\""]),
        (r#"{ "models": { "small": { "url": "https://a.b" } } }"#, &["1 \"small\"…has no \"model\"; write it"]),
        (r#"{ "limits": ["2s"], "models": [] }"#, &[
            "1 \"limits\" in the file must be an object, and this is an array",
            "1 \"models\" in the file must be an object, and this is an array",
        ]),
        (r#"{ "search": { "by": "luck" }, "extract": { "calls": 0, "input": "lots", "outputs": 1 } }"#, &[
            "1 \"by\" in \"search\" must be \"auto\" or \"words\" or \"hybrid\" or \"model\", and this is \"luck\"",
            "1 \"calls\" in \"extract\" must be a whole number above zero",
            "1 \"input\" in \"extract\": \"lots\" is not a size; write a number and",
            "1 unknown key \"outputs\" in \"extract\"; did you mean \"output\"?",
        ]),
        (r#"{ "search": { "by": "regex" } }"#, &[
            "1 \"by\" in \"search\" must be \"auto\" or \"words\" or \"hybrid\" or \"model\", and this is \"regex\"",
        ]),
        ("{ \"tools\": {\n\"git-*\": { \"visibility\": \"native\" },\n\"git_*\": { \"visibility\": \"none\", \"keywords\": [\"\"], \"alwaysOn\": \"yes\", \"always\": true },\n\"fs_*\": true } }", &[
            "2 pattern \"git-*\" can never match: generated names have \"_\" in place of \"-\"; did you mean \"git_*\"?",
            "3 \"visibility\" in \"git_*\" in \"tools\" must be \"native\" or \"on-demand\" or \"hidden\", and this is \"none\"",
            "3 keyword…\"git_*\" in \"tools\" must have 1 to 100 bytes of text",
            "3 \"alwaysOn\" in \"git_*\" in \"tools\" must be true or false, and this is a string",
            "3 unknown key \"always\" in \"git_*\" in \"tools\"; did you mean \"alwaysOn\"?",
            "4 \"fs_*\" in \"tools\" must be an object, and this is a boolean",
        ]),
        ("{ \"mcpServers\": { \"crm\": { \"command\": \"crm\", \"labels\": [\"a b\"] } },\n\"toolLabels\": { \"fs-*\": [\"private\"], \"fs_*\": \"private\" },\n\"flows\": [\n\"crm\",\n{ \"from\": \"crm\", \"action\": \"deny\" },\n{ \"from\": \"\", \"to\": \"x\", \"action\": \"deny\" },\n{ \"from\": \"x\", \"to\": \"y\", \"action\": \"block\" },\n{ \"form\": \"crm\", \"to\": \"*\", \"action\": \"deny\" },\n{ \"from\": \"x\", \"to\": \"*\", \"action\": \"deny\", \"minBytes\": -1 } ] }", &[
            "1 \"a b\" is not a label; use letters, digits, \"-\", \"_\" and \".\"",
            "2 pattern \"fs-*\" can never match: generated names have \"_\" in place of \"-\"; did you mean \"fs_*\"?",
            "2 \"fs_*\" in \"toolLabels\" must be an array…and this is a string",
            "4 a rule in \"flows\" must be an object…",
            "5 a rule in \"flows\" has no \"to\"; write",
            "6 \"from\" in a rule in \"flows\"…names nothing; write \"*\" for everything",
            "7 \"action\" in a rule in \"flows\" must be \"allow\" or \"ask\" or \"deny\", and this is \"block\"",
            "8 unknown key \"form\" in a rule in \"flows\"; did you mean \"from\"?",
            "9 \"minBytes\" in a rule in \"flows\" must be a whole number above zero",
        ]),
    ], str::to_owned);
    let deep = read("callgate.json", &"[".repeat(100_000)).expect_err("too deep");
    assert!(deep.to_string().ends_with("not valid JSON: Maximum nesting depth exceeded"), "{deep}");
}

#[rustfmt::skip]
#[test]
fn mistakes_in_a_server_are_reported() {
    check("callgate.json", &[
        ("", &["2 server \"git\" has neither \"command\" nor \"url\"; write \"command\" for a program to start, or \"url\""]),
        (r#""type": "sse", "url": "https://a.b/sse""#, &["2 \"type\" in server \"git\" is \"sse\", a transport that MCP deprecated in its version 2025-03-26; write \"http\""]),
        (r#""type": "ws", "url": "wss://a.b""#, &[
            "2 \"type\" in server \"git\" is the unknown \"ws\"; write \"stdio\" or \"http\"",
            "2 \"url\" in server \"git\" must begin with https",
        ]),
        (r#""type": 1, "command": "x""#, &["2 \"type\" in server \"git\" must be a string, and this is a number"]),
        (r#""type": "http""#, &["2 server \"git\" has no \"url\", which its \"type\" needs; write it"]),
        (r#""type": "http", "command": "x""#, &["2 \"type\" in server \"git\" does not go with \"command\"; remove one of them"]),
        (r#""type": "stdio", "url": "https://a.b""#, &["2 \"type\" in server \"git\" does not go with \"url\"; remove one of them"]),
        (r#""command": "x", "url": "https://a.b""#, &["2 server \"git\" has both \"command\" and \"url\"; keep"]),
        (r#""command": "x", "headers": {}"#, &["2 \"headers\" in server \"git\" does not go with \"command\"; remove it"]),
        (r#""url": "https://a.b", "args": [], "env": {}"#, &["2 \"args\" in server \"git\" does not go with \"url\"; remove it", "2 \"env\" in server \"git\" does not go with \"url\"; remove it"]),
        (r#""command": " ""#, &["2 \"command\" in server \"git\" is empty; write the program to start"]),
        (r#""command": "${EMPTY}""#, &["2 \"command\" in server \"git\" is empty; write the program to start"]),
        (r#""command": ["git"]"#, &["2 \"command\" in server \"git\" must be a string, and this is an array"]),
        (r#""command": "git", "args": "log""#, &["2 \"args\" in server \"git\" must be an array…and this is a string"]),
        (r#""command": "git", "args": ["a", 1]"#, &["2 \"args\" in server \"git\" must be…string…and this is a number"]),
        (r#""command": "a\u0000b""#, &["2 \"command\" in server \"git\" has a NUL character; remove it"]),
        (r#""command": "git", "env": {"A=B": "hunter2", "": "", "P": 8080}"#, &[
            "2 \"A=B\" in \"env\" in server \"git\" is not a name for an environment variable; use letters, digits and _",
            "2 \"\" in \"env\" in server \"git\" is not a name for an environment variable; use letters, digits and _",
            "2 \"P\" in \"env\" in server \"git\" must be a string, or an object with \"command\" or \"keyring\", and this is a number",
        ]),
        (r#""url": "example.com/hunter2""#, &["2 \"url\" in server \"git\" must begin with https:// or http://"]),
        (r#""url": "localhost:3000/hunter2""#, &["2 \"url\" in server \"git\" must begin with https:// or http://"]),
        (r#""url": "ftp://example.com/hunter2""#, &["2 \"url\" in server \"git\" must begin with https:// or http://"]),
        (r#""url": "https://:3000/hunter2""#, &["2 \"url\" in server \"git\" is not a valid URL: empty host"]),
        (r#""url": "https://me:hunter2@example.com""#, &["2 \"url\" in server \"git\" holds a user name or password; write an \"Authorization\" header instead"]),
        (r#""url": "https://a.b", "headers": {"X Key": "hunter2", "X": "${BROKEN}"}"#, &[
            "2 \"X Key\" in \"headers\" in server \"git\" is not a name for an HTTP header; use letters, digits and -",
            "2 \"X\" in \"headers\" in server \"git\" has a control character in its value, such as a line break; remove it",
        ]),
        (r#""command": "git", "trusted": "yes""#, &["2 \"trusted\" in server \"git\" must be true or false, and this is a string"]),
        (r#""command": "git", "disabled": "yes""#, &["2 \"disabled\" in server \"git\" must be true or false, and this is a string"]),
        (r#""command": "git", "protocol": "2025-11-24""#, &["2 \"protocol\" in server \"git\": unknown protocol revision \"2025-11-24\"; write \"auto\" or one of \"2026-07-28\""]),
        (r#""command": "git", "startTimeout": 10, "callTimeout": "10""#, &[
            "2 \"startTimeout\" in server \"git\" must be a string such as \"",
            "2 \"callTimeout\" in server \"git\": \"10\" is not a duration; write a number and ms, s, m or h",
        ]),
        (r#""command": "git", "connect": "soon""#, &["2 \"connect\" in server \"git\" must be \"always\" or \"lazy\" or \"manual\", and this is \"soon\""]),
        (r#""command": "git", "idle": "5m""#, &["2 \"idle\" in server \"git\"…goes with \"connect\": \"lazy\" or \"manual\" only; remove it"]),
        (r#""command": "git", "connect": "lazy", "idle": "0s""#, &["2 \"idle\" in server \"git\": \"0s\" is zero; the duration must be…or write \"never\""]),
        (r#""command": "git", "connect": "lazy", "idle": 300"#, &["2 \"idle\" in server \"git\" must be a string such as \"5m\", or \"never\""]),
        (r#""command": "git", "description": "a\nb""#, &["2 \"description\" in server \"git\" must be one line of at most 200 characters"]),
        (r#""command": "git", "description": """#, &["2 \"description\" in server \"git\" must be one line of at most 200 characters"]),
        (r#""commnad": "git", "colour": "red""#, &[
            "2 unknown key \"commnad\" in server \"git\"; did you mean \"command\"?",
            "2 unknown key \"colour\" in server \"git\"; remove it, or use one of …command, args…callTimeout, maxCallTime",
        ]),
        (r#""command": "git", "start_timeout": "1s""#, &["2 unknown key \"start_timeout\" in server \"git\"; did you mean \"startTimeout\"?"]),
        (r#""httpUrl": "https://a.b""#, &["2 unknown key \"httpUrl\" in server \"git\"; did you mean \"url\"?"]),
        (r#""command": "git", "command": "hg""#, &["2 key \"command\" stands twice in server \"git\"; remove one"]),
        // References.
        ("\"command\": \"git\",\n \"args\": [\"a\",\n  \"${TOKN}\"], \"env\": {\"A\": \"${ALSO_NOT}\"}", &[
            "4 server \"git\": environment variables \"TOKN\", \"ALSO_NOT\" are not set; set them, or write \"${TOKN:-default}\"; the server is left out",
        ]),
        (r#""command": "git", "cwd": "${env:HOME}""#, &["2 \"cwd\" in server \"git\": environment variable \"HOME\" is not set; set it"]),
        (r#""command": "git", "args": ["${input:key}"]"#, &["2 \"args\" in server \"git\": \"${input:…}\" asks a person in VS Code…put the value into an environment variable"]),
        (r#""command": "git", "args": ["${config:a.b}", "${}", "${A:-${B}}"]"#, &[
            "2 \"args\" in server \"git\": \"${…}\" is not a reference; write \"${NAME}\"",
            "2 \"args\" in server \"git\": \"${}\" is not a reference; write \"${NAME}\"",
            "2 \"args\" in server \"git\": \"${A:-…}\" is not a reference; write \"${NAME}\"",
        ]),
        (r#""command": "git", "args": ["${MY-TOKEN:-hunter2}"]"#, &["2 \"args\" in server \"git\": \"${MY-TOKEN:-…}\" is not a reference; write \"${NAME}\""]),
        (r#""command": "git", "args": ["a${TOKEN"]"#, &["2 \"args\" in server \"git\": \"${\" has no closing \"}\"; close it, as in \"${NAME}\""]),
        // Secrets and logins.
        (r#""command": "x", "env": { "A": { "keyring": { "service": "s", "account": "a", "user": "u" } } }"#, &["2 unknown key \"user\" in \"keyring\"…\"A\" in \"env\" in server \"git\"; did you mean \"account\"?"]),
        (r#""command": "x", "env": { "A": { "keyring": { "service": "s" } } }"#, &["2 \"keyring\" in \"A\" in \"env\" in server \"git\" has no \"account\"; write"]),
        (r#""command": "x", "env": { "A": { "command": [] }, "B": { "command": "op read" }, "C": {} }"#, &[
            "2 \"command\" in \"A\" in \"env\" in server \"git\" is empty; write the program and its arguments",
            "2 \"command\" in \"B\" in \"env\" in server \"git\" must be an array…and this is a string",
            "2 \"C\" in \"env\" in server \"git\" has neither \"command\" nor \"keyring\"; write one",
        ]),
        (r#""command": "x", "env": { "A": { "command": ["hunter2"], "keyring": { "service": "s", "account": "a" } } }"#, &["2 \"A\" in \"env\" in server \"git\" has both \"command\" and \"keyring\"; keep one"]),
        (r#""command": "x", "env": { "A": { "timeout": "1s", "keyring": { "service": "s", "account": "a" } } }"#, &["2 \"A\" in \"env\" in server \"git\" has \"timeout\", which does not go with \"keyring\"; remove it"]),
        (r#""url": "https://a.b", "headers": { "A": { "command": ["x"], "prefix": "a\r\nb" } }"#, &["2 \"A\" in \"headers\" in server \"git\" has a control character in its value, such as a line break; remove it"]),
        (r#""url": "https://a.b", "headers": { "authorization": "x" }, "oauth": {}"#, &["2 server \"git\" has \"oauth\" and an \"Authorization\" header; keep one"]),
        (r#""url": "https://a.b", "oauth": { "callbackPort": 1, "redirectPort": 70000 }"#, &[
            "2 key \"callbackPort\" in \"oauth\" in server \"git\" means nothing here; write \"redirectPort\"",
            "2 \"redirectPort\" in \"oauth\" in server \"git\"…65535",
        ]),
        (r#""url": "https://a.b", "oauth": { "clientSecret": "hunter2" }"#, &["2 \"oauth\" in server \"git\" has a \"clientSecret\" and no \"clientId\"; write both"]),
        (r#""url": "https://a.b", "oauth": { "grant": "client_credentials", "clientId": "c" }"#, &["2 \"oauth\" in server \"git\" has the grant of client credentials; write \"clientId\" and \"clientSecret\""]),
        (r#""url": "https://a.b", "oauth": { "clientId": "c", "clientSecret": "hunter2" }"#, &["2 \"oauth\" in server \"git\" has a \"clientSecret\" and no \"issuer\"; write the issuer"]),
        (r#""url": "https://a.b", "oauth": { "grant": "password", "tokens": "cloud", "clientMetadataUrl": "http://a/b" }"#, &[
            "2 \"grant\" in \"oauth\" in server \"git\" must be \"authorization_code\" or \"client_credentials\"",
            "2 \"tokens\" in \"oauth\" in server \"git\" must be \"auto\" or \"keyring\" or \"file\"",
            "2 \"clientMetadataUrl\" in \"oauth\" in server \"git\" must be an https URL with a path",
        ]),
        (r#""url": "https://a.b", "oauth": "yes""#, &["2 \"oauth\" in server \"git\" must be true, false or an object, and this is a string"]),
    ], |keys| format!("{{\"mcpServers\": {{\n\"git\": {{{keys}}}}}}}"));
    check("callgate.json", &[(r#"{ "mcpServers": { "git": "npx git" } }"#, &["1 server \"git\" must be an object"])], str::to_owned);
}

#[test]
fn number_of_reported_mistakes_is_bounded() {
    let limits = (0..1_001).map(|n| format!("\"x{n}\": 1"));
    let text = format!(
        r#"{{ "limits": {{ {} }} }}"#,
        limits.collect::<Vec<_>>().join(", ")
    );
    let error = read("callgate.json", &text).expect_err("mistakes");
    let said = "the file has more than 1000 mistakes or unknown keys; correct them and try again";
    assert!(error.problems().any(|problem| problem.message == said));
}

/// In `callgate.json` they are mistakes; in a file that other clients share they are not.
#[test]
fn keys_of_other_clients_are_mistakes() {
    let text = r#"{
  "inputs": [],
  "servers": {
    "git": {
      "type": "stdio", "command": "git", "timeout": 60, "autoApprove": [],
      "alwaysAllow": [], "envFile": ".env", "disabledTools": ["x"], "trust": true
    }
  }
}"#;
    let expected: &[&str] = &[
        "2 key \"inputs\" in the file means nothing here; write \"${NAME}\"",
        "5 key \"timeout\" in server \"git\" means nothing here; write \"callTimeout\"",
        "5 key \"autoApprove\" in server \"git\" means nothing here; write the tools under",
        "6 key \"alwaysAllow\" in server \"git\" means nothing here; write the tools under",
        "6 key \"envFile\" in server \"git\" means nothing here; write \"env\"",
        "6 key \"disabledTools\" in server \"git\" means nothing here; write the tools under \"permissions\", \"deny\"",
        "6 key \"trust\" in server \"git\" means nothing here; write \"trusted\"",
    ];
    check("callgate.json", &[(text, expected)], str::to_owned);
    check(".mcp.json", &[(text, expected)], str::to_owned);
    assert!(read("callgate.json", text).is_err());
    let shared = read(".mcp.json", text).expect("a configuration");
    assert_eq!(stdio(&shared).command, "git");
    // A missing key is a mistake all the same.
    assert!(read(".mcp.json", r#"{ "mcpServers": {}, "limit": {} }"#).is_err());
}

#[rustfmt::skip]
#[test]
fn mistakes_in_rules_are_reported() {
    check("callgate.json", &[
        (r#"["git-*", 1, [], ""]"#, &[
            "2 pattern \"git-*\" can never match: generated names have \"_\" in place of \"-\"; did you mean \"git_*\"?",
            "2 a rule must be a pattern or an object, and this is a number",
            "2 a rule must be a pattern or an object, and this is an array",
            "2 empty pattern; write a tool's generated name, or \"*\" for every tool",
        ]),
        (r#""git_*""#, &["2 \"allow\" in \"permissions\" must be an array of rules, and this is a string"]),
        (r#"[], "denied": []"#, &["2 unknown key \"denied\" in \"permissions\"; remove it, or use one of …allow, ask, deny"]),
        ("[\n{\n\"server\": \"x\" }]", &["3 a rule has no \"tool\"; write it"]),
        ("[{ \"tool\": \"a\",\n\"maxcalls\": 1,\n\"maxCalls\": 0 }]", &[
            "3 unknown key \"maxcalls\" in a rule; did you mean \"maxCalls\"?",
            "4 \"maxCalls\" in a rule must be a whole number above zero",
        ]),
        ("[{ \"tool\": \"a\",\n\"tool\": \"b\" }]", &["3 key \"tool\" stands twice in a rule; remove one"]),
        ("[{ \"tool\": \"a\", \"arguments\": [\n{ \"at\": \"/a\",\n\"regex\": \"(\" },\n{ \"at\": \"path\", \"exists\": true }] }]", &[
            "4 \"regex\" in \"arguments\" in a rule: it is not a regular expression: unclosed group",
            "5 \"at\" in \"arguments\" in a rule: \"path\" is not a JSON pointer; did you mean \"/path\"?",
        ]),
        ("[{ \"tool\": \"*\", \"arguments\": [\n{ \"at\": \"/a\", \"max\": 1e400 }] }]", &["3 \"max\" in \"arguments\" in a rule has the number 1e400, which is beyond any number that arguments can have; write one from -1.7e308 to 1.7e308"]),
        (r#"[{ "tool": "*", "arguments": "/a" }]"#, &["2 \"arguments\" in a rule must be an array…; write conditions such as [{ \"at\": "]),
        (r#"[{ "tool": "*", "arguments": [{ "name": "a" }] }]"#, &["2 unknown key \"name\" in \"arguments\" in a rule…; write conditions such as [{ \"at\": "]),
        (r#"[], "deny": [{ "tool": "*", "maxCalls": 1 }]"#, &["2 \"maxCalls\" belongs to rules of \"allow\""]),
    ], |rules| format!("{{ \"permissions\": {{\n\"allow\": {rules} }} }}"));
}

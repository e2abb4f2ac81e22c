//! Secrets are planted wherever they can be configured, and looked for wherever
//! they must not be.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use callgate::faces::auth;
use callgate::faces::auth::LoginRequest;
use callgate_tests::{Ran, Workbench, odd, workers};
use serde_json::{Value, json};

use crate::endpoint::{Do, Endpoint};
use crate::guarded::{Follow, Guarded};
use crate::keyring::Keyring;
use crate::logins;
use crate::serve_client::{request, shown};
use crate::serve_http_users::user;
use callgate_tests::served::{Served, hello, http, said};

const VARIABLE: &str = "canary-variable-1c7d";
const HEADER: &str = "canary-header-9e02";
const ARGUMENT: &str = "canary-argument-3ab8";
const OUTPUT: &str = "canary-output-b5f6";
const ENTRY: &str = "canary-entry-77aa";
const STALE: &str = "canary-stale-access-3d10";
const SPENT: &str = "canary-spent-refresh-48cc";
const ACCESS: &str = "canary-access-e21b";
const REFRESH: &str = "canary-refresh-06f9";
const REGISTERED: &str = "canary-registered-5f1e";
const MACHINE: &str = "canary-machine-access-c3d9";
const KEY: &str = "canary-model-key-8ad4";
const BEARER: &str = "canary-bearer-of-a-client-20fe";
const UNKNOWN: &str = "canary-bearer-of-nobody-91b6";
/// The secret of the client that the authorization server knows from the start.
const CLIENT: &str = "registered-secret";
const ALL: [&str; 15] = [
    VARIABLE, HEADER, ARGUMENT, OUTPUT, ENTRY, STALE, SPENT, ACCESS, REFRESH, REGISTERED, MACHINE,
    KEY, BEARER, UNKNOWN, CLIENT,
];

/// A text of the script itself, which must be found in the worker's memory.
const MARKER: &str = "marker-in-the-script-5a5a";

/// A configuration that holds every canary, and servers that have them.
struct Planted {
    guarded: Guarded,
    _machine: Guarded,
    keyring: Option<Keyring>,
    bench: Workbench,
}

impl Planted {
    async fn new() -> Self {
        // The first token has expired at its first use and is renewed: tokens of the login and of
        // the renewal are both canaries.
        let guarded = Guarded::start(&json!({
            "firstExpiresIn": 1, "tokens": [STALE, SPENT, ACCESS, REFRESH], "secret": REGISTERED
        }));
        // Each process has a token by the client's own secret.
        let machine = Guarded::start(&json!({ "tokens": vec![MACHINE; 32] }));
        let keyring = Keyring::start();
        let mut env = json!({
            "VARIABLE": "${CANARY}",
            "OUTPUT": { "command": ["cat", "output.txt"] },
        });
        if let Some(keyring) = &keyring {
            keyring.set("callgate-test", "me", ENTRY);
            env["ENTRY"] = json!({ "keyring": { "service": "callgate-test", "account": "me" } });
        }
        let mut quiet = odd("flaky");
        quiet["env"] = env.clone();
        // The program writes its secrets to stderr and exits.
        let program = "echo $0 >&2; env | grep canary >&2; env | grep canary | base64 -w0 >&2; \
                       exit 3";
        let arguments = ["-c", program, "--key=${CANARY_ARGUMENT}"];
        let blabbing = json!({ "command": "sh", "args": arguments, "env": env });
        let bench = Workbench::with_config(json!({
            "mcpServers": {
                "web": {
                    "url": guarded.url,
                    "headers": { "X-Key": "${CANARY_HEADER}" },
                    "oauth": { "tokens": "file" },
                },
                "machine": {
                    "url": machine.url,
                    "oauth": {
                        "grant": "client_credentials", "issuer": machine.issuer,
                        "clientId": "registered", "clientSecret": { "command": ["cat", "client.txt"] },
                    },
                },
                "quiet": quiet,
                "blabbing": blabbing,
            },
            "permissions": { "allow": ["*"] },
            "ledger": { "path": "journal", "bodies": true },
        }));
        bench.write("output.txt", OUTPUT);
        bench.write("client.txt", CLIENT);
        let folder = bench.path().join("state/callgate/auth");
        let login = LoginRequest::new(Arc::new(Follow));
        auth::login(&guarded.spec(&folder), login)
            .await
            .expect("a login");
        Self {
            guarded,
            _machine: machine,
            keyring,
            bench,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command(arguments);
        if let Some(keyring) = &self.keyring {
            keyring.reach(&mut command);
        }
        command
            .env("CANARY", VARIABLE)
            .env("CANARY_HEADER", HEADER)
            .env("CANARY_ARGUMENT", ARGUMENT);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output();
        output.expect("start callgate").into()
    }
}

#[track_caller]
fn check(what: &str, bytes: &[u8]) {
    check_for(&ALL, what, bytes);
}

#[track_caller]
fn check_for(canaries: &[&str], what: &str, bytes: &[u8]) {
    for canary in canaries {
        let encoded = (0..3).map(|offset| {
            let before = "x".repeat(offset);
            let text = BASE64_STANDARD_NO_PAD.encode(format!("{before}{canary}"));
            // Both ends of an encoded canary depend on the text around it.
            text.get(4..text.len() - 4)
                .expect("a longer canary")
                .to_owned()
        });
        for form in encoded.chain([(*canary).to_owned()]) {
            assert!(
                !contains(bytes, form.as_bytes()),
                "{canary} is in {what}: {}",
                String::from_utf8_lossy(bytes.get(..20_000).unwrap_or(bytes))
            );
        }
    }
}

/// Checks that a log has no canary, and has the blabbing server's lines, redacted.
#[track_caller]
fn check_log(log: &str) {
    check("the log", log.as_bytes());
    for said in [
        "--key=[CANARY_ARGUMENT]",
        "VARIABLE=[VARIABLE]",
        "OUTPUT=[OUTPUT]",
    ] {
        let line = format!("a server writes to stderr server=blabbing line=\"{said}\"");
        assert!(log.contains(&line), "{line}: {log}");
    }
}

/// Checks that the journal has these parts and no canary.
#[track_caller]
fn check_journal(bench: &Workbench, parts: &[&str]) {
    let journal = std::fs::read_to_string(bench.path().join("journal")).expect("a journal");
    for part in parts {
        assert!(journal.contains(part), "{part}: {journal}");
    }
    check("the journal", journal.as_bytes());
}

/// Checks that a script's report and the tool result for a client have no canary, and that both
/// contain `part`. Returns the log.
async fn check_served(command: Command, token: Option<&str>, script: &str, part: &str) -> String {
    let mut served = Served::by(command);
    let mut run = http().post(format!("http://{}/v1/run", served.authority()));
    if let Some(token) = token {
        run = run.bearer_auth(token);
    }
    let run = run.json(&json!({ "code": script })).send().await;
    let report = said(run.expect("an answer")).await;
    let client = served.connect(user(), token).await;
    let answer = client.call_tool(request(script)).await.expect("an answer");
    for text in [report, shown(&answer).1] {
        assert!(text.contains(part), "{text}");
        check("what a client gets", text.as_bytes());
    }
    let unknown = served.post(&hello()).bearer_auth(UNKNOWN).send().await;
    check(
        "a refusal",
        said(unknown.expect("an answer")).await.as_bytes(),
    );
    for memory in workers(served.pid()).into_iter().filter_map(memory) {
        check("a worker's memory", &memory);
    }
    served.terminate();
    let (code, log) = served.wait();
    assert_eq!(code, Some(0), "{log}");
    check("the log", log.as_bytes());
    log
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    memchr::memmem::find(bytes, wanted).is_some()
}

const SCRIPT: &str = "
    const said = [await quiet_echo({ a: 1 }), await web_read({ b: 2 })];
    for (const tool of ['web_blab', 'web_write', 'machine_blab', 'machine_write']) {
      try { await mcp.callTool(tool, {}) }
      catch (error: any) {
        console.log(error.message, JSON.stringify(error), error.stack, error);
        said.push(error.message, error.data);
      }
    }
    return said;";

#[tokio::test]
async fn reports_logs_and_errors_hold_no_secret() {
    let planted = Planted::new().await;
    planted.bench.write("script.ts", SCRIPT);
    for arguments in [
        &["run", "script.ts", "-vv"][..],
        &["run", "script.ts", "-vv", "--json"],
        &["call", "web_blab", "-vv"],
        &["call", "web_write", "-vv"],
        &["call", "machine_blab", "-vv"],
        &["call", "blabbing_x", "-vv"],
        &["tools", "-vv"],
        &["check", "script.ts", "-vv"],
        &["auth", "status", "-vv"],
    ] {
        let ran = planted.run(arguments);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        check(&format!("what {arguments:?} says"), said.as_bytes());
    }
    // The servers did write their secrets, and each secret was replaced, in the log too.
    check_log(&planted.run(&["call", "blabbing_x", "-vv"]).stderr);
    for (tool, said) in [
        ("web_blab", "no luck with [access token]"),
        ("machine_blab", "no luck with [access token]"),
        ("blabbing_x", "--key=[CANARY_ARGUMENT]"),
    ] {
        let ran = planted.run(&["call", tool]);
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
    let report = planted.run(&["run", "script.ts", "--json"]).json();
    assert_eq!(report["value"]["json"][1], json!({ "b": 2 }), "{report:#}");
    let seen = planted.guarded.seen().await;
    assert_eq!(seen["refresh_token"], 1, "{seen:#}");
    check_journal(
        &planted.bench,
        &["quiet_echo", "no luck with [access token]"],
    );
}

#[tokio::test]
async fn answers_to_clients_and_models_contain_no_secret() {
    let planted = Planted::new().await;
    let command = planted.command(&["serve", "--http", "127.0.0.1:0", "-vv"]);
    let log = check_served(command, None, SCRIPT, "no luck with [access token]").await;
    check_log(&log);
}

#[test]
fn logins_and_logouts_tell_no_secret() {
    let guarded = Guarded::start(&json!({
        "tokens": [STALE, SPENT, ACCESS, REFRESH], "secret": REGISTERED
    }));
    let bench = guarded.bench(&json!({ "tokens": "file" }));
    let wider = ["-vv", "--scope", "read", "--scope", "write"];
    let said = [
        logins::log_in(&bench, &["-vv"]),
        logins::log_in(&bench, &wider),
        bench.callgate(&["auth", "status", "-vv"]),
        bench.callgate(&["auth", "logout", "web", "-vv"]),
    ]
    .map(|ran| {
        assert_eq!(ran.code, 0, "{ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    });
    // The logins and the logout took place.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let seen = runtime.block_on(guarded.seen());
    assert_eq!(seen["authorization_code"], 2, "{seen:#}");
    assert_eq!(seen["revocations"], 1, "{seen:#}");
    let proofs = runtime.block_on(guarded.proofs());
    let proofs: Vec<&str> = proofs
        .iter()
        .flat_map(|(code, verifier)| [code.as_str(), verifier])
        .collect();
    assert_eq!(proofs.len(), 4, "{proofs:?}");
    for said in &said {
        check("what is said", said.as_bytes());
        check_for(&proofs, "what is said", said.as_bytes());
    }
}

/// With client tokens, logins at servers belong to clients, so this test plants its own canaries.
#[tokio::test]
async fn model_keys_and_client_tokens_stay_secret() {
    let model = Endpoint::doing([Do::Blab(404), Do::Blab(404)]);
    let bench = Workbench::with_config(json!({
        "mcpServers": { "quiet": odd("flaky") },
        "permissions": { "allow": ["*"] },
        "models": { "small": {
            "api": "openai", "url": model.url, "model": "small", "key": "${CANARY_KEY}",
        } },
        "ledger": { "path": "journal", "bodies": true },
        "serve": { "http": { "bearer": { "alice": { "command": ["cat", "bearer.txt"] } } } },
    }));
    bench.write("bearer.txt", BEARER);
    let mut command = bench.command(&["serve", "--http", "127.0.0.1:0", "-vv"]);
    command.env("CANARY_KEY", KEY);
    let script = "await quiet_echo({ a: 1 });
        try { return await mcp.extract('7', 'number') }
        catch (error: any) {
          console.log(JSON.stringify(error), error.stack, error);
          return error.message;
        }";
    // The model's endpoint repeats the key in its error message.
    check_served(command, Some(BEARER), script, "no luck with Bearer …").await;
    check_journal(&bench, &["model_extract"]);
}

/// The worker waits in a call that is never answered while its memory is read.
#[tokio::test]
async fn a_worker_holds_no_secret() {
    let planted = Planted::new().await;
    let script = format!(
        "const marker = '{MARKER}'; await web_read({{ marker }});
         try {{ await web_blab({{}}) }} catch {{}}
         await web_hang({{ marker }});"
    );
    planted.bench.write("script.ts", &script);
    let mut child = planted
        .command(&["run", "script.ts"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start callgate");
    while planted.guarded.seen().await["calls of hang"] == Value::Null {
        assert_eq!(child.try_wait().expect("its state"), None, "ended early");
    }
    // A spare worker may already wait for a script.
    let memories: Vec<Vec<u8>> = workers(child.id()).into_iter().filter_map(memory).collect();
    child.kill().expect("kill callgate");
    child.wait().expect("reap callgate");
    let found = |memory: &&Vec<u8>| contains(memory, MARKER.as_bytes());
    assert_eq!(
        memories.iter().filter(found).count(),
        1,
        "one runs the script"
    );
    for memory in &memories {
        check("a worker's memory", memory);
    }
}

/// The memory that a process can write to, as far as it can be read; none if it has ended.
fn memory(process: u32) -> Option<Vec<u8>> {
    let folder = format!("/proc/{process}");
    let maps = || unless_ended(std::fs::read_to_string(format!("{folder}/maps")));
    let mut file = unless_ended(File::open(format!("{folder}/mem")))?;
    let mut all = Vec::new();
    for line in maps()?.lines() {
        let (range, rights) = line.split_once(' ').expect("a range and its rights");
        if !rights.starts_with("rw") {
            continue;
        }
        let (start, end) = range.split_once('-').expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        let (start, end) = (number(start), number(end));
        file.seek(SeekFrom::Start(start)).expect("an address");
        // Guard pages and the like cannot be read, though the map says so.
        let _unreadable = (&mut file).take(end - start).read_to_end(&mut all);
    }
    // A process that has ended and is not yet waited for has an empty map.
    let has_ended = maps().is_none_or(|maps| maps.is_empty());
    assert!(has_ended || !all.is_empty(), "{process} cannot be read");
    Some(all)
}

/// The file of a process, or none if there is no such process.
fn unless_ended<T>(read: io::Result<T>) -> Option<T> {
    match read {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => None,
        read => Some(read.expect("a worker that runs can be read")),
    }
}
